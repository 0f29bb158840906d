"""Tables of requests over gRPC, from section 5 of the sheet: good ones. See `http_requests`."""

import random
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.e2e.side_by_side.http_requests import floats, ints, words
from tritonclient.grpc import service_pb2 as pb

Make = Callable[[random.Random], "Rpc"]


class Rpc:
    """A method and its request messages."""

    def __init__(self, method: str, *messages: Any) -> None:
        self.method = method
        self.messages = tuple(message.SerializeToString() for message in messages)


def put(parameters: Any, **given: Any) -> None:
    """Parameters of a message, by the types of their values."""
    for key, value in given.items():
        field = {bool: "bool_param", int: "int64_param", str: "string_param", float: "double_param"}[
            type(value)
        ]
        setattr(parameters[key], field, value)


def request(model: str, *inputs: tuple[str, str, Sequence[int]], **more: Any) -> Any:
    """A request with inputs by name, datatype and shape; `more`: raw, id, version, outputs, parameters."""
    message = pb.ModelInferRequest(
        model_name=model, model_version=more.get("version", ""), id=more.get("id", "")
    )
    for name, datatype, shape in inputs:
        message.inputs.add(name=name, datatype=datatype, shape=shape)
    message.raw_input_contents.extend(more.get("raw", ()))
    for name in more.get("outputs", ()):
        message.outputs.add(name=name)
    put(message.parameters, **more.get("parameters", {}))
    return message


def two(rng: random.Random, rows: int = 1, model: str = "simple", **more: Any) -> Any:
    """A right request for `simple` and `batched`."""
    raw = [struct.pack(f"<{rows * 16}i", *ints(rng, rows * 16)) for _ in range(2)]
    inputs = [(f"INPUT{i}", "INT32", [rows, 16]) for i in (0, 1)]
    return request(model, *inputs, **{"raw": raw} | more)


def three(rng: random.Random, **more: Any) -> Any:
    """A right request for `ident_fp32`."""
    raw = [struct.pack("<3f", *floats(rng, 3))]
    return request("ident_fp32", ("INPUT0", "FP32", [1, 3]), **{"raw": raw} | more)


def texts(rng: random.Random, model: str, count: int, name: str = "INPUT0") -> Any:
    """A request of strings in contents."""
    message = request(model, (name, "BYTES", [1, count]))
    message.inputs[0].contents.bytes_contents.extend(word.encode() for word in words(rng, count))
    return message


def infer(message: Any) -> Rpc:
    return Rpc("ModelInfer", message)


def stream(*messages: Any) -> Rpc:
    return Rpc("ModelStreamInfer", *messages)


def times(count: int, **more: Any) -> Any:
    """A request of `repeat`."""
    return request("repeat", ("TIMES", "INT32", [1]), **{"raw": [struct.pack("<i", count)]} | more)


def _pair(rng: random.Random) -> str:
    return rng.choice(["simple", "batched"])


def _in_contents(rng: random.Random) -> Rpc:
    message = request("simple", ("INPUT0", "INT32", [1, 16]), ("INPUT1", "INT32", [1, 16]))
    for entry in message.inputs:
        entry.contents.int_contents.extend(ints(rng))
    return infer(message)


def _typed_contents(rng: random.Random) -> Rpc:
    datatype, field, values = rng.choice(
        [
            ("BOOL", "bool_contents", [True, False]),
            ("UINT8", "uint_contents", [0, 255]),
            ("INT16", "int_contents", [-5, 7]),
            ("INT64", "int64_contents", [-(2**40), 1]),
            ("UINT64", "uint64_contents", [2**63, 1]),
            ("FP64", "fp64_contents", [0.5, -1e300]),
        ]
    )
    message = request(f"ident_{datatype.lower()}", ("INPUT0", datatype, [2]))
    getattr(message.inputs[0].contents, field).extend(values)
    return infer(message)


def _classified(rng: random.Random) -> Rpc:
    raw = [struct.pack("<4f", *(float(value) for value in rng.sample(range(100), 4)))]
    message = request("labelled", ("INPUT0", "FP32", [1, 4]), raw=raw, outputs=["OUTPUT0"])
    put(message.outputs[0].parameters, classification=rng.randrange(1, 6))
    return infer(message)


