"""Environments of interpreters that are none: each is refused in words, and leaves nothing."""

import threading
from pathlib import Path

import pytest

from trivium.environments.recipe import EnvironmentRecipe
from trivium.environments.store import BuildServices, EnvironmentFailed, EnvironmentStore
from trivium.types.interfaces import NO_GUARD
from trivium.types.spec import OwnEnvironment

FOLDER = """#!/bin/sh
for last; do :; done
if [ "$1" = -m ]; then mkdir -p "$last/bin" "$last/lib"; fi
"""
ODD = "#!/bin/sh\nexit 3\n"


@pytest.mark.parametrize(
    ("script", "words"), [(FOLDER, "without a folder lib/*/site-packages"), (ODD, "ended with status 3")]
)
def test_what_is_no_python_is_refused_and_leaves_nothing(tmp_path: Path, script: str, words: str) -> None:
    python, scratch = tmp_path / "python", tmp_path / "scratch"
    python.write_text(script)
    python.chmod(0o755)
    services = BuildServices(
        scratch, {"PATH": "/usr/bin:/bin"}, threading.Event(), NO_GUARD, lambda line: None
    )
    recipe = EnvironmentRecipe(str(python), tmp_path, OwnEnvironment(is_private=True))
    with pytest.raises(EnvironmentFailed) as caught:
        EnvironmentStore().acquire(recipe, services)
    assert words in str(caught.value)
    assert list(scratch.iterdir()) == []
