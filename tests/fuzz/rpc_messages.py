"""Messages of the gRPC service, up to operations."""

import random
from collections.abc import Iterator

from tests.fuzz.target import Change, Target
from tests.harness.grpc_messages import request, tensor
from tritonclient.grpc import service_pb2

from trivium.servers.triton.words.v2 import V2
from trivium.types.errors import ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.wire import RpcCall
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.grpc import HEALTH, INFER, SCOPES, STREAM_INFER, KServeGrpc
from trivium.wires.v2.large_messages import parse_large, weight

PROTOCOLS = tuple(
    KServeGrpc("fuzz", "1", KServeOptions(may_change=True, original=V2, as_original=as_triton))
    for as_triton in (False, True)
)
METHODS = tuple(method for method in SCOPES if method not in (INFER, STREAM_INFER, HEALTH))


def _infers() -> Iterator[bytes]:
    numbers = {"fp32_contents": [1, 2]}
    words = service_pb2.InferParameter
    yield request(tensor("a", "FP32", [2], **numbers)).SerializeToString()
    yield request(tensor("a", "FP32", [2]), raw=[bytes(8)], id="7").SerializeToString()
    strings = tensor("a", "BYTES", [2], bytes_contents=[b"", b"abc"])
    yield request(strings, tensor("b", "BOOL", [1], bool_contents=[True])).SerializeToString()
    entry = tensor("a", "INT64", [1], int64_contents=[2**62])
    entry.parameters["own"].string_param = "x"
    given = {
        "sequence_id": words(int64_param=3),
        "priority": words(uint64_param=1),
        "x": words(double_param=1.5),
    }
    wanted = service_pb2.ModelInferRequest.InferRequestedOutputTensor(name="y")
    wanted.parameters["classification"].int64_param = 2
    yield request(entry, parameters=given, outputs=[wanted]).SerializeToString()
    shared = tensor("a", "FP32", [1])
    shared.parameters["shared_memory_region"].string_param = "r"
    shared.parameters["shared_memory_byte_size"].int64_param = 4
    yield request(shared).SerializeToString()


def _others() -> Iterator[bytes]:
    """An input of this target: a byte that chooses the method, then its message."""
    words = service_pb2.ModelRepositoryParameter
    load = {"config": words(string_param="{}"), "file:1/m": words(bytes_param=b"x")}
    made = {
        "RepositoryModelLoad": service_pb2.RepositoryModelLoadRequest(model_name="m", parameters=load),
        "RepositoryModelUnload": service_pb2.RepositoryModelUnloadRequest(model_name="m"),
        "RepositoryIndex": service_pb2.RepositoryIndexRequest(ready=True),
        "ModelMetadata": service_pb2.ModelMetadataRequest(name="m", version="1"),
        "ModelReady": service_pb2.ModelReadyRequest(name="m", version="1"),
        "ModelStatistics": service_pb2.ModelStatisticsRequest(name="m"),
        "SystemSharedMemoryRegister": service_pb2.SystemSharedMemoryRegisterRequest(
            name="r", key="k", byte_size=4
        ),
        "CudaSharedMemoryRegister": service_pb2.CudaSharedMemoryRegisterRequest(
            name="r", raw_handle=bytes(64)
        ),
        "TraceSetting": service_pb2.TraceSettingRequest(model_name="m"),
        "LogSettings": service_pb2.LogSettingsRequest(),
    }
    made["TraceSetting"].settings["trace_rate"].value.append("7")
    made["LogSettings"].settings["log_verbose_level"].uint32_param = 1
    for number, method in enumerate(METHODS):
        message = made.get(method.rpartition("/")[2])
        if message is not None:
            yield bytes([number]) + message.SerializeToString()


INFERS, OTHERS = tuple(_infers()), tuple(_others())
TOKENS = (
    b"FP32", b"BYTES", b"BOOL", b"FP16", b"\x2a\0", b"\x3a\0", b"\x0a\0", b"\x42\0", b"\xff" * 9 + b"\1",
    b"\x80" * 10, b"\x08\x96\x01",
    b"\x0b\x0c", b"\x12\xff\xff\xff\xff\x0f", b"\xed\xa0\x80", b"\xff", b"sequence_id", b"priority",
    b"shared_memory_region",
    b"shared_memory_offset", b"binary_data_size", b"triton_enable_empty_final_response", b"classification",
)  # fmt: skip


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields_of(message: bytes) -> list[tuple[bytes, bytes]] | None:
    """The tag and, where it has a length, the payload of each field, else its bytes; None for what is no message."""
    found, at = [], 0
    try:
        while at < len(message):
            start = at
            tag, at = _read_varint(message, at)
            tag_bytes, kind = message[start:at], tag & 7
            if kind == 2:
                size, at = _read_varint(message, at)
                end = at + size
            elif kind in (1, 5):
                end = at + (8 if kind == 1 else 4)
            elif kind == 0:
                _, end = _read_varint(message, at)
            else:
                return None
            if end > len(message):
                return None
            found.append((tag_bytes, message[at:end]))
            at = end
    except IndexError:
        return None
    return found


def rebuilt(entry: bytes, change: Change, chance: random.Random) -> bytes:
    """One field somewhere inside is changed, left out or doubled; lengths around it are right."""
    fields = fields_of(entry)
    if not fields:
        return change(entry)
    at = chance.randrange(len(fields))
    tag, payload = fields[at]
    match chance.randrange(8):
        case 0:
            del fields[at]
        case 1:
            fields += [fields[at]] * chance.choice((1, 2, 50))
        case 2:
            fields[at] = change(tag), payload
        case _:
            is_message = tag[-1] & 7 == 2 and chance.random() < 0.7
            fields[at] = tag, rebuilt(payload, change, chance) if is_message else change(payload)
    return b"".join(
        tag + (_varint(len(payload)) if tag and tag[-1] & 7 == 2 else b"") + payload
        for tag, payload in fields
    )


def rebuilt_other(entry: bytes, change: Change, chance: random.Random) -> bytes:
    return entry[:1] + rebuilt(entry[1:], change, chance)


def decode(protocol: KServeGrpc, call: RpcCall, message: bytes) -> None:
    """As the front end does, down to the answer of a refusal."""
    try:
        protocol.is_costly(call, message)
        operation, _ = protocol.decode(call, message)
    except ServeError as error:
        answer = protocol.refuse(call, error)
        assert answer.code or answer.message
        raise
    if isinstance(operation, Infer) and isinstance(operation.payload, Tensors):
        for item in operation.payload.items:
            assert item.array.shape == item.shape


def read_infer(data: bytes, chance: random.Random) -> None:
    decode(chance.choice(PROTOCOLS), RpcCall(chance.choice((INFER, STREAM_INFER)), {}, None), data)


def read_other(data: bytes, chance: random.Random) -> None:
    method = METHODS[(data[0] if data else 0) % len(METHODS)]
    decode(chance.choice(PROTOCOLS), RpcCall(method, {}, None), data[1:])


def read_large(data: bytes, chance: random.Random) -> None:
    """A small message read as a large one is: it says the same, or is refused as well."""
    weight(data)
    message = parse_large(data)
    assert message.SerializeToString(deterministic=True) == service_pb2.ModelInferRequest.FromString(
        data
    ).SerializeToString(deterministic=True)


TARGETS = (
    Target("grpc_infer", INFERS, read_infer, tokens=TOKENS, rebuild=rebuilt),
    Target("grpc_large", INFERS, read_large, tokens=TOKENS, rebuild=rebuilt),
    Target("grpc_messages", OTHERS, read_other, tokens=TOKENS, rebuild=rebuilt_other),
)
