"""What people see first is what is kept as texts: the screens of servers, and of commands that start processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.screens import WIDTHS, made, made_folder, names, path, write_models


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with made_folder(write_models) as place:
        yield place


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", names(has_process=True))
def test_a_screen_is_the_one_that_is_kept(name: str, width: str, folder: Path) -> None:
    kept = path(name, width).read_text()
    assert apart(made(name, width, folder)) == apart(kept), "python -m tests.harness.screens"


def apart(text: str) -> tuple[list[str], list[str], list[str]]:
    """What a worker wrote, which models became ready, and all else: which of these comes first is chance."""
    lines = text.splitlines()
    workers = [line for line in lines if line.startswith("WARNING trivium.worker.")]
    ready = sorted(line for line in lines if ": ready (" in line)
    return workers, ready, [line for line in lines if line not in (*workers, *ready)]
