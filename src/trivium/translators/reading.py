"""Reads the arguments of a translator, texts of a properties file or values of JSON, and notes what is wrong.

As in DJL (spec sheet `djl`, section 10) any word but `true` is false, and a number may be written with a fraction. A
stray comma behind a number or a truth value is read as meant. Pure.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trivium.settings.judging import meant_by

LARGEST = 2**31 - 1
_SHOWN = 80
_MOST_COMPARED = 300


class ArgumentFinding(NamedTuple):
    """A fault of one argument, or something to know about it where `is_notice`."""

    key: str
    found: str
    expected: str
    hint: str
    is_notice: bool = False


class ArgumentReader:
    """The arguments of one model. Each is asked for once by its name; `findings` has what was wrong so far."""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        self.findings: list[ArgumentFinding] = []
        self._arguments = arguments
        self._known: set[str] = set()

    def text(self, key: str, default: str = "") -> str:
        """Return an argument as text, `default` where there is none. A list is its parts with commas between."""
        self._known.add(key)
        value = self._arguments.get(key)
        if value is None:
            return default
        if isinstance(value, list | tuple):
            return ",".join(map(_text, value))
        if isinstance(value, dict):
            self.fault(
                key, "an object", "a text, a number, a truth value or a list", "Write the value alone."
            )
            return default
        return _text(value).strip()

    def is_given(self, key: str) -> bool:
        """Return if the argument is there, whatever its value."""
        self._known.add(key)
        return self._arguments.get(key) is not None

    def word(self, key: str, words: Sequence[str], default: str) -> str:
        """Return one of some words, which are found in any case."""
        text = self.text(key, default)
        known = {word.lower(): word for word in words}
        if text.lower() in known:
            return known[text.lower()]
        self.fault(key, text, f"one of {', '.join(words)}", _near(text, words) or "Write one of them.")
        return default

    def switch(self, key: str, default: bool = False) -> bool:
        """Return a truth value as Java reads it: any word but `true` is false, which is worth a notice."""
        if not self.is_given(key):
            return default
        text = self.without_comma(key, self.text(key, _text(default))).lower()
        if text not in ("true", "false"):
            hint = _near(text, ("true", "false")) or "Write true or false."
            self.notice(key, f"{text!r} is read as false, as DJL reads it", "true or false", hint)
        return text == "true"

    def integer(self, key: str, default: int, least: int = 1, most: int = LARGEST) -> int:
        """Return a whole number; a fraction is cut off, as DJL cuts it."""
        return int(self.number(key, default, least, most))

    def number(self, key: str, default: float, least: float, most: float) -> float:
        """Return a number from `least` to `most`."""
        if not self.is_given(key):
            return default
        text = self.without_comma(key, self.text(key, str(default)))
        value = number_in(text)
        if value is None or not least <= value <= most:
            self.fault(
                key, text, f"a number from {least:g} to {most:g}", f"Without the line it is {default:g}."
            )
            return default
        return value

    def without_comma(self, key: str, text: str) -> str:
        """Return the text without the commas at its end, which are worth a notice."""
        bare = text.rstrip(", \t")
        if bare != text:
            self.notice(key, f"{text!r} is read as {bare!r}", "no comma at the end", "Remove the comma.")
        return bare

    def fault(self, key: str, found: str, expected: str, hint: str) -> None:
        """Note that an argument cannot be read."""
        self.findings.append(ArgumentFinding(key, f"{key}={found[:_SHOWN]}", expected, hint))

    def notice(self, key: str, found: str, expected: str, hint: str) -> None:
        """Note something to know about an argument that is read all the same."""
        self.findings.append(ArgumentFinding(key, found[: 2 * _SHOWN], expected, hint, True))

    def finish(self, translator: str) -> list[ArgumentFinding]:
        """Return all findings; an argument that nobody has asked for is one."""
        unknown = sorted(set(self._arguments) - self._known)
        for place, key in enumerate(unknown):
            hint = _near(key, sorted(self._known)) if place < _MOST_COMPARED else ""
            self.notice(key, f"{key} is no argument of {translator}", "", hint or "It changes nothing.")
        return self.findings


def number_in(text: str) -> float | None:
    """Read a finite number, None for what is none."""
    try:
        value = float(text) if len(text) <= _SHOWN and "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _near(text: str, words: Sequence[str]) -> str:
    meant = meant_by(text, words, 0.7)
    return f"Did you mean {meant}?" if meant else ""
