"""Environments of interpreters that are none: each is refused in words, and leaves nothing."""

import sys
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


UV = """#!/bin/sh
echo "$*" >> {log}
case "$*" in
*--dry-run*) echo "+ {adds}" ;;
*) echo "installed by uv" ;;
esac
"""


@pytest.mark.parametrize(
    ("adds", "more", "calls"),
    [
        ("tiny==1", {}, 2),  # asked, and then told
        ("numpy==9", {}, 1),  # which lies below: pip finds it there
        ("tiny==1", {"PIP_NO_INDEX": "1"}, 0),  # pip is configured, and uv would not know
    ],
)
def test_uv_installs_where_that_comes_to_the_same(
    tmp_path: Path, adds: str, more: dict[str, str], calls: int
) -> None:
    tools, scratch, log = tmp_path / "tools", tmp_path / "scratch", tmp_path / "log"
    for folder in (tools, scratch):
        folder.mkdir()
    (tools / "uv").write_text(UV.format(log=log, adds=adds))
    (tools / "uv").chmod(0o755)
    (tmp_path / "needs.txt").write_text("--no-index\nnumpy\n")
    variables = {"PATH": f"{tools}:/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null", "HOME": str(tmp_path)}
    said: list[str] = []
    services = BuildServices(scratch, variables | more, threading.Event(), NO_GUARD, said.append)
    recipe = EnvironmentRecipe(sys.executable, tmp_path, OwnEnvironment("needs.txt"))
    lease = EnvironmentStore().acquire(recipe, services)
    assert lease.made.warning == ""
    lease.release()
    asked = log.read_text().splitlines() if log.exists() else []
    assert len(asked) == calls
    is_by_uv = calls > 1
    assert ("installed by uv" in said) is is_by_uv
    assert any("already satisfied" in line for line in said) is not is_by_uv
