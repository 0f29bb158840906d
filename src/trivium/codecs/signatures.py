"""Recognises a body by its first bytes, where its content type says nothing.

Source: sheet `djl`, section 9.1, made a little stricter, so that text is not taken for a header's length. It
looks at the first bytes only, but for `content_type_of`: whether the rest holds what they promise, codecs say.
"""

from collections.abc import Callable

import msgspec

LOOKED_AT = 32
"""Bytes that a signature is looked for in."""

JSON = "application/json"
CSV = "text/csv"
TEXT = "text/plain; charset=utf-8"
BYTES = "application/octet-stream"
UNSAID = frozenset({"", BYTES})
"""Content types that tell nothing."""

Signature = Callable[[bytes], bool]
"""Says of the first `LOOKED_AT` bytes of a body whether it may be of one kind."""

_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)


def is_npz(start: bytes) -> bool:
    """A zip archive, empty ones included."""
    return start[:4] in (b"PK\3\4", b"PK\5\6")


def is_npy(start: bytes) -> bool:
    """numpy's own magic string."""
    return start[:6] == b"\x93NUMPY"


def is_ndlist(start: bytes) -> bool:
    """The number of arrays, then the magic string of the first."""
    return start[4:10] == b"\0\4NDAR"


def is_safetensors(start: bytes) -> bool:
    """The length of a header, which no text begins with, then the header's brace."""
    return start[8:9] == b"{" and start[5:8] == b"\0\0\0"


def is_json(start: bytes) -> bool:
    """Text whose first character opens an object or an array."""
    return start.lstrip(b" \t\r\n")[:1] in (b"{", b"[") and b"\0" not in start


def picture_type(start: bytes) -> str:
    """The content type of the picture that begins so; empty for anything else."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _PICTURES if start.startswith(signature)), "")


def content_type_of(body: bytes | memoryview) -> str:
    """Return a content type for a whole body that came without one: a picture's, JSON's, that of text, or of bytes."""
    start = bytes(body[:LOOKED_AT])
    picture = picture_type(start)
    if picture:
        return picture
    try:
        text = str(body, "utf-8")
    except UnicodeDecodeError:
        return BYTES
    if "\0" in text:
        return BYTES
    return JSON if is_json(start) and _parses(body) else TEXT


def _parses(text: bytes | memoryview) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
