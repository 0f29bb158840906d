"""Java's `.properties` files: keys and values with the lines that they stand on.

Source: the grammar of `java.util.Properties`. Knows no key, and nobody who writes such files. Text is read as UTF-8
and, where it is none, as Latin-1, which is what Java reads.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

MAX_BYTES = 2**20
_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class PropertyEntry:
    """One value as written, without its escapes; `line` counts from 1, and is None for a value from elsewhere, whose
    place is `file`.
    """

    value: str
    line: int | None
    file: str = ""
    starts: tuple[int, ...] = ()
    """Where in the value each further line of the file begins, for one that goes on over several."""

    def line_at(self, at: int) -> int | None:
        """Return the line of the file that a place in the value stands on."""
        return None if self.line is None else self.line + bisect_right(self.starts, at)


@dataclass(frozen=True, slots=True)
class Properties:
    """A file as read: key -> its last entry, in the order of first sight, and what is to be said about it."""

    file: str
    entries: dict[str, PropertyEntry]
    findings: tuple[Finding, ...] = ()

    def place(self, key: str) -> tuple[str, int | None]:
        """The file that a key's value stands in, and its line there; this file where the key is in none."""
        entry = self.entries.get(key)
        return (self.file, None) if entry is None else (entry.file or self.file, entry.line)

    def settings(self) -> Iterator[tuple[str, SourceSetting]]:
        """Return each key with its value and the place of that."""
        for key, entry in self.entries.items():
            file, line = self.place(key)
            yield key, SourceSetting(entry.value, Origin(file, key, line))


def read(file: str, data: bytes) -> Properties:
    """The properties in these bytes; an error names what cannot be read, a notice a key that is there twice."""
    findings: list[Finding] = []
    if len(data) > MAX_BYTES:
        found = f"more than {MAX_BYTES} bytes"
        fault = Finding(Severity.ERROR, file, None, "", found, "a file of settings", "Move data elsewhere.")
        return Properties(file, {}, (fault,))
    entries: dict[str, PropertyEntry] = {}
    for number, line, lines in _logical_lines(_text(data)):
        raw_key, raw_value = _split(line)
        try:
            key, value = _unescaped(raw_key), _unescaped(raw_value)
        except ValueError as error:
            hint = "Write four hexadecimal digits behind \\u, or two backslashes for one."
            findings.append(Finding(Severity.ERROR, file, number, raw_key, str(error), "\\uXXXX", hint))
            continue
        if key in entries:
            found = f"a second value; that of line {entries[key].line} is not used"
            findings.append(Finding(Severity.NOTICE, file, number, key, found, "", "Remove one of them."))
        begins = len(line) - len(raw_value)
        starts = tuple(len(_unescaped(line[begins:at])) if at > begins else 0 for at in lines)
        entries[key] = PropertyEntry(value, number, starts=starts)
    return Properties(file, entries, tuple(findings))


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _logical_lines(text: str) -> Iterator[tuple[int, str, list[int]]]:
    """Lines without leading blanks, joined where one ends in an odd number of backslashes, with where each further one
    begins; comments left out.
    """
    parts: list[str] = []
    start = length = 0
    starts: list[int] = []
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = line.lstrip(_BLANKS)
        if not parts:
            if not line or line[0] in "#!":
                continue
            start, starts, length = number, [], 0
        else:
            starts.append(length)
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        parts.append(line[:-1] if goes_on else line)
        length += len(parts[-1])
        if not goes_on:
            yield start, "".join(parts), starts
            parts = []
    if parts:
        yield start, "".join(parts), starts


def _split(line: str) -> tuple[str, str]:
    """Split at the first `=`, `:` or blank that no backslash hides; blanks around it belong to neither side."""
    at = 0
    while at < len(line) and line[at] not in "=:" and line[at] not in _BLANKS:
        at += 2 if line[at] == "\\" else 1
    key, rest = line[:at], line[at:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return key, rest


def _unescaped(text: str) -> str:
    """Raises ValueError for `\\u` without four hexadecimal digits behind it."""
    if "\\" not in text:
        return text
    made: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\" or at + 1 == len(text):
            made.append(text[at])
            at += 1
        elif text[at + 1] == "u":
            digits = text[at + 2 : at + 6]
            if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                raise ValueError(f"the escape {text[at : at + 6]!r}")
            made.append(chr(int(digits, 16)))
            at += 6
        else:
            made.append(_ESCAPES.get(text[at + 1], text[at + 1]))
            at += 2
    joined = "".join(made)
    return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def written(key: str, value: str) -> str:
    """Return the line that `read` reads as this key, which has no signs that need an escape, and this value."""
    signs = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    text = "".join(signs.get(sign) or (sign if " " <= sign <= "~" else _escaped(sign)) for sign in value)
    return f"{key}={chr(92) if text[:1] == ' ' else ''}{text}\n"


def _escaped(sign: str) -> str:
    data = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))
