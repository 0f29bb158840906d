"""JSON files of a Hugging Face folder: read within bounds, with the line of each key that is asked for.

Never raises for what somebody wrote. Pure.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from trivium.types.findings import Finding, Severity

_LONGEST_SHOWN = 80
MOST_QUOTES = 2**21
"""In a file of which only some fields are read: it may name every tensor, or every word that was added."""

Fields = TypeVar("Fields")


@dataclass(frozen=True, slots=True)
class JsonFile:
    """An object that a file holds; `findings` say why there is none."""

    file: str
    document: Mapping[str, object] = field(default_factory=dict)
    text: str = field(default="", repr=False)
    findings: tuple[Finding, ...] = ()

    def line(self, key: str) -> int | None:
        """Return the line on which a key stands first, None where it does not."""
        place = re.search(rf'"{re.escape(key)}"\s*:', self.text)
        return self.text.count("\n", 0, place.start()) + 1 if place else None

    def fault(self, key: str, value: object, expected: str, hint: str) -> Finding:
        """Return an ERROR about the value of a key, or that there is none."""
        found = "missing" if value is None else _shown(value)
        return self.finding(key, found, expected, hint)

    def finding(self, key: str, found: str, expected: str, hint: str) -> Finding:
        """Return an ERROR at a key."""
        return Finding(Severity.ERROR, self.file, self.line(key), key, found, expected, hint)


def read_fields(
    file: str, data: bytes, most: int, kind: type[Fields], hint: str
) -> tuple[Fields | None, JsonFile]:
    """Read no more of a file than the fields of `kind`: all others are passed over, and take no memory however they are
    nested. Returns None and findings for what cannot be read so.
    """

    def refused(found: str, key: str = "") -> tuple[None, JsonFile]:
        expected = f"a JSON object of at most {most // 2**20} MiB"
        return None, JsonFile(
            file, findings=(Finding(Severity.ERROR, file, None, key, found, expected, hint),)
        )

    if len(data) > most:
        return refused(f"more than {most} bytes")
    if data.count(b'"') > MOST_QUOTES:
        return refused(f"more than {MOST_QUOTES // 2} texts")
    try:
        fields = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=kind)
        return fields, JsonFile(file, text=data.decode("utf-8-sig"))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return refused(f"no JSON as it should be: {str(error)[:_LONGEST_SHOWN]}")


def read_object(file: str, data: bytes, most: int, hint: str) -> JsonFile:
    """Read a whole file of at most `most` bytes that holds a JSON object; `hint` says what to do about another one."""

    def refused(found: str, line: int | None = None) -> JsonFile:
        size = f"{most // 2**20} MiB" if most >= 2**20 else f"{most} bytes"
        expected = f"a JSON object of at most {size}"
        return JsonFile(file, findings=(Finding(Severity.ERROR, file, line, "", found, expected, hint),))

    if len(data) > most:
        return refused(f"more than {most} bytes")
    try:
        text = data.decode("utf-8-sig")
        document = json.loads(text)
    except json.JSONDecodeError as error:
        return refused(f"no JSON: {error.msg}", error.lineno)
    except (ValueError, RecursionError) as error:
        return refused(f"no JSON: {str(error)[:_LONGEST_SHOWN]}")
    if not isinstance(document, dict):
        return refused("JSON that is no object")
    return JsonFile(file, document, text)


def _shown(value: object) -> str:
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists a thousand deep
        return f"a {type(value).__name__} that is too large to print"
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."
