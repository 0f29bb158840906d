"""Requests of many megabytes over both wires, and how their clients behave: each route, each way to fail, wait or leave.

Knows no server but by its ports.
"""

import contextlib
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.fixtures import models
from tests.harness.h2_peer import Peer, prefixed
from tests.harness.hostile_input import (
    DJL,
    GREETING,
    OPEN_WINDOW,
    UNARY,
    binary_request,
    json_request,
    opened,
)
from tests.harness.python_models import place
from tests.harness.raw_http import HOST, post, read_answer, reset
from tritonclient.grpc import service_pb2

from trivium.codecs.protobuf_schema import classes_of
from trivium.frontends.h2 import frames

MIB = 2**20
SMALL = 64
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
DJL_PREDICT = "/ai.djl.serving.grpc.proto.Inference/Predict"
TORCHSERVE = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/"
_TORCHSERVE = classes_of(
    "large", {"PredictionsRequest": "1 string model_name\n2 string model_version\n3 map<string,bytes> input"}
)
_ENDS = 'input { name: "x" data_type: TYPE_FP32 dims: -1 } output { name: "y" data_type: TYPE_FP32 dims: -1 }'
_ACTS = {
    "raises": "raise ValueError('no')",
    "sleeps": "time.sleep(0.3)",
    "echoes": "pass",
}
_TRITON = """
    def execute(self, requests):
        {act}
        return [answer(y=np.zeros(1, np.float32)) for request in requests]
"""
_DJL = """
import time
from djl_python import Output
def handle(inputs):
    if inputs.is_empty():
        return None
    {act}
    return Output().add("done")
"""
MANIFEST = {"runtime": "python", "model": {"modelVersion": "1.0", "handler": "handler.py"}}
_PYTORCH = """
import time
def handle(data, context):
    if data is None:
        return None
    {act}
    return ["done"] * len(data)
"""


def write_models(root: Path) -> Path:
    """`triton_raises`, `djl_sleeps` and so on: of each dialect one that raises, one that takes long and one that
    answers; and `identity`, which gives back x as y.
    """
    models.identity(root, "identity", datatype="FP32", dims="-1")
    models.identity(root, "text", datatype="STRING", dims="-1")
    for name, act in _ACTS.items():
        place(root, f"triton_{name}", _TRITON.format(act=act), "", _ENDS)
        djl = root / f"djl_{name}"
        djl.mkdir()
        (djl / "model.py").write_text(_DJL.format(act=act))
        (djl / "serving.properties").write_text("engine=Python\nminWorkers=1\nmaxWorkers=1\n")
        pytorch = root / f"pytorch_{name}"
        (pytorch / "MAR-INF").mkdir(parents=True)
        (pytorch / "handler.py").write_text(_PYTORCH.format(act=act))
        told = {**MANIFEST, "model": {**MANIFEST["model"], "modelName": pytorch.name}}  # type: ignore[dict-item]
        (pytorch / "MAR-INF" / "MANIFEST.json").write_text(json.dumps(told))
    return root


# -- bodies ----------------------------------------------------------------------------------------------------------

Body = Callable[[int], tuple[str, bytes]]
"""Of a size in bytes: a content type and a body of about that size."""


