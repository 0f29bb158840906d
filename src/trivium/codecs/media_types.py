"""Media types as header fields write them: `Content-Type`, `Content-Disposition`, `Accept`.

Source: RFC 9110, sections 5.6.6 (parameters), 8.3.1 (types) and 12.5.1 (Accept). It reads what is written and
never raises; what a type means, and whether a parameter is missed, others decide.
"""

import re

LONGEST = 8192
"""Characters of a field that are looked at; no header that the front end lets in is longer than a few of these."""

_PARAMETER = re.compile(
    r';[ \t]*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))[ \t]*', re.DOTALL
)
_QUOTED_PAIR = re.compile(r'\\(["\\])')


def essence(field: str) -> str:
    """Type and subtype in lower case, without parameters; empty for an empty field."""
    return field.partition(";")[0].strip().lower()


def parameters(field: str) -> dict[str, str]:
    """The parameters behind the first `;`, names in lower case, quotes taken off; of two alike the first counts.

    Only `\\"` and `\\\\` are unescaped: old browsers write the backslashes of a path as they are. What follows a
    parameter that cannot be read is left out.
    """
    field = field[:LONGEST]
    found: dict[str, str] = {}
    at = field.find(";")
    while at >= 0 and (match := _PARAMETER.match(field, at)):
        at = match.end()
        if at < len(field) and field[at] != ";":  # a quote that does not end, or text behind one
            break
        quoted, plain = match[2], match[3]
        value = plain if quoted is None else _QUOTED_PAIR.sub(r"\1", quoted)
        found.setdefault(match[1].lower(), value)
    return found


def by_preference(accept: str) -> tuple[str, ...]:
    """The types of an `Accept` field, the most wanted first and those of quality 0 left out; ranges are kept.

    Of the same quality the order of the field decides, but a type goes before a range.
    """
    ranked: list[tuple[float, int, str]] = []
    for entry in accept[:LONGEST].split(","):
        name = essence(entry)
        quality = _quality(parameters(entry).get("q", "1"))
        if name and quality > 0:
            ranked.append((-quality, name.count("*"), name))
    ranked.sort(key=lambda entry: entry[:2])  # stable: the order of the field is kept
    return tuple(name for _, _, name in ranked)


def _quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 1.0  # not understood: as if it had not been said
    return quality if 0 <= quality <= 1 else 1.0
