"""Damaged requests for a real server of each profile, and how they are sent: nothing here reads them itself."""

import contextlib
import json
import random
import re
import socket

import numpy as np
from tests.fuzz import forms, http1, http2, v2_json
from tests.fuzz.target import Target
from tests.harness.grpc_messages import request, tensor
from tests.harness.h2_peer import Peer
from tests.harness.raw_http import connect, get, infer_request, post
from tests.harness.raw_http import tensor as json_tensor

from trivium.wires.v2.grpc import INFER, STREAM_INFER

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_DATA = b"0123456789"


def _http(profile: str) -> tuple[bytes, ...]:
    header = json.dumps({"inputs": [v2_json.blob("x", "FP32", [1, 4], 16)]}).encode()
    length = b"Inference-Header-Content-Length: %d\r\n" % len(header)
    binary = post("/v2/models/echo/infer", header + np.ones(4, "<f4").tobytes(), length)
    every = (
        infer_request("echo", json_tensor("x", [[1, 2, 3, 4]], [1, 4])),
        binary,
        get("/v2/models/echo") + get("/v2/health/ready"),
        post("/v2/models/echo/generate", b'{"x": [1, 2, 3, 4]}'),
    )
    if profile == "triton":
        own = json_tensor("x", [[1, 2, 3, 4]], [1, 4])
        return (*every, infer_request("own", own), post("/v2/models/own/generate", b'{"x": [1, 2, 3, 4]}'))
    kind, _, body = forms.CORPUS[0].partition(b"\n")
    return (
        *every,
        post("/predictions/own", _DATA),
        post("/predictions/own", body, b"Content-Type: " + kind + b"\r\n"),
        post("/invocations?model_name=own", _DATA, b"Content-Type: application/octet-stream\r\n"),
        get("/ping"),
    )


def _h2(profile: str) -> tuple[bytes, ...]:
    message = request(tensor("x", "FP32", [1, 4]), raw=[bytes(16)])
    message.model_name = "echo"
    infer = message.SerializeToString()
    whole = []
    for method in (INFER, STREAM_INFER):
        peer = Peer()
        whole.append(peer.greeting() + peer.call(1, method, infer) + peer.call(3, method, infer, infer[:20]))
    return tuple(whole)


def _nowhere(data: bytes, chance: random.Random) -> None:
    raise AssertionError("a server reads it")


def http_target(profile: str) -> Target:
    """Requests that the profile serves, to be damaged."""
    tokens = (*http1.TOKENS, *v2_json.TOKENS, *forms.TOKENS)
    return Target(f"http_{profile}", _http(profile), _nowhere, tokens=tokens)


def h2_target(profile: str) -> Target:
    """Conversations over HTTP/2, to be damaged."""
    return Target(f"h2_{profile}", _h2(profile), _nowhere, tokens=http2.TOKENS, rebuild=http2.rebuilt)


def send(port: int, data: bytes) -> bytes:
    """Send it on a connection of its own, and no more; what comes back until the server closes the connection."""
    came = b""
    with connect(port) as plug, contextlib.suppress(ConnectionError):
        with contextlib.suppress(ConnectionError):
            plug.sendall(data)
            plug.shutdown(socket.SHUT_WR)
        while piece := plug.recv(2**16):
            came += piece
    return came


def statuses(came: bytes) -> list[int]:
    """Those of the answers in what came."""
    return [int(status) for status in _STATUS.findall(came)]
