"""Bad requests over gRPC: what is wrong -> what makes it. See `http_requests`."""

import math
import random
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from tests.e2e.side_by_side.grpc_requests import (
    Make,
    Rpc,
    infer,
    put,
    request,
    stream,
    three,
    times,
    two,
)
from tests.e2e.side_by_side.http_requests import floats, ints
from tritonclient.grpc import service_pb2 as pb


def _of(method: str, /, **fields: Any) -> Make:
    return lambda rng: Rpc(method, getattr(pb, f"{method}Request")(**fields))


def _told(key: str, value: Any) -> Make:
    return lambda rng: infer(two(rng, parameters={key: value}))


def _altered(index: int, **changes: Any) -> Make:
    """`simple`, with other fields of one input."""

    def make(rng: random.Random) -> Rpc:
        message = two(rng, id=rng.choice(["", f"bad {rng.randrange(100)}"]))
        entry = message.inputs[index]
        for key, value in changes.items():
            if key == "shape":
                entry.shape[:] = value
            else:
                setattr(entry, key, value)
        return infer(message)

    return make


def _fields(datatype: str, shape: Sequence[int], field: str, values: Sequence[Any]) -> Make:
    """`ident_fp32`, with values in some field of the contents."""

    def make(rng: random.Random) -> Rpc:
        message = request("ident_fp32", ("INPUT0", datatype, shape))
        getattr(message.inputs[0].contents, field).extend(values)
        return infer(message)

    return make


def _reshaped(shape: list[int]) -> Make:
    """`simple`, with an input of another shape and as much data."""

    def make(rng: random.Random) -> Rpc:
        message = two(rng)
        message.inputs[0].shape[:] = shape
        message.raw_input_contents[0] = bytes(4 * math.prod(shape))
        return infer(message)

    return make


def _both(rng: random.Random) -> Rpc:
    message = three(rng)
    message.inputs[0].contents.fp32_contents.extend(floats(rng, 3))
    return infer(message)


def _rows_apart(rng: random.Random) -> Rpc:
    message = two(rng)
    message.inputs[1].shape[:] = [2, 16]
    message.raw_input_contents[1] = struct.pack("<32i", *ints(rng, 32))
    return infer(message)


def _few_inputs(rng: random.Random) -> Rpc:
    message = two(rng)
    del message.inputs[1], message.raw_input_contents[1]
    return infer(message)


def _twice(rng: random.Random) -> Rpc:
    message = two(rng)
    message.inputs[1].name = "INPUT0"
    return infer(message)


def _placed(**told: Any) -> Make:
    """An input in shared memory."""

    def make(rng: random.Random) -> Rpc:
        message = request("ident_fp32", ("INPUT0", "FP32", [1, 3]))
        put(message.inputs[0].parameters, **told)
        return infer(message)

    return make


def _output(**told: Any) -> Make:
    """An output with parameters."""

    def make(rng: random.Random) -> Rpc:
        message = three(rng, outputs=["OUTPUT0"])
        put(message.outputs[0].parameters, **told)
        return infer(message)

    return make


def _load(**told: Any) -> Make:
    def make(rng: random.Random) -> Rpc:
        message = pb.RepositoryModelLoadRequest(model_name="spare")
        put(message.parameters, **told)
        return Rpc("RepositoryModelLoad", message)

    return make


def _fails(way: str) -> Make:
    def make(rng: random.Random) -> Rpc:
        message = request("failing", ("WAY", "BYTES", [1]), id="f")
        message.inputs[0].contents.bytes_contents.append(way.encode())
        return rng.choice([infer, stream])(message)

    return make


def _setting(rng: random.Random) -> Rpc:
    message = pb.LogSettingsRequest()
    message.settings["log_info"].string_param = "x"
    return Rpc("LogSettings", message)


def _log_text(key: str) -> Make:
    def make(rng: random.Random) -> Rpc:
        message = pb.LogSettingsRequest()
        message.settings[key].string_param = "x"
        return Rpc("LogSettings", message)

    return make


def _trace(key: str, *values: str) -> Make:
    def make(rng: random.Random) -> Rpc:
        message = pb.TraceSettingRequest()
        message.settings[key].value.extend(values)
        return Rpc("TraceSetting", message)

    return make


