"""Input that costs a server more than it costs its sender, legal or not: of 64 MiB at most, drawn by a seed.

Each case is the bytes that one client sends, over HTTP or HTTP/2, to a model of each kind. Knows no server.
"""

import io
import json
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from hpack import Encoder
from tests.harness.h2_peer import USUAL, prefixed
from tritonclient.grpc import service_pb2

from trivium.codecs.protobuf_schema import classes_of
from trivium.frontends.h2 import frames

MIB = 2**20
MOST = 64 * MIB
MODELS = ("identity", "handler", "onnx")
DJL_PREDICT = "/ai.djl.serving.grpc.proto.Inference/Predict"
DJL = classes_of(
    "hostile",
    {
        "InferenceRequest": "1 string model_name\n2 string model_version\n4 map<string,bytes> headers\n5 bytes input"
    },
)
UNARY = "/inference.GRPCInferenceService/ModelInfer"
LOAD = "/inference.GRPCInferenceService/RepositoryModelLoad"


@dataclass(frozen=True)
class HostileCase:
    """`pieces` are sent one after another, on one connection of the wire named."""

    name: str
    wire: str
    pieces: tuple[bytes, ...]


def http_head(model: str, size: int | None, *fields: bytes) -> bytes:
    length = b"Transfer-Encoding: chunked" if size is None else b"Content-Length: %d" % size
    lines = (b"POST /v2/models/%b/infer HTTP/1.1" % model.encode(), b"Host: t", length, *fields)
    return b"\r\n".join(lines) + b"\r\n\r\n"


def binary_request(
    model: str, datatype: str, count: int, blob: bytes, as_json: bool = False
) -> tuple[bytes, ...]:
    entry = {
        "name": "x",
        "shape": [count],
        "datatype": datatype,
        "parameters": {"binary_data_size": len(blob)},
    }
    text = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": not as_json}}).encode()
    head = http_head(model, len(text) + len(blob), b"Inference-Header-Content-Length: %d" % len(text))
    return head + text, blob


def json_request(model: str, datatype: str, count: int, data: bytes) -> tuple[bytes, ...]:
    text = b'{"inputs":[{"name":"x","shape":[%d],"datatype":"%b","data":%b}]}' % (
        count,
        datatype.encode(),
        data,
    )
    return http_head(model, len(text)), text


Make = Callable[[random.Random, str, int], tuple[bytes, ...]]
"""Of a chance, a model and a size in bytes."""


