"""Bad requests over HTTP: what is wrong -> what makes it. See `http_requests`."""

import json
import random
import struct
from collections.abc import Mapping
from typing import Any

from tests.e2e.side_by_side.http_requests import Document, Make, floats, infer, ints, tensor, three, two
from tests.harness.raw_http import get, post


def _altered(index: int, **changes: Any) -> Make:
    """`simple`, with other members of one input; a member that is `...` is left out."""

    def make(rng: random.Random) -> bytes:
        document = two(rng)
        entry = document["inputs"][index] | changes
        document["inputs"][index] = {key: value for key, value in entry.items() if value is not ...}
        if rng.random() < 0.5:
            document["id"] = f"bad {rng.randrange(100)}"
        return infer("simple", document)

    return make


def _with(**more: Any) -> Make:
    """A right request for `simple`, with further members."""
    return lambda rng: infer("simple", two(rng) | more)


def _text(text: bytes) -> Make:
    return lambda rng: infer("simple", text)


def _of(model: str, *inputs: Document, **more: Any) -> Make:
    return lambda rng: infer(model, {"inputs": list(inputs)} | more)


def _path(method: bytes, path: str) -> Make:
    return lambda rng: get(path, method=method) if method != b"POST" else post(path, b"")


def _told(key: str, value: Any) -> Make:
    return _with(parameters={key: value})


def _fails(way: str) -> Make:
    return _of("failing", tensor("WAY", "BYTES", [1], data=[way]))


def _few_inputs(rng: random.Random) -> bytes:
    document = two(rng)
    del document["inputs"][rng.randrange(2)]
    return infer("simple", document)


def _many_inputs(rng: random.Random) -> bytes:
    document = two(rng)
    document["inputs"].append(tensor("INPUT2", "INT32", [1, 16], data=ints(rng)))
    return infer("simple", document)


def _twice(rng: random.Random) -> bytes:
    document = two(rng)
    document["inputs"][1] = document["inputs"][0]
    return infer("simple", document)


def _rows_apart(rng: random.Random) -> bytes:
    document = two(rng)
    document["inputs"][1] = tensor("INPUT1", "INT32", [2, 16], data=ints(rng, 32))
    return infer("simple", document)


def _blob(said: int, sent: int, shape: list[int] | None = None) -> Make:
    inputs = [tensor("INPUT0", "FP32", shape or [1, 3], parameters={"binary_data_size": said})]
    return lambda rng: infer("ident_fp32", {"inputs": inputs}, b"", struct.pack("<B", 1) * sent)


def _length(value: bytes) -> Make:
    return lambda rng: infer("ident_fp32", three(rng), b"Inference-Header-Content-Length: %s\r\n" % value)


def _post(path: str, document: Any) -> Make:
    return lambda rng: post(path, document if isinstance(document, bytes) else json.dumps(document).encode())


_LOAD = "/v2/repository/models/spare/load"
_REGION = "/v2/systemsharedmemory/region/r1"
_MODEL_PATHS = ("", "/ready", "/config", "/stats", "/infer", "/generate")


def _unknown(rng: random.Random) -> bytes:
    end = rng.choice(_MODEL_PATHS)
    path = f"/v2/models/{rng.choice(['unheard', 'simple/versions/9'])}{end}"
    return post(path, json.dumps(two(rng)).encode()) if end in ("/infer", "/generate") else get(path)