def csv(size: int) -> tuple[str, bytes]:
    return "text/csv", b"1.5,2\n" * (size // 6)


def csv_of_short_lines(size: int) -> tuple[str, bytes]:
    return "text/csv", b"1\n" * (size // 2)


def csv_that_ends_badly(size: int) -> tuple[str, bytes]:
    return "text/csv", b"1.5,2\n" * (size // 6) + b"x\n"


def array(size: int) -> tuple[str, bytes]:
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }\n" % (size // 4)
    return "application/x-npy", b"\x93NUMPY\1\0%b%b%b" % (
        len(head).to_bytes(2, "little"),
        head,
        bytes(size // 4 * 4),
    )


def array_cut_short(size: int) -> tuple[str, bytes]:
    kind, body = array(size)
    return kind, body[:-2]


def document(size: int) -> tuple[str, bytes]:
    return "application/json", b'{"x": [%b]}' % b",".join([b"0.5"] * (size // 4))


def document_cut_short(size: int) -> tuple[str, bytes]:
    kind, body = document(size)
    return kind, body[:-2]


def form(size: int) -> tuple[str, bytes]:
    head = b'--b\r\nContent-Disposition: form-data; name="data"\r\n\r\n'
    return "multipart/form-data; boundary=b", head + bytes(size) + b"\r\n--b--\r\n"


def form_without_end(size: int) -> tuple[str, bytes]:
    kind, body = form(size)
    return kind, body[:-20]


def plain(size: int) -> tuple[str, bytes]:
    return "text/plain", b"x" * size


BODIES: tuple[Body, ...] = (
    csv,
    csv_of_short_lines,
    csv_that_ends_badly,
    array,
    array_cut_short,
    document,
    document_cut_short,
    form,
    form_without_end,
    plain,
)

# -- requests --------------------------------------------------------------------------------------------------------

Make = Callable[[int], bytes]
"""Of a size in bytes: all that a client sends on its connection."""


@dataclass(frozen=True)
class LargeRequest:
    """What a client sends over a wire, `http` or `grpc`, to a model."""

    name: str
    wire: str
    make: Make

    def __str__(self) -> str:
        return self.name


def predicted(path: str, body: Body, fields: str = "") -> Make:
    def make(size: int) -> bytes:
        kind, data = body(size)
        return post(path, data, f"Content-Type: {kind}\r\n{fields}".encode())

    return make


def chunked(path: str, body: Body) -> Make:
    def make(size: int) -> bytes:
        kind, data = body(size)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: t\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        return head.encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)

    return make


def binary(model: str, excess: int = 0) -> Make:
    """Tensors behind the document; `excess`: so many elements are missing."""
    return lambda size: b"".join(
        binary_request(model, "FP32", size // 4 + excess, bytes(size // 4 * 4), True)
    )


def inline(model: str, excess: int = 0) -> Make:
    def make(size: int) -> bytes:
        return b"".join(
            json_request(model, "FP32", size // 2 + excess, b"[" + b"0," * (size // 2 - 1) + b"0]")
        )

    return make


def called(path: str, message: bytes) -> bytes:
    payload = prefixed(message)
    step = 2**14
    pieces = [payload[at : at + step] for at in range(0, len(payload), step)]
    last = len(pieces) - 1
    data = (
        frames.head(len(piece), frames.DATA, int(number == last), 1) + piece
        for number, piece in enumerate(pieces)
    )
    return GREETING + OPEN_WINDOW + opened(1, path) + b"".join(data)


def infers(model: str, path: str = UNARY, excess: int = 0) -> Make:
    def make(size: int) -> bytes:
        message = service_pb2.ModelInferRequest(model_name=model)
        message.inputs.add(name="x", datatype="FP32", shape=[size // 4 + excess])
        message.raw_input_contents.append(bytes(size // 4 * 4))
        return called(path, message.SerializeToString())

    return make


def infers_text(path: str = UNARY, excess: int = 0) -> Make:
    """Texts, which are read in a thread."""

    def make(size: int) -> bytes:
        message = service_pb2.ModelInferRequest(model_name="text")
        message.inputs.add(name="x", datatype="BYTES", shape=[size // 4 + excess])
        message.raw_input_contents.append(bytes(size // 4 * 4))
        return called(path, message.SerializeToString())

    return make


def infers_contents(model: str, path: str = UNARY, excess: int = 0) -> Make:
    """Numbers in a field of their own, which are read in a thread."""

    def make(size: int) -> bytes:
        message = service_pb2.ModelInferRequest(model_name=model)
        entry = message.inputs.add(name="x", datatype="FP32", shape=[size // 4 + excess])
        entry.contents.fp32_contents.extend(np.zeros(size // 4, np.float32))
        return called(path, message.SerializeToString())

    return make


def djl_call(model: str, body: Body) -> Make:
    def make(size: int) -> bytes:
        kind, data = body(size)
        message = DJL["InferenceRequest"](model_name=model, input=data)
        message.headers["content-type"] = kind.encode()
        return called(DJL_PREDICT, message.SerializeToString())

    return make


def torchserve_call(model: str, method: str = "Predictions") -> Make:
    def make(size: int) -> bytes:
        message = _TORCHSERVE["PredictionsRequest"](model_name=model)
        message.input["data"] = bytes(size)
        return called(TORCHSERVE + method, message.SerializeToString())

    return make


def http(name: str, make: Make) -> LargeRequest:
    return LargeRequest(name, "http", make)


def grpc(name: str, make: Make) -> LargeRequest:
    return LargeRequest(name, "grpc", make)


ACTS = tuple(_ACTS)
DEFERRED = "x-synchronous: false\r\n"


def requests(profile: str) -> Iterator[LargeRequest]:
    """What clients of that profile send: to each route what is right, what is wrong, and what fails in the model."""
    handlers = {"native": ("triton", "djl"), "djl": ("djl",), "torchserve": ("pytorch",)}[profile]
    for body in BODIES:
        yield http(f"predictions-identity-{body.__name__}", predicted("/predictions/identity", body))
        yield http(f"chunked-identity-{body.__name__}", chunked("/predictions/identity", body))
        if profile != "torchserve":
            yield grpc(f"djl-grpc-identity-{body.__name__}", djl_call("identity", body))
            yield http(
                f"deferred-identity-{body.__name__}", predicted("/predictions/identity", body, DEFERRED)
            )
    for handler in handlers:
        for act in ACTS:
            model = f"{handler}_{act}"
            body = array if handler == "triton" else plain
            yield http(f"predictions-{model}", predicted(f"/predictions/{model}", body))
            yield http(f"chunked-{model}", chunked(f"/predictions/{model}", body))
            if profile == "torchserve":
                yield http(f"explanations-{model}", predicted(f"/explanations/{model}", body))
                yield grpc(f"torchserve-grpc-{model}", torchserve_call(model))
                yield grpc(f"torchserve-stream-{model}", torchserve_call(model, "StreamPredictions"))
            else:
                yield http(f"deferred-{model}", predicted(f"/predictions/{model}", body, DEFERRED))
                yield http(f"invocations-{model}", predicted(f"/invocations?model_name={model}", body))
                yield grpc(f"djl-grpc-{model}", djl_call(model, body))
    for model in ("identity", "nobody", *(f"triton_{act}" for act in ACTS)):
        yield http(f"v2-binary-{model}", binary(model))
        yield http(f"v2-inline-{model}", inline(model))
        for path in (UNARY, STREAM):
            way = path.rpartition("/")[2]
            yield grpc(f"{way}-raw-{model}", infers(model, path))
            yield grpc(f"{way}-contents-{model}", infers_contents(model, path))
    for excess in (0, 1):
        yield http(f"v2-binary-off-by-{excess}", binary("identity", excess))
        yield http(f"v2-inline-off-by-{excess}", inline("identity", excess))
        yield http(
            f"generate-{excess}",
            predicted("/v2/models/identity/generate", (document, document_cut_short)[excess]),
        )
        for path in (UNARY, STREAM):
            way = path.rpartition("/")[2]
            yield grpc(f"{way}-raw-off-by-{excess}", infers("identity", path, excess))
            yield grpc(f"{way}-contents-off-by-{excess}", infers_contents("identity", path, excess))
            yield grpc(f"{way}-text-off-by-{excess}", infers_text(path, excess))
    for path in ("/v1/chat/completions", "/v2/models/identity/load", "/models", "/predictions/nobody"):
        yield http(f"wrong-{path}", predicted(path, document))


# -- clients ---------------------------------------------------------------------------------------------------------


def _heard(plug: socket.socket, wire: str) -> None:
    """Wait for the end of the answer, whatever it is."""
    with contextlib.suppress(OSError, AssertionError):
        if wire == "http":
            read_answer(plug)
            return
        peer = Peer(frames.MOST_WINDOW, frames.MOST_FRAME_SIZE)
        peer.open(1, "/")
        peer.window = frames.MOST_WINDOW
        while not (peer.streams[1].has_ended or peer.streams[1].reset is not None or peer.goaways):
            got = plug.recv(2**20)
            if not got:
                return
            peer.hear(got)
            peer.streams[1].data.clear()


def _said(plug: socket.socket, data: bytes) -> None:
    """Send it; a server that refuses need not take all."""
    with contextlib.suppress(OSError):
        plug.sendall(data)


def waits(port: int, wire: str, data: bytes, count: int) -> None:
    """One after the other, each until it is answered."""
    for _ in range(count):
        with socket.create_connection((HOST, port), 60) as plug:
            _said(plug, data)
            _heard(plug, wire)


def leaves(port: int, wire: str, data: bytes, count: int) -> None:
    """Each goes without a word as soon as it has said all."""
    for _ in range(count):
        plug = socket.create_connection((HOST, port), 60)
        _said(plug, data)
        reset(plug)


WAYS: Mapping[str, Callable[[int, str, bytes, int], None]] = {"waits": waits, "leaves": leaves}
