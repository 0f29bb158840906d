"""Requests of many megabytes over both wires: to each route what is right, what is wrong, and what fails in the model;
and clients that wait for the answer, leave, or come together.

Knows no server but by its ports.
"""

import contextlib
import gzip
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.fixtures import models
from tests.harness.h2_peer import Peer, prefixed
from tests.harness.hostile_input import (
    DJL,
    DJL_PREDICT,
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

STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
TORCHSERVE = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/"
_TORCHSERVE = classes_of(
    "large", {"PredictionsRequest": "1 string model_name\n2 string model_version\n3 map<string,bytes> input"}
)
_ENDS = 'input { name: "x" data_type: TYPE_FP32 dims: -1 } output { name: "y" data_type: TYPE_FP32 dims: -1 }'
ACTS = {
    "raises": "raise ValueError('no')",
    "sleeps": "time.sleep(0.1 if size > 2**20 else 0.0)",
    "echoes": "pass",
}
_TRITON = """
    def execute(self, requests):
        size = of(requests[0], "x").nbytes
        {act}
        return [answer(y=np.zeros(1, np.float32)) for request in requests]
"""
_DJL = """
import time
from djl_python import Output
def handle(inputs):
    if inputs.is_empty():
        return None
    size = len(inputs.get_as_bytes())
    {act}
    return Output().add("done")
"""
_PYTORCH = """
import time
def handle(data, context):
    if data is None:
        return None
    size = len(next(iter(data[0].values())))
    {act}
    return ["done"] * len(data)
"""


def write_models(root: Path) -> list[Path]:
    """`triton_raises`, `djl_sleeps` and so on: of each dialect one that raises, one that takes long for much, and one
    that answers; and `identity` and `text`, which give back x as y. Returns what to serve.
    """
    triton, djl, pytorch = (root / dialect for dialect in ("triton", "djl", "pytorch"))
    models.identity(triton, "identity", datatype="FP32", dims="-1")
    models.identity(triton, "text", datatype="STRING", dims="-1")
    for name, act in ACTS.items():
        place(triton, f"triton_{name}", _TRITON.format(act=act), "", _ENDS)
        config = triton / f"triton_{name}" / "config.pbtxt"
        config.write_text(config.read_text().replace("max_batch_size: 4", "max_batch_size: 0"))
        folder = djl / f"djl_{name}"
        folder.mkdir(parents=True)
        (folder / "model.py").write_text(_DJL.format(act=act))
        (folder / "serving.properties").write_text("engine=Python\nminWorkers=1\nmaxWorkers=1\n")
        folder = pytorch / f"pytorch_{name}"
        (folder / "MAR-INF").mkdir(parents=True)
        (folder / "handler.py").write_text(_PYTORCH.format(act=act))
        model = {"modelName": folder.name, "modelVersion": "1.0", "handler": "handler.py"}
        told = json.dumps({"runtime": "python", "model": model})
        (folder / "MAR-INF" / "MANIFEST.json").write_text(told)
    return [triton, djl, pytorch]


# -- bodies ------------------------------------------------------------------------------------------------

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
    start = b"\x93NUMPY\1\0%b" % len(head).to_bytes(2, "little")
    return "application/x-npy", start + head + bytes(size // 4 * 4)


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
TIMES = dict.fromkeys(("csv", "csv_of_short_lines", "csv_that_ends_badly"), 16) | dict.fromkeys(
    ("document", "document_cut_short"), 3
)
"""How many times its size what is made of such a body takes, at least, if it is kept."""


# -- requests ----------------------------------------------------------------------------------------------

Make = Callable[[int], bytes]
"""Of a size in bytes: all that a client sends on its connection."""


@dataclass(frozen=True)
class LargeRequest:
    """What a client sends over a wire, `http` or `grpc`. What is made of it takes `times` its size, at least."""

    name: str
    wire: str
    make: Make
    times: int = 1

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


def binary(model: str, missing: int = 0) -> Make:
    """Tensors behind the document; `missing`: so many elements of them are not there."""
    return lambda size: b"".join(
        binary_request(model, "FP32", size // 4 + missing, bytes(size // 4 * 4), True)
    )


def inline(model: str, missing: int = 0) -> Make:
    def make(size: int) -> bytes:
        numbers = b"[" + b"0," * (size // 2 - 1) + b"0]"
        return b"".join(json_request(model, "FP32", size // 2 + missing, numbers))

    return make


def compressed(model: str) -> Make:
    """A document of that size in a few KiB."""

    def make(size: int) -> bytes:
        _, text = json_request(model, "FP32", size // 2, b"[" + b"0," * (size // 2 - 1) + b"0]")
        return post(f"/v2/models/{model}/infer", gzip.compress(text), b"Content-Encoding: gzip\r\n")

    return make


def called(path: str, message: bytes) -> bytes:
    payload, step = prefixed(message), 2**14
    pieces = [payload[at : at + step] for at in range(0, len(payload), step)]
    data = [frames.head(len(piece), frames.DATA, int(piece is pieces[-1]), 1) + piece for piece in pieces]
    return GREETING + OPEN_WINDOW + opened(1, path) + b"".join(data)


def infers(
    model: str, path: str, missing: int = 0, datatype: str = "FP32", in_contents: bool = False
) -> Make:
    """Raw contents, or such as are read in a thread: texts, and numbers in a field of their own."""

    def make(size: int) -> bytes:
        message = service_pb2.ModelInferRequest(model_name=model)
        entry = message.inputs.add(name="x", datatype=datatype, shape=[size // 4 + missing])
        if in_contents:
            entry.contents.fp32_contents.extend(np.zeros(size // 4, np.float32))
        else:
            message.raw_input_contents.append(bytes(size // 4 * 4))
        return called(path, message.SerializeToString())

    return make


def djl_call(model: str, body: Body) -> Make:
    def make(size: int) -> bytes:
        kind, data = body(size)
        message = DJL["InferenceRequest"](model_name=model, input=data)
        message.headers["content-type"] = kind.encode()
        return called(DJL_PREDICT, message.SerializeToString())

    return make


def torchserve_call(model: str, method: str) -> Make:
    def make(size: int) -> bytes:
        message = _TORCHSERVE["PredictionsRequest"](model_name=model)
        message.input["data"] = bytes(size)
        return called(TORCHSERVE + method, message.SerializeToString())

    return make


DEFERRED = "x-synchronous: false\r\n"
HANDLERS = {"native": ("triton", "djl"), "djl": ("djl",), "torchserve": ("pytorch",)}
"""By profile: of which dialects its clients know handlers."""


def requests(profile: str) -> Iterator[LargeRequest]:
    """All that clients of a profile send. Those of two differ in what DJL Serving and TorchServe have alone."""
    yield from _to_identity(is_djl=profile != "torchserve")
    for handler in HANDLERS[profile]:
        for act in ACTS:
            body = array if handler == "triton" else plain
            yield from _to_handler(f"{handler}_{act}", body, is_djl=profile != "torchserve")
    for model in ("identity", "nobody", *(f"triton_{act}" for act in ACTS)):
        yield from _v2(model, 0)
    yield from _v2("identity", 1)
    for path in ("/v1/chat/completions", "/v2/models/identity/load", "/models", "/predictions/nobody"):
        yield LargeRequest(f"wrong {path}", "http", predicted(path, document))


def _to_identity(is_djl: bool) -> Iterator[LargeRequest]:
    path = "/predictions/identity"
    for body in BODIES:
        name, times = body.__name__, TIMES.get(body.__name__, 1)
        yield LargeRequest(f"predictions {name}", "http", predicted(path, body), times)
        yield LargeRequest(f"in chunks {name}", "http", chunked(path, body), times)
        if is_djl:
            yield LargeRequest(f"deferred {name}", "http", predicted(path, body, DEFERRED), times)
            yield LargeRequest(f"DJL's gRPC {name}", "grpc", djl_call("identity", body), times)


def _to_handler(model: str, body: Body, is_djl: bool) -> Iterator[LargeRequest]:
    path = f"/predictions/{model}"
    yield LargeRequest(f"predictions {model}", "http", predicted(path, body))
    yield LargeRequest(f"in chunks {model}", "http", chunked(path, body))
    yield LargeRequest(f"invocations {model}", "http", predicted(f"/invocations?model_name={model}", body))
    if is_djl:
        yield LargeRequest(f"deferred {model}", "http", predicted(path, body, DEFERRED))
        yield LargeRequest(f"DJL's gRPC {model}", "grpc", djl_call(model, body))
    else:
        yield LargeRequest(f"explanations {model}", "http", predicted(f"/explanations/{model}", body))
        for method in ("Predictions", "StreamPredictions"):
            yield LargeRequest(f"TorchServe's {method} {model}", "grpc", torchserve_call(model, method))


def _v2(model: str, missing: int) -> Iterator[LargeRequest]:
    name = f"{model} less {missing}"
    yield LargeRequest(f"infer binary {name}", "http", binary(model, missing))
    yield LargeRequest(f"infer inline {name}", "http", inline(model, missing), 3)
    yield LargeRequest(f"infer compressed {name}", "http", compressed(model), 3)
    generated = (document, document_cut_short)[missing]
    yield LargeRequest(f"generate {name}", "http", predicted(f"/v2/models/{model}/generate", generated), 3)
    for path in (UNARY, STREAM):
        rpc = path.rpartition("/")[2]
        yield LargeRequest(f"{rpc} raw {name}", "grpc", infers(model, path, missing))
        yield LargeRequest(
            f"{rpc} contents {name}", "grpc", infers(model, path, missing, in_contents=True), 3
        )
        if model == "identity":
            yield LargeRequest(f"{rpc} text {name}", "grpc", infers("text", path, missing, "BYTES"), 3)


# -- clients -----------------------------------------------------------------------------------------------

_WHOLE = slice(None)


def _heard(plug: socket.socket, wire: str) -> None:
    """Wait for the end of the answer, whatever it is."""
    with contextlib.suppress(OSError, AssertionError):
        if wire == "http":
            read_answer(plug)
            return
        peer = Peer(frames.MOST_WINDOW, frames.MOST_FRAME_SIZE)
        peer.open(1, "/")
        peer.window = frames.MOST_WINDOW
        heard = peer.streams[1]
        while not (heard.has_ended or heard.reset is not None or peer.goaways):
            got = plug.recv(2**20)
            if not got:
                return
            peer.hear(got)
            del heard.data[_WHOLE]


def _ask(port: int, wire: str, data: bytes) -> None:
    with socket.create_connection((HOST, port), 60) as plug:
        with contextlib.suppress(OSError):  # a server that refuses need not take all
            plug.sendall(data)
        _heard(plug, wire)


def waits(port: int, wire: str, data: bytes, count: int) -> None:
    """One after the other, each until it is answered."""
    for _ in range(count):
        _ask(port, wire, data)


def leaves(port: int, wire: str, data: bytes, count: int) -> None:
    """Each goes without a word as soon as it has said all."""
    for _ in range(count):
        plug = socket.create_connection((HOST, port), 60)
        with contextlib.suppress(OSError):
            plug.sendall(data)
        reset(plug)


def come_together(port: int, wire: str, data: bytes, count: int) -> None:
    """All at once, each until it is answered: most of them wait."""
    with ThreadPoolExecutor(count) as threads:
        for asked in [threads.submit(_ask, port, wire, data) for _ in range(count)]:
            asked.result()


Way = Callable[[int, str, bytes, int], None]
WAYS: Mapping[str, Way] = {each.__name__: each for each in (waits, leaves, come_together)}
