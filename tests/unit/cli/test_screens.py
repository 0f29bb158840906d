"""The screens of commands that start no process are those that are kept; and no screen speaks the code's words."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.screens import (
    JARGON,
    PLAIN,
    SCREENS,
    SHOWN,
    WIDTHS,
    made,
    made_folder,
    names,
    path,
    write_texts,
)

KEPT = sorted(SCREENS.glob("*.txt"))
OWN_WORDS = re.compile(r"--[\w-]+|\[[a-z_]+\]|TRIVIUM_\w+")
"""Words of options, as they are typed: not the code's."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with made_folder(write_texts) as place:
        yield place


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", names(has_process=False))
def test_a_screen_is_the_one_that_is_kept(name: str, width: str, folder: Path) -> None:
    assert made(name, width, folder) == path(name, width).read_text(), "python -m tests.harness.screens"


def test_every_screen_is_kept_at_every_width() -> None:
    known = [*names(has_process=False), *names(has_process=True)]
    assert sorted(path(name, width) for name in known for width in WIDTHS) == KEPT
    assert {"help", "error-key", "start", "stop"} < set(known)
    assert set(SHOWN) < set(known)


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_no_word_of_the_code_stands_in_a_screen(file: Path) -> None:
    words = re.findall(r"\w+", OWN_WORDS.sub("", file.read_text()).lower())
    assert not JARGON & set(words)


@pytest.mark.parametrize("file", sorted(SCREENS.glob(f"*.{PLAIN}.txt")), ids=lambda file: file.stem)
def test_nothing_that_a_terminal_obeys_is_printed_without_one(file: Path) -> None:
    assert "\x1b" not in file.read_text()
    assert "\r" not in file.read_text()


@pytest.mark.parametrize("width", [width for width in WIDTHS if width != PLAIN])
def test_help_and_sentences_keep_to_the_width(width: str) -> None:
    for file in SCREENS.glob(f"*.{width}.txt"):
        wide = [line for line in file.read_text().splitlines() if len(line) > int(width)]
        assert all(may_be_wide(line) for line in wide), wide


def may_be_wide(line: str) -> bool:
    """Whether a line is copied as a whole: a request to paste, or one of the log."""
    return line.startswith(("curl ", "WARNING "))
