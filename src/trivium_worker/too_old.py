"""Says in place of a worker that its interpreter is too old, in the syntax and with the library of any Python 3.

Nothing else of this package can be imported then. Whoever asked gets the sentence in the form in which it waits for
what the program says: in a frame, as JSON, or as text.
"""

import json
import os
import socket
import struct
import sys

LEAST = (3, 10)
"""The least Python that runs handlers."""

_FRAME = struct.Struct("<IB")
_REFUSED = 17
_FAILED = "load failed"


def refuse(words: "list[str]") -> None:
    """End the program that has this command line."""
    if words[:1] == ["--tool"]:
        sys.exit(sentence({}))
    if words == ["--complete"]:
        sys.stdout.write(json.dumps({"message": sentence(json.load(sys.stdin)), "code": _FAILED}))
        sys.exit(0)
    wire = socket.socket(fileno=int(words[-3]))
    size, _ = _FRAME.unpack(_received(wire, _FRAME.size))
    told = json.loads(_received(wire, size - 1).decode("utf-8"))
    body = json.dumps({"message": sentence(told), "code": _FAILED}).encode("utf-8")
    wire.sendall(_FRAME.pack(len(body) + 1, _REFUSED) + body)
    sys.stderr.flush()
    os._exit(1)


def sentence(setup: "dict[str, str]") -> str:
    """Return what is wrong with the interpreter, who has named it by the worker's setup, and what to do."""
    return (
        "The interpreter {} ({}) is Python {}.{}.{}, and a handler needs Python {}.{} or newer. Name such a one, or "
        "leave it out for the server's own."
    ).format(sys.executable, setup.get("python", "as named"), *(tuple(sys.version_info[:3]) + LEAST))


def _received(wire: socket.socket, size: int) -> bytes:
    came = b""
    while len(came) < size:
        piece = wire.recv(size - len(came))
        if not piece:
            os._exit(70)
        came += piece
    return came
