"""Says our options in the words of the command that speaks: its own key or flag for one, else the option's variable.

A process is one command. Our own commands and the library speak of our flags, and so does a process that nobody told.
"""

import re
from collections.abc import Mapping

PREFIX = "TRIVIUM_"
"""How the variables of our options begin, which every command reads."""

_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
_words: list[Mapping[str, str]] = []


def speak(words: Mapping[str, str]) -> None:
    """Have this process speak as a command that stands in for another server's, with its own names for our flags."""
    _words[:] = [words]


def speak_as_ourselves() -> None:
    """Have this process speak of our flags, as it does from the start."""
    _words.clear()


def spoken(text: str) -> str:
    """Return a sentence of ours, in which our flags are what whoever runs this process writes for them."""
    return _FLAG.sub(_said, text) if _words else text


def _said(flag: re.Match[str]) -> str:
    (words,) = _words
    return words.get(flag[0]) or PREFIX + flag[0].removeprefix("--").replace("-", "_").upper()