BAD: Mapping[str, Make] = {
    # 4.1 routes
    "no such path": lambda rng: get(
        rng.choice(["/", "/v2/", "/v2/models", "/v2/models/", "/v3", "/v2/x", "/v2//health/live"])
    ),
    "a version that is no number": _path(b"GET", "/v2/models/simple/versions/x"),
    "a trace setting of a version": _path(b"GET", "/v2/models/simple/versions/1/trace/setting"),
    "a wrong method": lambda rng: get(
        rng.choice(["/v2", "/v2/health/live", "/v2/models/simple", "/v2/logging"]),
        method=rng.choice([b"PUT", b"OPTIONS", b"DELETE"]),
    ),
    "HEAD": _path(b"HEAD", "/v2/models/simple"),
    "an empty body for JSON": lambda rng: post(
        rng.choice(
            [
                "/v2/models/prompt/generate",
                "/v2/logging",
                "/v2/trace/setting",
                "/v2/systemsharedmemory/region/r1/register",
            ]
        ),
        b"",
    ),
    "an unknown model, and no JSON": lambda rng: infer("unheard", b"{"),
    "GET of what is posted": _path(b"GET", "/v2/models/simple/infer"),
    "GET of the index": _path(b"GET", "/v2/repository/index"),
    "POST of what is read": _path(b"POST", "/v2/models/simple"),
    # 4.2 unknown models
    "an unknown model": _unknown,
    "a model's unknown version": _path(b"GET", "/v2/models/simple/versions/7"),
    "statistics of an unknown model": _path(b"GET", "/v2/models/unheard/stats"),
    "statistics of an unknown version": _path(b"GET", "/v2/models/simple/versions/7/stats"),
    "readiness of an unknown model": _path(b"GET", "/v2/models/unheard/ready"),
    # 4.5 JSON
    "no body": _text(b""),
    "an empty object": _text(b"{}"),
    "no JSON": lambda rng: infer(
        "simple",
        rng.choice(
            [
                b"{]",
                b"{",
                b"[",
                b"nothing",
                b'{"inputs": [}',
                b'{"a" 1}',
                b'{"a":1 "b":2}',
                b"[1 2]",
                b'{"a": tru}',
                b'{"a": 01}',
            ]
        ),
    ),
    "a string without an end": _text(b'{"inputs": "abc'),
    "a bad escape": _text(rb'{"inputs": "\x"}'),
    "something behind the JSON": _text(b'{"inputs": []} more'),
    "an array at the top": _text(b"[]"),
    "inputs that are no array": _text(b'{"inputs": {}}'),
    "an input that is no object": _text(b'{"inputs": [1]}'),
    "no inputs": _of("simple"),
    "no name": _altered(0, name=...),
    "a name that is no string": _altered(1, name=7),
    "no shape": _altered(0, shape=...),
    "a shape that is no array": _altered(0, shape=16),
    "a negative dimension": _altered(1, shape=[1, -16]),
    "a dimension in quotes": _altered(1, shape=[1, "16"]),
    "a fraction of a dimension": _altered(1, shape=[1, 1.5]),
    "no datatype": _altered(0, datatype=...),
    "a datatype that is no string": _altered(0, datatype=4),
    "an unknown datatype": _altered(0, datatype="INT33"),
    "no data": _altered(1, data=...),
    "data and a binary size": _altered(0, parameters={"binary_data_size": 64}),
    "a binary size that is no number": _altered(0, parameters={"binary_data_size": "x"}, data=...),
    "too few elements": lambda rng: _altered(0, data=ints(rng, rng.randrange(1, 16)))(rng),
    "too many elements": lambda rng: _altered(0, data=ints(rng, 17))(rng),
    "text among numbers": lambda rng: _altered(0, data=[*ints(rng, 15), "x"])(rng),
    "a fraction among integers": lambda rng: _altered(0, data=[*ints(rng, 15), 1.5])(rng),
    "null among numbers": lambda rng: _altered(0, data=[*ints(rng, 15), None])(rng),
    "an integer beyond INT32": lambda rng: _altered(0, data=[*ints(rng, 15), 5_000_000_000])(rng),
    "data that are no array": _altered(0, data=4),
    "a number among strings": _of("ident_string", tensor("INPUT0", "BYTES", [1, 2], data=["a", 1])),
    "a number among truths": _of("ident_bool", tensor("INPUT0", "BOOL", [2], data=[True, 1])),
    "text among floats": _of("ident_fp32", tensor("INPUT0", "FP32", [1, 3], data=[1, "x", 2])),
    "a negative unsigned": _of("ident_uint8", tensor("INPUT0", "UINT8", [2], data=[1, -1])),
    "too few strings": _of("ident_string", tensor("INPUT0", "BYTES", [1, 2], data=["a"])),
    "too many strings": _of("ident_string", tensor("INPUT0", "BYTES", [1, 1], data=["a", "b", "c", "d"])),
    "an id that is no string": _with(id=5),
    "an id that is null": _with(id=None),
    "outputs that are no array": _with(outputs=5),
    "an output without a name": _with(outputs=[{}]),
    "parameters that are no object": _with(parameters=5),
    # 4.4 parameters
    "a reserved parameter": _told("triton_mine", 1),
    "a parameter that is a list": _told("foo", [1]),
    "a parameter that is null": _told("foo", None),
    "a priority that is no number": _told("priority", "x"),
    "a negative priority": _told("priority", -1),
    "a timeout that is a fraction": _told("timeout", 1.5),
    "sequence_start that is no truth": _told("sequence_start", 1),
    "a sequence id that is a truth": _told("sequence_id", True),
    "binary_data_output that is no truth": _told("binary_data_output", 1),
    # 4.5 the model's rules
    "another datatype": lambda rng: _altered(0, datatype="FP32", data=floats(rng, 16))(rng),
    "a shape of another rank": _altered(0, shape=[1, 16, 1]),
    "another shape": lambda rng: _altered(0, shape=[1, 15], data=ints(rng, 15))(rng),
    "another shape, no batch": _of("ident_nobatch", tensor("INPUT0", "FP32", [2], data=[1.0, 2.0])),
    "no shape at all": _altered(0, shape=[], data=[1]),
    "a batch too large": lambda rng: infer("simple", two(rng, rng.randrange(9, 12))),
    "a batch of none": lambda rng: infer("simple", two(rng, 0)),
    "batches apart": _rows_apart,
    "an input too few": _few_inputs,
    "an input too many": _many_inputs,
    "an unknown input": _altered(1, name="INPUT7"),
    "an input twice": _twice,
    "an unknown output": _with(outputs=[{"name": "OUTPUTX"}]),
    "an output twice": _with(outputs=[{"name": "OUTPUT0"}, {"name": "OUTPUT0"}]),
    "no required input": _of("prompt", tensor("SUFFIX", "BYTES", [1, 1], data=["a"])),
    "no input of several": _of("prompt"),
    "FP16 in JSON": _of("ident_fp16", tensor("INPUT0", "FP16", [1], data=[1.0])),
    "FP16 asked for in JSON": lambda rng: infer(
        "ident_fp16",
        {"inputs": [tensor("INPUT0", "FP16", [1], parameters={"binary_data_size": 2})]},
        b"",
        b"\0\0",
    ),
    "a decoupled model": _of("repeat", tensor("TIMES", "INT32", [1], data=[1])),
    "a negative classification": _with(outputs=[{"name": "OUTPUT0", "parameters": {"classification": -1}}]),
    "a region that is unknown": _altered(
        0, data=..., parameters={"shared_memory_region": "zz", "shared_memory_byte_size": 64}
    ),
    "a region and data": _altered(
        0, parameters={"shared_memory_region": "zz", "shared_memory_byte_size": 64}
    ),
    # 4.6 binary
    "a header length beyond the body": _length(b"100000"),
    "a negative header length": _length(b"-1"),
    "a blob too short": _blob(12, 8),
    "a blob that is left over": _blob(12, 16),
    "a blob of another size": _blob(8, 8),
    "strings cut short": lambda rng: infer(
        "ident_string",
        {"inputs": [tensor("INPUT0", "BYTES", [1, 1], parameters={"binary_data_size": 5})]},
        b"",
        b"\x09\0\0\0a",
    ),
    "a raw body of another size": lambda rng: post(
        "/v2/models/ident_fp32/infer", b"12345678", b"Inference-Header-Content-Length: 0\r\n"
    ),
    "a raw body for several inputs": lambda rng: post(
        "/v2/models/simple/infer", b"12345678", b"Inference-Header-Content-Length: 0\r\n"
    ),
    "a raw body for open dimensions": lambda rng: post(
        "/v2/models/open/infer", b"12345678", b"Inference-Header-Content-Length: 0\r\n"
    ),
    "a raw body for several strings": lambda rng: post(
        "/v2/models/ident_string/infer", b"12345678", b"Inference-Header-Content-Length: 0\r\n"
    ),
    # 4.8 compression
    "an unknown coding": lambda rng: infer("simple", two(rng), b"Content-Encoding: br\r\n"),
    # 4.9 repository
    "a load of what is unknown": _post("/v2/repository/models/unheard/load", b""),
    "a load from a named repository": _post("/v2/repository/r/models/spare/load", b""),
    "a load with a configuration that is no string": _post(_LOAD, {"parameters": {"config": 5}}),
    "a load with a configuration that is no JSON": _post(_LOAD, {"parameters": {"config": "{"}}),
    "a load with an unknown parameter": _post(_LOAD, {"parameters": {"foo": "x"}}),
    "a load with files alone": _post(_LOAD, {"parameters": {"file:1/model.py": "YQ=="}}),
    "an index request that is no JSON": _post("/v2/repository/index", b"{"),
    # 4.10 shared memory
    "a region without a key": _post(f"{_REGION}/register", {"byte_size": 4}),
    "a region without a size": _post(f"{_REGION}/register", {"key": "/x"}),
    "a region that is not there": _post(f"{_REGION}/register", {"key": "/unheard_of", "byte_size": 4}),
    "the status of an unknown region": _path(b"GET", f"{_REGION}/status"),
    "the status of an unknown CUDA region": _path(b"GET", "/v2/cudasharedmemory/region/c1/status"),
    "a CUDA region": _post(
        "/v2/cudasharedmemory/region/c1/register",
        {"raw_handle": {"b64": "YQ=="}, "device_id": 0, "byte_size": 4},
    ),
    # 4.11 and 4.12 settings
    "a region whose key is no string": _post(
        "/v2/systemsharedmemory/region/r1/register", {"key": 5, "byte_size": 4}
    ),
    "a load whose parameters are no object": _post(_LOAD, {"parameters": 5}),
    "an index request of a wrong type": _post("/v2/repository/index", {"ready": 5}),
    "a log file": _post("/v2/logging", {"log_file": "x"}),
    "a log format": _post("/v2/logging", {"log_format": "x"}),
    "a log switch that is no truth": _post("/v2/logging", {"log_info": "x"}),
    "trace settings of an unknown model": _path(b"GET", "/v2/models/unheard/trace/setting"),
    "wrong trace settings of an unknown model": lambda rng: post(
        "/v2/models/unheard/trace/setting",
        rng.choice([b'{"trace_file":"x"}', b'{"trace_rate":5}', b'{"trace_level":["OFF","TENSORS"]}', b"{"]),
    ),
    "a trace level without a file": _post("/v2/trace/setting", {"trace_level": ["TIMESTAMPS"]}),
    "two trace levels that exclude each other": _post(
        "/v2/models/simple/trace/setting", {"trace_level": ["OFF", "TENSORS"]}
    ),
    "a trace level that is no list": _post("/v2/trace/setting", {"trace_level": "OFF"}),
    "a trace file": _post("/v2/trace/setting", {"trace_file": "x"}),
    "a trace rate that is no text": _post("/v2/trace/setting", {"trace_rate": 5}),
    "a trace rate that is no number": _post("/v2/models/simple/trace/setting", {"trace_rate": "x"}),
    "a trace count that is too small": _post("/v2/trace/setting", {"trace_count": "-5"}),
    "a log frequency that is too large": _post("/v2/trace/setting", {"log_frequency": "99999999999"}),
    # 4.13 generate
    "generate without an input": _post("/v2/models/prompt/generate", {}),
    "generate of no JSON": _post("/v2/models/prompt/generate", b"{"),
    "generate with a nested list": _post("/v2/models/prompt/generate", {"PROMPT": [["a", "b"], ["c", "d"]]}),
    "generate of a wrong type": _post("/v2/models/repeat/generate_stream", {"TIMES": "x"}),
    "generate with an input twice": _post(
        "/v2/models/prompt/generate", b'{"id":"q","PROMPT":"a","PROMPT":5}'
    ),
    "generate with an input that is null": _post("/v2/models/prompt/generate", {"PROMPT": None}),
    "generate with an input that is an object": _post(
        "/v2/models/repeat/generate_stream", {"TIMES": {"a": 1}}
    ),
    "generate with null in a list": _post("/v2/models/ident_fp32/generate", {"INPUT0": [1, None, 2]}),
    "generate with too many values": _post("/v2/models/repeat/generate", {"TIMES": [1, 2]}),
    "generate with too few values": _post("/v2/models/ident_fp32/generate", {"INPUT0": [1, 2]}),
    "generate with no values": _post("/v2/models/prompt/generate", {"PROMPT": []}),
    "generate of too many rows": _post("/v2/models/ident_fp32/generate", {"INPUT0": [1] * 15}),
    "generate with an id that is no string": _post("/v2/models/prompt/generate", {"PROMPT": "a", "id": 5}),
    "generate with a parameter that is an object": _post(
        "/v2/models/prompt/generate", {"PROMPT": "a", "o": {}}
    ),
    "generate with parameters that are no object": _post(
        "/v2/models/prompt/generate", {"PROMPT": "a", "parameters": None}
    ),
    "generate with a list among the parameters": _post(
        "/v2/models/prompt/generate", {"PROMPT": "a", "parameters": {"t": [1]}}
    ),
    "generate by a model that fails": _post("/v2/models/failing/generate", {"WAY": "raises"}),
    "generate_stream by a model that fails": _post(
        "/v2/models/failing/generate_stream", {"WAY": "not_found"}
    ),
    "generate by a model that answers twice": _post("/v2/models/repeat/generate", {"TIMES": 2}),
    "GET of generate": _path(b"GET", "/v2/models/prompt/generate"),
    # 8.2 the Python backend
    **{
        f"a model that {way}": _fails(way)
        for way in (
            "raises",
            "raises_deep",
            "returns_none_of_one",
            "returns_a_number",
            "returns_words",
            "not_found",
            "invalid",
            "unavailable",
            "unsupported",
            "exists",
            "plain",
            "unknown",
        )
    },
    # 7.7 sequences
    "a sequence without an id": _of("counter", tensor("VALUE", "INT32", [1, 1], data=[1])),
    "a sequence that did not start": _of(
        "counter", tensor("VALUE", "INT32", [1, 1], data=[1]), parameters={"sequence_id": 77}
    ),
    "a sequence of two rows": _of(
        "counter",
        tensor("VALUE", "INT32", [2, 1], data=[1, 1]),
        parameters={"sequence_id": 77, "sequence_start": True},
    ),
}
"""What is wrong -> what makes it."""
