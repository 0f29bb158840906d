"""From an `HttpAnswer` to the buffers that go out, by RFC 9112: status line, fields, length or chunks.

Pure; knows no connection. Content-Length, Transfer-Encoding and Connection are written here and only here.
"""

from http import HTTPStatus

from trivium.types.wire import HttpAnswer

Buffers = list[bytes | memoryview]

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"Connection: close\r\n"
KEEP_ALIVE = b"Connection: keep-alive\r\n"  # for HTTP/1.0, where it is not the default
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LAST_CHUNK = b"0\r\n\r\n"

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_OK = _STATUS_LINES[200]
_BODILESS = (204, 304)  # RFC 9110 8.6 and 15.4.5: neither a body nor, for 204, a length


def status_line(status: int, reason: bytes | None = None) -> bytes:
    """With the standard phrase, if there is one, or another: what is no printable ASCII in it becomes '?'."""
    if reason is None:
        return _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return b"HTTP/1.1 %d %s\r\n" % (status, bytes(c if 32 <= c < 127 else 63 for c in reason))


_lengths: dict[int, bytes] = {}


def _length_line(size: int) -> bytes:
    line = _lengths.get(size)
    if line is None:
        line = b"Content-Length: %d\r\n" % size
        if len(_lengths) < 4096:
            _lengths[size] = line
    return line


def whole(answer: HttpAnswer, connection: bytes, is_head: bool) -> Buffers:
    """An answer of one part. `connection` is one of the lines above, or empty."""
    status, reason = answer.status, answer.reason
    if status == 200 and reason is None and not is_head:
        buffers: Buffers = [_OK, answer.fields, _length_line(answer.size), connection, b"\r\n"]
        for buffer in answer.buffers:  # a star would be one means of the language more, which is in no cache
            buffers.append(buffer)
        return buffers
    start = status_line(status, reason)
    if status in _BODILESS:
        return [start, answer.fields, connection, b"\r\n"]
    length = _length_line(answer.size)
    if is_head:
        return [start, answer.fields, length, connection, b"\r\n"]
    return [start, answer.fields, length, connection, b"\r\n", *answer.buffers]


def opening(answer: HttpAnswer, framing: bytes) -> Buffers:
    """The head of an answer in parts; `framing` is CHUNKED, or CLOSE where the end of the connection ends it."""
    return [status_line(answer.status, answer.reason), answer.fields, framing, b"\r\n"]


def part(answer: HttpAnswer, is_chunked: bool) -> Buffers:
    """One part's body. An empty one writes nothing: an empty chunk would end the answer."""
    buffers: Buffers = []
    if answer.size and is_chunked:
        buffers += (b"%x\r\n" % answer.size, *answer.buffers, b"\r\n")
    elif answer.size:
        buffers += answer.buffers
    if answer.final and is_chunked:
        buffers.append(LAST_CHUNK)
    return buffers
