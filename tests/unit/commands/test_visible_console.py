"""How sentences and the log are laid out on a terminal, and where there is none."""

import io
import logging
import sys

import pytest
from rich.console import Console
from rich.status import Status
from rich.text import Text
from tests.harness.terminal import displayed

from trivium.commands.process import LogHandler, logs_above
from trivium.commands.visible_console import lines_of, print_sentence

LONG = "/a/path/that/is/wider/than/the/screen"
SENTENCE = f"Cannot read {LONG}: give --model-store, or another.\n\nAt: x"


def console(width: int, is_terminal: bool) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=is_terminal, highlight=False)


def printed(on: Console) -> str:
    assert isinstance(on.file, io.StringIO)
    return displayed(on.file.getvalue())


def test_on_a_terminal_lines_end_between_words_and_no_name_is_broken() -> None:
    on = console(24, True)
    assert [line.plain for line in lines_of(on, Text(SENTENCE))] == [
        "Cannot read",
        f"{LONG}:",
        "give --model-store, or",
        "another.",
        "",
        "At: x",
    ]
    print_sentence(on, Text(SENTENCE))
    assert printed(on).splitlines() == [line.plain for line in lines_of(on, Text(SENTENCE))]


def test_elsewhere_a_sentence_is_one_line() -> None:
    on = console(24, False)
    print_sentence(on, Text(SENTENCE))
    assert printed(on) == f"{SENTENCE}\n"


def test_colours_stay_where_they_were() -> None:
    words = Text.assemble("one two ", ("three", "red"), " four")
    assert [
        line.plain[span.start : span.end] for line in lines_of(console(8, True), words) for span in line.spans
    ] == ["three"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_log_stands_above_the_line_of_progress(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(logging.getLogger(), "handlers", [LogHandler()])
    (handler,) = logging.getLogger().handlers
    on = console(60, is_terminal)
    with Status("loading a", console=on), logs_above(on):
        handler.emit(logging.LogRecord("x", logging.WARNING, "", 0, "a warning", None, None))
    said = "a warning" in printed(on)
    assert said is is_terminal  # elsewhere it goes to standard error as ever
    if is_terminal:
        assert printed(on).splitlines()[0] == "a warning"
