"""HTTP by hand: requests as bytes, and answers read from a socket to their last byte and no further.

For tests that send what no client library would. Knows the v2 protocol's JSON form, and no more of it.
"""

import json
import socket
import struct
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
PATIENCE = 60.0
"""Seconds for any one step of a conversation."""


@dataclass(frozen=True)
class Answer:
    """`fields` by their names in lower case."""

    status: int
    fields: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The message of a refusal in v2's form."""
        assert self.status >= 400, self
        message = self.document["error"]
        assert isinstance(message, str)
        return message


def get(path: str, fields: bytes = b"", method: bytes = b"GET") -> bytes:
    """A request without a body; `fields` are whole lines."""
    return b"%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (method, path.encode(), fields)


def post(path: str, body: bytes, fields: bytes = b"") -> bytes:
    """A request with a body, and its true length."""
    return b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n%s" % (
        path.encode(),
        len(body),
        fields,
        body,
    )


def tensor(name: str, data: Any, shape: list[int], datatype: str = "FP32") -> dict[str, Any]:
    """One input in JSON."""
    return {"name": name, "shape": shape, "datatype": datatype, "data": data}


def infer_request(model: str, *inputs: dict[str, Any], **more: Any) -> bytes:
    """The bytes of an infer request with these inputs; `more` are other keys of the document."""
    document = {"inputs": list(inputs), **more}
    return post(f"/v2/models/{model}/infer", json.dumps(document).encode())


def echo_request(model: str, rows: list[list[float]]) -> bytes:
    """For a model with one input `x` of FP32[rows,n]."""
    return infer_request(model, tensor("x", rows, [len(rows), len(rows[0])]))


def infer(port: int, model: str, rows: list[list[float]]) -> list[list[float]]:
    """What such a model answers."""
    answer = ask(port, echo_request(model, rows))
    assert answer.status == 200, answer
    (output,) = answer.document["outputs"]
    flat, width = output["data"], output["shape"][1]
    return [flat[start : start + width] for start in range(0, len(flat), width)]


def connect(port: int) -> socket.socket:
    """A connection; every step on it takes a minute at most."""
    return socket.create_connection((HOST, port), PATIENCE)


def ask(port: int, request: bytes) -> Answer:
    """One request on a connection of its own."""
    with connect(port) as plug:
        plug.sendall(request)
        return read_answer(plug)


def read_answer(plug: socket.socket) -> Answer:
    """The next answer, whose length its head must tell, or the head of one in parts; not a byte beyond it.
    ConnectionError if none comes, AssertionError if it breaks off in the middle.
    """
    head = _receive(plug, 1)
    try:
        while not head.endswith(b"\r\n\r\n"):
            head += _receive(plug, 1)
        line, *lines = head.decode("latin-1").rstrip().split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
        body = b""
        is_without = line.split(" ")[1] in ("204", "304") or fields.get("transfer-encoding") == "chunked"
        size = 0 if is_without else int(fields["content-length"])
        while rest := size - len(body):
            body += _receive(plug, rest)
    except ConnectionError as error:
        raise AssertionError(f"an answer broke off behind {head!r}") from error
    return Answer(int(line.split()[1]), fields, body)


def _receive(plug: socket.socket, most: int) -> bytes:
    data = plug.recv(most)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data


def reset(plug: socket.socket) -> None:
    """Leave without a word: the other end sees a reset, not an end."""
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    plug.close()
