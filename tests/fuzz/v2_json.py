"""Bodies of the v2 protocol over HTTP, and JSON documents of the other protocols, up to values of ours."""

import json
import random

from tests.fuzz import mutations
from tests.fuzz.target import Change, Target
from tests.harness.payload_bodies import MODELS

from trivium.codecs import json_documents, v2_bodies
from trivium.codecs.binding import Wanted
from trivium.codecs.jsontensors import encode
from trivium.servers.triton.words.v2 import V2
from trivium.types.errors import ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.wire import Body, Head, HttpAnswer
from trivium.types.wire import Target as Route
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.http import KServeHttp
from trivium.wires.v2.infer_request import HEADER_LENGTH
from trivium.wires.v2.routes import Verb

PROTOCOLS = tuple(
    KServeHttp("fuzz", "1", KServeOptions(may_change=True, original=V2, as_original=as_triton))
    for as_triton in (False, True)
)
TOKENS = (
    b'"inputs"', b'"outputs"', b'"data"', b'"shape"', b'"datatype"', b'"name"', b'"parameters"', b'"id"', b'"FP32"',
    b'"BYTES"', b'"BOOL"', b'"INT64"', b'"UINT64"', b'"FP16"', b'"BF16"', b'"binary_data_size"', b'"binary_data"',
    b'"binary_data_output"', b'"classification"', b'"shared_memory_region"', b'"sequence_id"', b'"priority"',
    b'"timeout"', b'"headers"', *mutations.JSON_VALUES,
)  # fmt: skip


def text(document: object) -> bytes:
    return json.dumps(document).encode()


def v2_input(name: str, datatype: str, shape: list[int], **more: object) -> dict[str, object]:
    return {"name": name, "datatype": datatype, "shape": shape, **more}


REQUESTS = (
    {"inputs": [v2_input("a", "FP32", [2], data=[1, 2.5])]},
    {"id": "7", "inputs": [v2_input("a", "FP64", [2, 2], data=[[1, 2], [3, 4]])], "outputs": [{"name": "y"}]},
    {"inputs": [v2_input("a", "INT64", [1], data=[2**62]), v2_input("b", "UINT64", [1], data=[2**64 - 1])]},
    {
        "inputs": [
            v2_input("a", "BYTES", [2], data=["", "ä\n"]),
            v2_input("b", "BOOL", [2], data=[True, False]),
        ]
    },
    {
        "inputs": [v2_input("a", "INT8", [0], data=[])],
        "parameters": {"sequence_id": "x", "sequence_start": True},
    },
    {
        "inputs": [v2_input("a", "UINT8", [1, 3], data=[1, 2, 3])],
        "outputs": [{"name": "y", "parameters": {"classification": 3, "binary_data": True}}],
        "parameters": {"priority": 1, "timeout": 1000, "own": "text", "binary_data_output": False},
    },
    {
        "inputs": [
            v2_input("a", "FP32", [1], parameters={"shared_memory_region": "r", "shared_memory_byte_size": 4})
        ]
    },
)


def rebuilt_json(entry: bytes, change: Change, chance: random.Random) -> bytes:
    return mutations.json_changed(entry, chance)


def check_answer(answer: HttpAnswer) -> None:
    """A refusal can be said."""
    assert answer.status >= 400
    assert answer.size == sum(map(len, answer.buffers))


def decode(protocol: KServeHttp, route: Route, body: bytes, headers: dict[bytes, bytes]) -> None:
    """As a front end does, down to the answer of a refusal."""
    head = Head("POST", "/v2/models/m/infer", "", headers)
    try:
        protocol.is_costly(head, body)
        operation, _ = protocol.decode(head, route, Body(body))
    except ServeError as error:
        check_answer(protocol.refuse(error))
        raise
    if isinstance(operation, Infer) and isinstance(operation.payload, Tensors):
        for tensor in operation.payload.items:
            assert tensor.array.shape == tensor.shape


def read_infer(data: bytes, chance: random.Random) -> None:
    decode(chance.choice(PROTOCOLS), Route(Verb.INFER, "m", "", True), data, {})


# -- binary ------------------------------------------------------------------------------------------------


def with_length(header: bytes, blobs: bytes) -> bytes:
    """An input of this target: the length of the JSON in two bytes, the JSON, and what follows."""
    return len(header).to_bytes(2, "big") + header + blobs


def split(data: bytes) -> tuple[int, bytes]:
    return int.from_bytes(data[:2], "big"), data[2:]


def blob(name: str, datatype: str, shape: list[int], size: int) -> dict[str, object]:
    return v2_input(name, datatype, shape, parameters={"binary_data_size": size})


STRINGS = b"\1\0\0\0x" + bytes(4)
BINARY = (
    with_length(text({"inputs": [blob("a", "FP32", [2], 8)]}), bytes(8)),
    with_length(text({"inputs": [blob("a", "BYTES", [2], 9), blob("b", "BOOL", [1], 1)]}), STRINGS + b"\1"),
    with_length(text({"inputs": [blob("a", "FP16", [1, 2], 4), v2_input("b", "INT32", [1], data=[1])]}), bytes(4)),
    with_length(text({"inputs": [blob("a", "UINT64", [0], 0)], "outputs": [{"name": "y"}]}), b""),
)  # fmt: skip


