"""One request to one server, as raw bytes, and its answer in a form in which two servers can be compared.

Of an answer everything counts but what `masks` takes out: the status line, header fields, framing, chunks, body, and
whether the connection was closed behind it.
"""

import hashlib
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.harness.raw_http import HOST

PATIENCE = 30.0
"""Seconds after which no answer is expected any more: the original leaves some requests without one."""

LONGER = 150.0
"""The same where workers may have to be started first."""

CLOSES = 0.1
"""Seconds in which a server closes a connection that it will not go on with, unless that is known to be so."""


@dataclass(frozen=True)
class Request:
    """What is sent to one of the listeners: `data` over HTTP, messages by their fields over gRPC. In either a word such
    as KEY:inference stands for that key.
    """

    name: str
    is_bad: bool
    listener: str
    data: bytes = b""
    rpc: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()

    def digest(self) -> str:
        """What is sent, in a few letters: a record of another request is none of this one."""
        told = repr((self.listener, self.data, self.rpc, self.messages, self.metadata))
        return hashlib.sha256(told.encode()).hexdigest()[:12]


MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d+Z?"), "TIME"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), "ADDRESS"),
    (re.compile(r'("(?:id|pid|memoryUsage)": )"?\d+"?'), r"\1MASKED"),
)
"""What no two servers have in common: numbers that name a request, a time, a port, a process, bytes of memory."""


def masked(text: str) -> str:
    """The text without what no two servers have in common."""
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


def over_http(data: bytes, port: int, closes: float = CLOSES, patience: float = PATIENCE) -> dict[str, Any]:
    """Send it on a connection of its own, and read the answer to the end of its body."""
    with socket.create_connection((HOST, port), patience) as plug:
        plug.sendall(data)
        try:
            return _answer(plug, data.split(b" ", 1)[0] == b"HEAD", closes)
        except ConnectionError:
            return {"status": "closed without an answer"}
        except TimeoutError:
            return {"status": "no answer"}


def _answer(plug: socket.socket, is_bare: bool, closes: float) -> dict[str, Any]:
    reader = _Reader(plug)
    head = reader.line()
    if head == "HTTP/1.1 100 Continue":
        reader.line()
        head = reader.line()
    fields: list[str] = []
    while line := reader.line():
        name, _, value = line.partition(":")
        fields.append(f"{name.lower()}: {masked(value.strip())}")
    answer: dict[str, Any] = {"status": head.partition(" ")[2], "fields": sorted(map(_length_masked, fields))}
    found = dict(field.split(": ", 1) if ": " in field else (field.rstrip(":"), "") for field in fields)
    if found.get("transfer-encoding") == "chunked":
        answer["chunks"] = [masked(chunk.decode("latin-1")) for chunk in reader.chunks()]
        if reader.is_broken:
            answer["chunks"].append("broken off")
    elif "content-length" in found:
        body = b"" if is_bare else reader.exactly(int(found["content-length"]))
        answer["body"] = masked(body.decode("latin-1"))
    else:
        answer["body"] = masked(reader.rest().decode("latin-1"))
    answer["closes"] = reader.is_broken or reader.ends(closes)
    return answer


def _length_masked(field: str) -> str:
    """The length of a body is told by the body, part of which may be masked."""
    return re.sub(r"^content-length: [1-9]\d*$", "content-length: OF THE BODY", field)


class _Reader:
    def __init__(self, plug: socket.socket) -> None:
        self._plug = plug
        self._held = b""
        self.is_broken = False

    def line(self) -> str:
        while b"\r\n" not in self._held:
            self._more()
        line, self._held = self._held.split(b"\r\n", 1)
        return line.decode("latin-1")

    def exactly(self, size: int) -> bytes:
        while len(self._held) < size:
            self._more()
        body, self._held = self._held[:size], self._held[size:]
        return body

    def chunks(self) -> list[bytes]:
        found: list[bytes] = []
        try:
            while size := int(self.line(), 16):
                found.append(self.exactly(size))
                self.line()
            self.line()
        except ConnectionError:
            self.is_broken = True
        return found

    def rest(self) -> bytes:
        try:
            while True:
                self._more()
        except ConnectionError:
            self.is_broken = True
        return self._held

    def ends(self, seconds: float) -> bool:
        """Is the connection closed, by either kind of end, within so many seconds?"""
        if not seconds:
            return False
        self._plug.settimeout(seconds)
        try:
            return not self._plug.recv(1)
        except TimeoutError:
            return False
        except ConnectionError:
            return True

    def _more(self) -> None:
        data = self._plug.recv(2**16)
        if not data:
            raise ConnectionError
        self._held += data