BAD: Mapping[str, Make] = {
    "an unknown model": lambda rng: infer(two(rng, model="unheard")),
    "an unknown version": lambda rng: infer(two(rng, version="7")),
    "a version that is no number": lambda rng: infer(two(rng, version="x")),
    "metadata of an unknown model": _of("ModelMetadata", name="unheard"),
    "metadata of an unknown version": _of("ModelMetadata", name="simple", version="7"),
    "metadata of a version that is no number": _of("ModelMetadata", name="simple", version="x"),
    "metadata of no model": _of("ModelMetadata"),
    "the configuration of an unknown model": _of("ModelConfig", name="unheard"),
    "statistics of an unknown model": _of("ModelStatistics", name="unheard"),
    "statistics of an unknown version": _of("ModelStatistics", name="simple", version="7"),
    "readiness of a version that is no number": _of("ModelReady", name="simple", version="x"),
    "a named repository in the index": _of("RepositoryIndex", repository_name="r"),
    "a load from a named repository": _of("RepositoryModelLoad", repository_name="r", model_name="spare"),
    "an unload from a named repository": _of(
        "RepositoryModelUnload", repository_name="r", model_name="spare"
    ),
    "a load of what is unknown": _of("RepositoryModelLoad", model_name="unheard"),
    "a load with an unknown parameter": _load(foo="x"),
    "a load with a configuration that is no string": _load(config=5),
    "a load with a configuration that is no JSON": _load(config="{"),
    "the status of an unknown region": _of("SystemSharedMemoryStatus", name="r1"),
    "the status of an unknown CUDA region": _of("CudaSharedMemoryStatus", name="c1"),
    "a region that is not there": _of(
        "SystemSharedMemoryRegister", name="r1", key="/unheard_of", byte_size=4
    ),
    "a CUDA region": _of("CudaSharedMemoryRegister", name="c1", raw_handle=bytes(64), byte_size=4),
    "trace settings of an unknown model": _of("TraceSetting", model_name="unheard"),
    "a log switch that is no truth": _setting,
    "a log format": _log_text("log_format"),
    "a log file": _log_text("log_file"),
    "a trace level without a file": _trace("trace_level", "TENSORS"),
    "two trace levels that exclude each other": _trace("trace_level", "OFF", "TENSORS"),
    "a trace file": _trace("trace_file", "x"),
    "a trace file of an unknown model": _of(
        "TraceSetting", model_name="unheard", settings={"trace_file": {"value": ["x"]}}
    ),
    "a trace rate that is no number": _trace("trace_rate", "x"),
    "two trace rates": _trace("trace_rate", "1", "2"),
    "a trace count that is too small": _trace("trace_count", "-5"),
    "contents and raw contents": _both,
    "no data": lambda rng: infer(request("ident_fp32", ("INPUT0", "FP32", [1, 3]))),
    "too few raw contents": lambda rng: infer(two(rng, raw=[bytes(64)])),
    "contents of another datatype": _fields("FP32", [1, 3], "int_contents", [1, 2, 3]),
    "too few contents": _fields("FP32", [1, 3], "fp32_contents", [1.0, 2.0]),
    "FP16 in contents": _fields("FP16", [1, 3], "fp32_contents", [1.0, 2.0, 3.0]),
    "an unknown datatype": _altered(0, datatype="INT33"),
    "another datatype": _altered(0, datatype="FP32"),
    "another shape": _reshaped([1, 15]),
    "another shape, and data of a third": _altered(0, shape=[1, 15]),
    "a shape of another rank": _altered(0, shape=[1, 16, 1]),
    "a shape of no dims": _reshaped([]),
    "a batch too large": lambda rng: infer(two(rng, rng.randrange(9, 12))),
    "batches apart": _rows_apart,
    "raw contents of another size": lambda rng: infer(three(rng, raw=[bytes(8)])),
    "strings cut short": lambda rng: infer(
        request("ident_string", ("INPUT0", "BYTES", [1, 1]), raw=[b"\x09\0\0\0a"])
    ),
    "an input too few": _few_inputs,
    "an unknown input": _altered(1, name="INPUT7"),
    "an input twice": _twice,
    "an unknown output": lambda rng: infer(two(rng, outputs=["OUTPUTX"])),
    "a decoupled model": lambda rng: infer(times(1)),
    "a reserved parameter": _told("triton_mine", 1),
    "a priority that is no number": _told("priority", "x"),
    "a timeout that is no number": _told("timeout", "x"),
    "a sequence id that is a truth": _told("sequence_id", True),
    "sequence_start that is no truth": _told("sequence_start", 1),
    "a classification that is no number": _output(classification="x"),
    "an unknown region": _placed(shared_memory_region="zz", shared_memory_byte_size=12),
    "an output in a region without a size": _output(shared_memory_region="zz"),
    "a sequence without an id": lambda rng: infer(
        request("counter", ("VALUE", "INT32", [1, 1]), raw=[bytes(4)])
    ),
    "a sequence that did not start": lambda rng: infer(
        request("counter", ("VALUE", "INT32", [1, 1]), raw=[bytes(4)], parameters={"sequence_id": 177})
    ),
    "a stream of an unknown model": lambda rng: stream(two(rng, model="unheard", id="u")),
    "a stream with an unknown input": lambda rng: stream(
        request("ident_fp32", ("INPUT7", "FP32", [1, 3]), raw=[bytes(12)], id="i")
    ),
    "a stream with a reserved parameter": lambda rng: stream(two(rng, id="r", parameters={"triton_mine": 1})),
    **{
        f"a model that {way}": _fails(way)
        for way in (
            "raises",
            "returns_a_number",
            "not_found",
            "invalid",
            "unavailable",
            "unsupported",
            "exists",
            "plain",
            "unknown",
        )
    },
}
"""What is wrong -> what makes it."""