def rebuilt_binary(entry: bytes, change: Change, chance: random.Random) -> bytes:
    length, rest = split(entry)
    header, blobs = rest[:length], rest[length:]
    if chance.random() < 0.7:
        header = mutations.json_changed(header, chance)
    if chance.random() < 0.5 and blobs:
        blobs = change(blobs)
    return with_length(header[: 2**16 - 1], blobs)


def read_binary(data: bytes, chance: random.Random) -> None:
    length, body = split(data)
    lengths = (str(length), str(length), str(length), "x", "-1", "9" * 18, "9" * 30, "")
    header = chance.choice(lengths).encode()
    for _ in range(2):  # the second time by the short way
        decode(PROTOCOLS[0], Route(Verb.INFER, "m", "", True), body, {HEADER_LENGTH: header})


# -- the other bodies of v2 --------------------------------------------------------------------------------

VERBS = (Verb.GENERATE, Verb.INDEX, Verb.LOAD, Verb.UNLOAD, Verb.REGISTER, Verb.LOG_SETTINGS, Verb.TRACE_SETTINGS,
         Verb.DEVICE_REGISTER, Verb.GENERATE_STREAM)  # fmt: skip
"""The first byte of an input of `v2_control` chooses."""

CONTROL = (
    (Verb.GENERATE, {"text": "hello", "id": "1", "parameters": {"priority": 1, "own": 1.5}, "count": 3}),
    (Verb.GENERATE_STREAM, {"x": [1, 2, 3]}),
    (Verb.INDEX, {"ready": True}),
    (Verb.LOAD, {}),
    (Verb.LOAD, {"parameters": {"config": '{"backend": "identity"}', "file:1/model.py": "cHJpbnQoKQ=="}}),
    (Verb.UNLOAD, {"parameters": {"unload_dependents": True}}),
    (Verb.REGISTER, {"key": "/shm", "offset": 0, "byte_size": 64}),
    (Verb.DEVICE_REGISTER, {"raw_handle": {"b64": "AAAA"}, "device_id": 0, "byte_size": 64}),
    (Verb.LOG_SETTINGS, {"log_info": True, "log_verbose_level": 1, "log_format": "default", "log_file": ""}),
    (Verb.TRACE_SETTINGS, {"trace_level": ["TIMESTAMPS"], "trace_rate": "1000", "trace_count": "-1",
    "log_frequency": "0"}),
)  # fmt: skip


def rebuilt_control(entry: bytes, change: Change, chance: random.Random) -> bytes:
    return entry[:1] + mutations.json_changed(entry[1:], chance)


def read_control(data: bytes, chance: random.Random) -> None:
    verb = VERBS[(data[0] if data else 0) % len(VERBS)]
    decode(chance.choice(PROTOCOLS), Route(verb, "m", "", True), data[1:], {})


def wanted(chance: random.Random) -> Wanted:
    return Wanted("m", chance.choice(MODELS), chance.random() < 0.5, chance.random() < 0.2)


def read_fields(data: bytes, chance: random.Random) -> None:
    for tensor in v2_bodies.read_generate(data, wanted(chance)):
        encode(tensor)


def read_bare(data: bytes, chance: random.Random) -> None:
    v2_bodies.read_bare(data, wanted(chance))


DOCUMENTS = (
    {"x": [[1, 2]]},
    {"x": [[1, 2]], "y": [[3]]},
    {"inputs": [[1, 2]]},
    {"instances": [1, 2]},
    [[1, 2], [3, 4]],
    {"text": "a"},
    "text",
    {"inputs": [v2_input("x", "FP32", [1, 2], data=[1, 2])], "id": "1"},
    {"outputs": [v2_input("x", "FP32", [1, 2], data=[1, 2])], "model_name": "m"},
)


def read_document(data: bytes, chance: random.Random) -> None:
    found = json_documents.read(data, wanted(chance))
    if found:
        json_documents.write(found)


TARGETS = (
    Target("v2_json", tuple(map(text, REQUESTS)), read_infer, tokens=TOKENS, rebuild=rebuilt_json),
    Target("v2_binary", BINARY, read_binary, tokens=TOKENS, rebuild=rebuilt_binary),
    Target(
        "v2_control",
        tuple(bytes([VERBS.index(verb)]) + text(body) for verb, body in CONTROL),
        read_control,
        tokens=TOKENS,
        rebuild=rebuilt_control,
    ),
    Target(
        "v2_generate",
        (text({"x": [1, 2]}), text({"text": "a", "extra": 1.5}), text({"x": 1, "y": 2, "z": True})),
        read_fields,
        tokens=TOKENS,
        rebuild=rebuilt_json,
    ),
    Target("v2_bare", (bytes(8), b"text", bytes(16)), read_bare),
    Target("json_documents", tuple(map(text, DOCUMENTS)), read_document, tokens=TOKENS, rebuild=rebuilt_json),
)