def _told(rng: random.Random) -> Rpc:
    message = texts(rng, "prompt", 1, "PROMPT")
    put(message.parameters, mine=rng.choice([rng.randrange(9), True, "text", 0.5]), priority=1)
    return infer(message)


def _sequence(rng: random.Random) -> Rpc:
    told = {"sequence_id": rng.randrange(100, 200), "sequence_start": True, "sequence_end": True}
    raw = [struct.pack("<i", rng.randrange(9))]
    return infer(request("counter", ("VALUE", "INT32", [1, 1]), raw=raw, parameters=told))


def _known(kind: Any) -> Make:
    models = ["simple", "batched", "prompt", "counter", "repeat"]
    return lambda rng: Rpc(kind.DESCRIPTOR.name.removesuffix("Request"), kind(name=rng.choice(models)))


GOOD: Mapping[str, Make] = {
    "infer of several rows": lambda rng: infer(
        two(rng, rng.randrange(1, 9), _pair(rng), id=f"id {rng.randrange(99)}")
    ),
    "infer of one output": lambda rng: infer(two(rng, outputs=[rng.choice(["OUTPUT0", "OUTPUT1"])])),
    "infer of a version": lambda rng: infer(two(rng, version="1")),
    "infer in contents": _in_contents,
    "infer of a datatype in contents": _typed_contents,
    "infer of strings in contents": lambda rng: infer(texts(rng, "ident_string", rng.randrange(1, 4))),
    "infer of FP16": lambda rng: infer(
        request("ident_fp16", ("INPUT0", "FP16", [2]), raw=[struct.pack("<2e", *floats(rng, 2))])
    ),
    "infer with raw contents left over": lambda rng: infer(
        request("ident_fp32", ("INPUT0", "FP32", [1, 3]), raw=[bytes(12), bytes(4)])
    ),
    "infer with classification": _classified,
    "infer with parameters": _told,
    "infer in a sequence": _sequence,
    "a stream of one": lambda rng: stream(two(rng, id="s")),
    "a stream of a decoupled model": lambda rng: stream(times(rng.randrange(0, 4), id="d")),
    "a stream that tells the end": lambda rng: stream(
        times(rng.randrange(0, 4), id="e", parameters={"triton_enable_empty_final_response": True})
    ),
    "ServerLive": lambda rng: Rpc("ServerLive", pb.ServerLiveRequest()),
    "ServerReady": lambda rng: Rpc("ServerReady", pb.ServerReadyRequest()),
    "ServerMetadata": lambda rng: Rpc("ServerMetadata", pb.ServerMetadataRequest()),
    "ModelReady": _known(pb.ModelReadyRequest),
    "ModelReady of what is unknown": lambda rng: Rpc("ModelReady", pb.ModelReadyRequest(name="unheard")),
    "ModelMetadata": _known(pb.ModelMetadataRequest),
    "ModelConfig": _known(pb.ModelConfigRequest),
    "ModelStatistics": lambda rng: Rpc("ModelStatistics", pb.ModelStatisticsRequest(name="batched")),
    "RepositoryIndex": lambda rng: Rpc(
        "RepositoryIndex", pb.RepositoryIndexRequest(ready=rng.random() < 0.5)
    ),
    "SystemSharedMemoryStatus": lambda rng: Rpc(
        "SystemSharedMemoryStatus", pb.SystemSharedMemoryStatusRequest()
    ),
    "CudaSharedMemoryStatus": lambda rng: Rpc("CudaSharedMemoryStatus", pb.CudaSharedMemoryStatusRequest()),
    "LogSettings": lambda rng: Rpc("LogSettings", pb.LogSettingsRequest()),
    "TraceSetting": lambda rng: Rpc("TraceSetting", pb.TraceSettingRequest()),
    "RepositoryModelUnload of what is unknown": lambda rng: Rpc(
        "RepositoryModelUnload", pb.RepositoryModelUnloadRequest(model_name="unheard")
    ),
}
"""What is asked -> what makes it."""
