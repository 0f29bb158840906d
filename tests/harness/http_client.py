"""What a client writes and reads: requests, and a strict reader of answers."""

from dataclasses import dataclass


@dataclass
class Seen:
    """An answer as a client sees it."""

    status: int
    fields: dict[bytes, bytes]
    body: bytes


def read_answers(data: bytes, asked_by_head: bool = False) -> list[Seen]:
    """Strict: raises where the bytes are not whole answers."""
    found: list[Seen] = []
    while data:
        head, blank, data = data.partition(b"\r\n\r\n")
        assert blank, f"no whole head: {head!r}"
        line, *lines = head.split(b"\r\n")
        version, status, _ = line.split(b" ", 2)
        assert version == b"HTTP/1.1"
        fields = {name.lower(): value for name, value in (field.split(b": ", 1) for field in lines)}
        body = b""
        if int(status) == 100 or asked_by_head:
            pass
        elif b"content-length" in fields:
            size = int(fields[b"content-length"])
            assert len(data) >= size, "a body is cut short"
            body, data = data[:size], data[size:]
        elif b"transfer-encoding" in fields:
            body, data = _read_chunks(data)
        elif int(status) not in (204, 304):
            body, data = data, b""
        found.append(Seen(int(status), fields, body))
    return found


def _read_chunks(data: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        size, line, data = data.partition(b"\r\n")
        assert line, "chunks are cut short"
        end = int(size, 16)
        assert data[end : end + 2] == b"\r\n"
        body, data, is_last = body + data[:end], data[end + 2 :], end == 0
        if is_last:
            return body, data


def post(verb: str, body: bytes, fields: bytes = b"") -> bytes:
    """A POST with a declared length."""
    head = b"POST /echo/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n"
    return head % (verb.encode(), len(body), fields) + body


def get(verb: str, fields: bytes = b"") -> bytes:
    """A GET without a body."""
    return b"GET /echo/%s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (verb.encode(), fields)