def empty_strings(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    return binary_request(f"{model}_text", "BYTES", size // 4, bytes(size // 4 * 4), chance.random() < 0.3)


def short_strings(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    some = b"".join(
        (length := chance.randrange(6)).to_bytes(4, "little") + b"x" * length for _ in range(1000)
    )
    times = size // len(some)
    return binary_request(f"{model}_text", "BYTES", 1000 * times, some * times)


def broken_strings(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    return binary_request(f"{model}_text", "BYTES", size // 4 - 1, bytes(size // 4 * 4 - 8) + b"\xff" * 4)


def long_strings(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    count = chance.choice([1, 7])
    return binary_request(f"{model}_text", "BYTES", count, _long(chance, size // count - 4) * count)


def _long(chance: random.Random, length: int) -> bytes:
    """An element of about that length, of letters of one, two, three or four bytes."""
    text = chance.choice(["x", "\u00e9", "\u20ac", "\U0001f600"]).encode()
    text *= length // len(text)
    return len(text).to_bytes(4, "little") + text


def numbers_as_strings(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    """For the one model that spells numbers."""
    array = np.random.default_rng(chance.randrange(99)).random(size // 8, np.float32)
    return binary_request("onnx_spelt", "FP32", array.size, array.tobytes(), chance.random() < 0.3)


def numbers_as_json(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    array = np.random.default_rng(chance.randrange(99)).random(size // 16, np.float32)
    return binary_request(f"{model}_real", "FP32", array.size, array.tobytes(), True)


def json_numbers(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    one = chance.choice([b"0", b"-1.5e3", b"0.1234567"])
    count = size // 4 // (len(one) + 1)
    return json_request(f"{model}_real", "FP32", count, b"[" + b",".join([one] * count) + b"]")


def json_nested(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    one = chance.choice([b"[0]", b"[[1,2],[3]]", b"[[],0]"])
    count = size // 4 // (len(one) + 1)
    return json_request(f"{model}_real", "FP32", count, b"[" + b",".join([one] * count) + b"]")


def json_strings(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    one = chance.choice([b'""', b'"\\""', b'"a,b]"', b'"\\\\"'])
    count = size // 4 // (len(one) + 1)
    return json_request(f"{model}_text", "BYTES", count, b"[" + b",".join([one] * count) + b"]")


def json_long_strings(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    one = chance.choice(["x", "\u00e9", "\\u20ac", "\\n"]).encode()
    count = chance.choice([1, 7])
    text = b'"%b"' % (one * ((size - 999) // count // len(one)))
    return json_request(f"{model}_text", "BYTES", count, b"[" + b",".join([text] * count) + b"]")


def _prediction(model: str, text: bytes) -> tuple[bytes, ...]:
    lines = (b"POST /predictions/%b HTTP/1.1" % model.encode(), b"Host: t", b"Content-Type: application/json")
    return b"\r\n".join((*lines, b"Content-Length: %d" % len(text))) + b"\r\n\r\n", text


def foreign_numbers(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    one = chance.choice([b"0", b"0.1234567", b"[1,2]"])
    count = (size - 99) // (len(one) + 1)
    text = b",".join([one] * count)
    return _prediction(f"{model}_real", chance.choice([b'{"x": [%b]}', b"[%b]", b'{"x": [%b]']) % text)


def foreign_strings(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    one = chance.choice([b'""', b'"\\""', b'"a,b]"'])
    count = size // 4 // (len(one) + 1)
    return _prediction(f"{model}_text", b'{"x": [%b]}' % b",".join([one] * count))


def many_names(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    """Much beside the data: inputs, outputs, dims, parameters."""
    numbers = b"[" + b"0," * (size // 2 - 99) + b"0]"
    text = {
        "inputs": b'{"inputs":[%b{}]}' % (b'{"name":"x","datatype":"FP32","shape":[0]},' * (size // 44 - 9)),
        "outputs": b'{"outputs":[%b{}],"inputs":[]}' % (b'{"name":"a"},' * (size // 13 - 9)),
        "dims": b'{"inputs":[{"name":"x","datatype":"FP32","shape":%b,"data":[0]}]}' % numbers,
        "parameters": b'{"parameters":{"a":%b},"inputs":[]}' % numbers,
        "twice": b'{"outputs":%b,"outputs":[],"inputs":[]}' % numbers,
    }[chance.choice(["inputs", "outputs", "dims", "parameters", "twice"])]
    return http_head(f"{model}_real", len(text)), text


def generated(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    numbers = b"[" + b"0," * (size // 2 - 99) + b"0]"
    text = chance.choice([b'{"x":%b}', b'{"x":0,"y":{"a":%b}}']) % numbers
    head = http_head(f"{model}_real", len(text)).replace(b"/infer ", b"/generate ")
    return head, text


def _foreign(model: str, body: bytes, kind: bytes, accept: bytes = b"*/*") -> tuple[bytes, ...]:
    lines = (b"POST /predictions/%b HTTP/1.1" % model.encode(), b"Host: t", b"Content-Type: " + kind)
    more = (b"Accept: " + accept, b"Content-Length: %d" % len(body))
    return b"\r\n".join((*lines, *more)) + b"\r\n\r\n", body


def foreign_arrays(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    """Texts and numbers in numpy's files; an npz unpacks to more than it has."""
    file, kind = io.BytesIO(), chance.choice(["S1", "U1", "f4"])
    array = np.zeros(size // 4 // np.dtype(kind).itemsize, kind)
    is_packed = chance.random() < 0.5
    if is_packed:
        np.savez_compressed(file, x=array)
    else:
        np.save(file, array)
    media = b"application/x-npz" if is_packed else b"application/x-npy"
    return _foreign(f"{model}_{'real' if kind == 'f4' else 'text'}", file.getvalue(), media)


def foreign_lists(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    """An NDList of texts without a letter."""
    count = size // 8
    words = b"".join(len(word).to_bytes(2, "big") + word for word in (b"DENSE", b"STRING"))
    head = b"\0\0\0\1\0\4NDAR\0\0\0\3\1\0\1x" + words
    shape = (1).to_bytes(4, "big") + count.to_bytes(8, "big") + b"\0\0\0\1\0?" + count.to_bytes(4, "big")
    return _foreign(f"{model}_text", head + shape + bytes(2 * count), b"tensor/ndlist")


def foreign_answers(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    """Texts that are wanted in another form."""
    accept = chance.choice([b"tensor/npz", b"tensor/ndlist", b"application/json"])
    text = b'{"x": [%b""]}' % (b'"",' * (size // 16))
    return _foreign(f"{model}_text", text, b"application/json", accept)


def foreign_long_strings(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    one = chance.choice(["x", "\u00e9", "\\\\", "\\n"]).encode()
    return _foreign(
        f"{model}_text", b'{"x": ["%b"]}' % (one * ((size - 99) // len(one))), b"application/json"
    )


def tiny_chunks(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    return http_head(f"{model}_real", None), b"1\r\nx\r\n" * (size // 24), b"0\r\n\r\n"


def pipelined(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    return (b"GET /v2/health/live HTTP/1.1\r\nHost:t\r\n\r\n" * (size // 512),)


def declared_only(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    return (http_head(chance.choice([f"{model}_real", "nobody"]), MOST),)


def unpacks(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    body = zlib.compress(json_request(f"{model}_real", "FP32", 9, b"[" + b"0," * (size // 4) + b"0]")[1])
    return http_head(f"{model}_real", len(body), b"Content-Encoding: deflate"), body


GREETING = frames.PREFACE + frames.settings([(frames.INITIAL_WINDOW_SIZE, frames.MOST_WINDOW)])
OPEN_WINDOW = frames.window_update(0, frames.MOST_WINDOW - frames.DEFAULT_WINDOW)


def opened(stream: int, path: str = UNARY) -> bytes:
    block = Encoder().encode([*USUAL[:2], (":path", path), *USUAL[2:]])
    return frames.headers(stream, block, False)


def grpc_message(message: service_pb2.ModelInferRequest) -> tuple[bytes, ...]:
    return grpc_bytes(message.SerializeToString())


def grpc_bytes(message: bytes, path: str = UNARY) -> tuple[bytes, ...]:
    payload = prefixed(message)
    step = 2**14
    data = [
        frames.head(len(part), frames.DATA, int(at + step >= len(payload)), 1) + part
        for at in range(0, len(payload), step)
        for part in (payload[at : at + step],)
    ]
    return GREETING, OPEN_WINDOW + opened(1, path), b"".join(data)


def grpc_strings(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    message = service_pb2.ModelInferRequest(model_name=f"{model}_text")
    message.inputs.add(name="x", datatype="BYTES", shape=[size // 4])
    message.raw_input_contents.append(bytes(size // 4 * 4))
    return grpc_message(message)


def grpc_long_strings(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    message = service_pb2.ModelInferRequest(model_name=f"{model}_text")
    message.inputs.add(name="x", datatype="BYTES", shape=[1])
    message.raw_input_contents.append(_long(chance, size - 999))
    return grpc_message(message)


def grpc_names(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    """Much beside the data, as in JSON."""
    message = service_pb2.ModelInferRequest(model_name=f"{model}_real")
    what = chance.choice(["inputs", "outputs", "dims", "parameters"])
    one = service_pb2.ModelInferRequest()
    if what == "dims":
        one.inputs.add(name="x", datatype="FP32", shape=[1] * (size - 999))
    elif what == "inputs":
        one.inputs.add(name="x", datatype="FP32", shape=[0])
    elif what == "outputs":
        one.outputs.add(name="y")
    else:
        one.parameters["a"].int64_param = 1
    text = one.SerializeToString()
    return grpc_bytes(message.SerializeToString() + text * ((size - 99) // len(text)))


def grpc_maps(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    """Parameters of many names, in whatever message has them."""
    path, field = chance.choice([(UNARY, 4), (LOAD, 3)])
    return grpc_bytes(_map(field, b"\x10\x01", size), path)


def djl_headers(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    """Headers of many names, in DJL's own service."""
    return grpc_bytes(_map(4, b"", size), DJL_PREDICT)


def _map(field: int, value: bytes, size: int) -> bytes:
    """A map in some field, whose keys are many and whose values are this."""
    rest = b"\x12%c%b" % (len(value), value)
    head = b"%c%c\x0a\x05" % (field << 3 | 2, 7 + len(rest))
    return b"".join(b"%b%05x%b" % (head, at % 2**20, rest) for at in range(size // (9 + len(rest))))


def djl_numbers(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    """DJL's own service, whose answer is wanted as JSON."""
    file = io.BytesIO()
    np.save(file, np.random.default_rng(chance.randrange(99)).random(size // 16, np.float32))
    message = DJL["InferenceRequest"](model_name=f"{model}_real", input=file.getvalue())
    message.headers["accept"], message.headers["content-type"] = b"application/json", b"application/x-npy"
    return grpc_bytes(message.SerializeToString(), DJL_PREDICT)


def grpc_contents(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    message = service_pb2.ModelInferRequest(model_name=f"{model}_text")
    entry = message.inputs.add(name="x", datatype="BYTES", shape=[size // 8])
    entry.contents.bytes_contents.extend([b""] * (size // 8))
    return grpc_message(message)


def grpc_varints(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    message = service_pb2.ModelInferRequest(model_name=f"{model}_real")
    entry = message.inputs.add(name="x", datatype="INT64", shape=[size // 4])
    entry.contents.int64_contents.extend([1] * (size // 4))
    return grpc_message(message)


def table_updates(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    block = b"\x20" * 16_000
    return GREETING, b"".join(frames.headers(stream, block, True) for stream in range(1, size // 8000, 2))


def huffman(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    block = Encoder().encode([*USUAL[:2], (":path", "/" + "~" * 7000), *USUAL[2:]], huffman=True)
    count = size // 4 // len(block)
    return GREETING, b"".join(frames.headers(2 * at + 1, block, True) for at in range(count))


def tiny_data(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    one = frames.head(1, frames.DATA, 0, 1) + b"\0"
    return GREETING, opened(1), one * (size // 5 // len(one))


def padded_data(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    one = frames.head(256, frames.DATA, frames.PADDED, 1) + b"\xff" + bytes(255)
    return GREETING, opened(1), one * (size // 16 // len(one))


def acknowledgements(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    one = chance.choice([frames.SETTINGS_ACK, frames.ping(b"unasked!", True)])
    return GREETING, one * (size // 5 // len(one))


def resets(chance: random.Random, model: str, size: int) -> tuple[bytes, ...]:
    count = size // 512
    return (
        GREETING,
        b"".join(opened(2 * at + 1) + frames.reset(2 * at + 1, frames.CANCEL) for at in range(count // 10)),
    )


HTTP: tuple[Make, ...] = (
    empty_strings,
    short_strings,
    broken_strings,
    long_strings,
    numbers_as_strings,
    numbers_as_json,
    json_numbers,
    json_nested,
    json_strings,
    json_long_strings,
    foreign_numbers,
    foreign_strings,
    many_names,
    generated,
    foreign_arrays,
    foreign_lists,
    foreign_answers,
    foreign_long_strings,
    tiny_chunks,
    pipelined,
    declared_only,
    unpacks,
)
GRPC: tuple[Make, ...] = (
    grpc_strings,
    grpc_long_strings,
    grpc_names,
    djl_numbers,
    grpc_contents,
    grpc_varints,
    table_updates,
    huffman,
    tiny_data,
    padded_data,
    acknowledgements,
    resets,
    grpc_maps,
    djl_headers,
)


KINDS = [("http", make) for make in HTTP] + [("grpc", make) for make in GRPC]


def cases(count: int, seed: int = 22) -> Iterator[HostileCase]:
    """So many cases: every kind in turn, to the models in turn, the first of each as large as may be."""
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        wire, make = KINDS[number % len(KINDS)]
        turn = number // len(KINDS)
        model = MODELS[(number + turn) % len(MODELS)]
        size = MOST - MIB if turn == 0 else chance.randrange(MIB, MOST - MIB)
        yield HostileCase(f"{number}-{make.__name__}-{model}-{size}", wire, make(chance, model, size))
