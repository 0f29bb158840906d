"""Text that every answer of DJL's protocol is made of: header lines, reason phrases and indented JSON.

Source: spec sheet `djl`, sections 4.4 and 4.6. Knows nothing of errors, so that an answer without one passes this
module alone.
"""

import msgspec

ALWAYS = (
    b"Pragma: no-cache\r\n"
    b"Cache-Control: no-cache; no-store, must-revalidate, private\r\n"
    b"Expires: Thu, 01 Jan 1970 00:00:00 UTC\r\n"
)
"""Header lines of every answer, after x-request-id."""

JSON = b"Content-Type: application/json\r\n"

_PRINTABLE = bytes(byte if 32 <= byte < 127 else ord("?") for byte in range(256))


def always(request_id: str) -> bytes:
    """Return the header lines of every answer to this request."""
    clean = request_id.encode("latin-1", "replace").translate(_PRINTABLE)
    return b"x-request-id: %b\r\n%b" % (clean, ALWAYS)


def phrase(text: str) -> bytes:
    """Return a message as a reason phrase: one line of bounded length. The front end keeps out what is no ASCII."""
    return " ".join(text[:1000].split()).encode("latin-1", "replace")


def pretty(document: object) -> bytes:
    """Return JSON over several lines, as DJL writes it, with a line end behind it."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
