"""A request body as parts: the fields and files of a form, or the body as one part without a name.

Source: RFC 7578 (multipart/form-data) with the framing of RFC 2046, section 5.1, and the form encoding of the
URL standard. Parts of a multipart body view it. The time is linear in the body, whatever it holds: a delimiter
is searched for once, and the header of a part only so far.
"""

import re
from urllib.parse import unquote, unquote_to_bytes

from trivium.codecs.header_text import essence, parameters
from trivium.types.errors import Code, ServeError
from trivium.types.payload import RawPart

MULTIPART = "multipart/form-data"
URL_ENCODED = "application/x-www-form-urlencoded"

MAX_PARTS = 1000
MAX_HEADER_BYTES = 16384
MAX_URL_ENCODED_BYTES = 8 * 2**20
"""Unescaping takes a multiple of the memory that the form does, so there is a bound of its own."""

_SPACE = 64
"""Bytes in front of JSON, and behind it, that may be blank."""

_LONGEST_BOUNDARY = 70  # RFC 2046, section 5.1.1
_BLANK_LINE = re.compile(rb"\r\n\r\n")
_FOLD = re.compile(r"\r\n[ \t]+")
_AS_IT_IS = frozenset({"", "7bit", "8bit", "binary"})


def parts(content_type: str, body: bytes | memoryview) -> tuple[RawPart, ...]:
    """The fields of a form in their order, repeated ones kept; of any other content type one part with an empty
    name, that content type and the whole body. So is a multipart body whose Content-Type names no boundary, as those
    do that people write by hand: TorchServe and DJL Serving hand it to the model as it is.

    INVALID for a multipart body that is none, TOO_LARGE for more than `MAX_PARTS` fields or an url-encoded form
    beyond `MAX_URL_ENCODED_BYTES`. A token of an url-encoded form without `=` is no field.
    """
    kind = essence(content_type)
    if kind == MULTIPART and (boundary := parameters(content_type).get("boundary")) is not None:
        return _multipart(boundary, memoryview(body))
    if kind == URL_ENCODED:
        return _url_encoded(body)
    return (RawPart(body, content_type),)


def called_form(content_type: str, body: bytes | memoryview) -> RawPart | None:
    """The whole body, where it is called an url-encoded form and is an object or a list of JSON by its first and its
    last character; else None. `curl -d` calls everything a form that is not said to be something else.
    """
    if URL_ENCODED not in content_type.lower():
        return None
    ends = bytes(body[:_SPACE]).lstrip()[:1] + bytes(body[-_SPACE:]).rstrip()[-1:]
    return RawPart(body, "application/json") if ends in (b"{}", b"[]") else None


def _multipart(boundary: str, body: memoryview) -> tuple[RawPart, ...]:
    if not 0 < len(boundary) <= _LONGEST_BOUNDARY or not boundary.isascii() or not boundary.isprintable():
        raise _malformed(
            f"the Content-Type names the boundary {boundary[:80]!r}, expected 1 to {_LONGEST_BOUNDARY} "
            "printable characters"
        )
    # Literal up to the end of the boundary, so that the search is one pass. A line that only begins with the
    # boundary is data.
    line = rb"--" + re.escape(boundary.encode()) + rb"(--|[ \t]*\r\n)"
    delimiter = re.compile(rb"\r\n" + line)
    found = re.compile(line).match(body) or delimiter.search(body)
    if found is None:
        raise _malformed(f"its {len(body)} bytes have no line that begins with --{boundary}")
    fields: list[RawPart] = []
    while found[1] != b"--":
        number = len(fields) + 1
        if number > MAX_PARTS:
            raise _too_many()
        header, start = _header(body, found.end(), number)
        # The delimiter's line break may be that of the blank line, in front of a part without data.
        found = delimiter.search(body, start - 2)
        if found is None:
            raise _malformed(
                f"part {number} does not end: no delimiter --{boundary} follows its {start} bytes"
            )
        fields.append(_field(header, body[start : max(start, found.start())], number))
    return tuple(fields)


def _header(body: memoryview, start: int, number: int) -> tuple[dict[str, str], int]:
    """The header fields of the part that begins at `start`, and where its data begins."""
    blank = _BLANK_LINE.search(body, start - 2, start + MAX_HEADER_BYTES)
    if blank is None:
        raise _malformed(f"the header of part {number} does not end within {MAX_HEADER_BYTES} bytes")
    text = _text(bytes(body[start : max(start, blank.start())]))
    fields: dict[str, str] = {}
    for line in _FOLD.sub(" ", text).split("\r\n") if text else ():
        name, colon, value = line.partition(":")
        if not colon:
            raise _malformed(f"part {number} has the header line {line[:40]!r}, which has no colon")
        fields[name.strip().lower()] = value.strip()
    return fields, blank.end()


def _field(header: dict[str, str], data: memoryview, number: int) -> RawPart:
    disposition = header.get("content-disposition", "")
    said = parameters(disposition)
    if essence(disposition) != "form-data" or "name" not in said:
        raise _malformed(
            f"part {number} has the Content-Disposition {disposition[:80]!r}, expected form-data with a name"
        )
    coding = header.get("content-transfer-encoding", "").lower()
    if coding not in _AS_IT_IS:
        raise _malformed(
            f"part {number} has the Content-Transfer-Encoding {coding[:40]!r}, which forms do not use"
        )
    filename = _extended(said.get("filename*", "")) or said.get("filename", "")
    return RawPart(data, header.get("content-type", ""), said["name"], filename)


def _extended(value: str) -> str:
    """The text of an extended parameter, `charset'language'escaped` (RFC 8187); empty where it is none."""
    charset, _, rest = value.partition("'")
    _, quote, escaped = rest.partition("'")
    if not quote or charset.lower() not in ("utf-8", "iso-8859-1"):
        return ""
    return unquote(escaped, charset)


def _url_encoded(body: bytes | memoryview) -> tuple[RawPart, ...]:
    if len(body) > MAX_URL_ENCODED_BYTES:
        raise ServeError(
            Code.TOO_LARGE,
            f"The body is an url-encoded form of {len(body)} bytes; at most {MAX_URL_ENCODED_BYTES} are read. "
            f"Send {MULTIPART}, or name the content type that the body really has (curl --data-binary calls "
            "everything a form).",
        )
    text = bytes(body)
    if text.count(b"&") >= MAX_PARTS:
        raise _too_many()
    fields: list[RawPart] = []
    for token in text.split(b"&"):
        name, equals, value = token.replace(b"+", b" ").partition(b"=")
        if equals:
            fields.append(RawPart(unquote_to_bytes(value), "", _text(unquote_to_bytes(name))))
    return tuple(fields)


def _text(raw: bytes) -> str:
    """UTF-8, as browsers send it; what is none is taken byte by byte."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _too_many() -> ServeError:
    return ServeError(
        Code.TOO_LARGE, f"The form has more than {MAX_PARTS} fields. Send fewer, or tensors in one body."
    )


def _malformed(found: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"The body is no multipart/form-data that can be read: {found}. Let the client library write the body "
        "and its Content-Type together (curl -F does).",
    )
