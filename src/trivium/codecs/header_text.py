"""Text of HTTP header fields, read and written: media types, `Accept`, header lines, reason phrases.

Source: RFC 9110, sections 5.5 and 5.6 (fields and parameters), 8.3.1 (types) and 12.5.1 (Accept). Reading never raises;
what a type means, and whether a parameter is missed, others decide.
"""

import re

LONGEST = 8192
"""Characters of a field that are looked at; no header that the front end lets in is longer than a few of these."""

_PARAMETER = re.compile(
    r';[ \t]*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))[ \t]*', re.DOTALL
)
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_PRINTABLE = bytes(byte if 32 <= byte < 127 else ord("?") for byte in range(256))
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


JSON = b"Content-Type: application/json\r\n"
"""The header line of an answer in JSON."""

NOT_CACHED = {
    "Pragma": "no-cache",
    "Cache-Control": "no-cache; no-store, must-revalidate, private",
    "Expires": "Thu, 01 Jan 1970 00:00:00 UTC",
}
"""Header fields by which DJL and TorchServe keep every answer out of caches."""

_NOT_CACHED_LINES = b"".join(f"{name}: {value}\r\n".encode() for name, value in NOT_CACHED.items())


def request_id_line(request_id: str) -> bytes:
    """Return the header line `x-request-id`; what is not printable ASCII becomes a question mark."""
    return b"x-request-id: %b\r\n" % request_id.encode("latin-1", "replace").translate(_PRINTABLE)


def uncached_lines(request_id: str) -> bytes:
    """Return the header lines of every answer of DJL and TorchServe: the request's id, and `NOT_CACHED`."""
    return request_id_line(request_id) + _NOT_CACHED_LINES


def is_name(name: str) -> bool:
    """Can this be the name of a header field?"""
    return _NAME.fullmatch(name) is not None


def has_controls(value: str) -> bool:
    """Has the value characters that a header line cannot carry, such as line ends?"""
    return _CONTROLS.search(value) is not None


def without_controls(value: str) -> str:
    """Return the value with a space for each character that a header line cannot carry."""
    return _CONTROLS.sub(" ", value)


def reason_phrase(text: str) -> bytes:
    """Return a message as a reason phrase: one line of bounded length. The front end keeps out what is not ASCII."""
    return " ".join(text[:1000].split()).encode("latin-1", "replace")
