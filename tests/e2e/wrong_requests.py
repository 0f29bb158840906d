"""Requests that are wrong, each with the status that it deserves and words that its refusal must have.

For a server of the models in `tests.fixtures.models` that takes bodies of `LIMIT` bytes.
"""

import json
from typing import Any

from tests.harness.raw_http import get, infer_request, post, tensor

LIMIT = 1_000_000

ECHO = "/v2/models/echo/infer"
ROW = tensor("x", [1, 2, 3, 4], [1, 4])
GOOD = json.dumps({"inputs": [ROW]}).encode()
NESTED = "[" * 100_000 + "]" * 100_000
DEEP = json.dumps({"inputs": [tensor("x", "...", [1, 4])]}).replace('"..."', NESTED)

Cases = dict[str, tuple[bytes, int, str]]


def echo(data: Any, shape: Any, datatype: Any = "FP32") -> bytes:
    return infer_request("echo", tensor("x", data, shape, datatype))


def kind(datatype: str, data: Any) -> bytes:
    return infer_request("kinds", tensor(f"in_{datatype}", data, [2, 1], datatype))


def in_binary(length: int | bytes, header: dict[str, Any] | bytes, blob: bytes, model: str = "echo") -> bytes:
    """A request by the binary extension that says that its JSON has `length` bytes; -1 is the truth."""
    text = header if isinstance(header, bytes) else json.dumps({"inputs": [header]}).encode()
    said = b"%d" % len(text) if length == -1 else length if isinstance(length, bytes) else b"%d" % length
    return post(f"/v2/models/{model}/infer", text + blob, b"Inference-Header-Content-Length: %s\r\n" % said)


def blob_input(shape: list[int], size: int, datatype: str = "FP32") -> dict[str, Any]:
    return {"name": "x", "shape": shape, "datatype": datatype, "parameters": {"binary_data_size": size}}


BLOB = blob_input([1, 4], 16)


def raw_json(text: str) -> bytes:
    return post(ECHO, text.encode())


HTTP: Cases = {
    "no HTTP at all": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "request"),
    "no version": (b"GET /v2 HTTP/9.9\r\n\r\n", 400, "request"),
    "two lengths": (post(ECHO, GOOD, b"Content-Length: 3\r\n"), 400, "Content-Length"),
    "length and chunks": (post(ECHO, GOOD, b"Transfer-Encoding: chunked\r\n"), 400, "chunk size"),
    "negative length": (
        b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n" % ECHO.encode(),
        400,
        "",
    ),
    "header of 1 MB": (get("/v2", b"X: %s\r\n" % (b"a" * 1_000_000)), 431, "head"),
    "path of 1 MB": (get("/v2/" + "a" * 1_000_000), 414, "8192"),
    "body beyond the limit": (post(ECHO, bytes(LIMIT + 1)), 413, str(LIMIT)),
    "unknown route": (get("/v2/model/echo"), 404, "/v2/models/"),
    "unknown protocol": (get("/v3"), 404, "/v2"),
    "wrong method": (get(ECHO), 405, "POST"),
    "compressed": (post(ECHO, GOOD, b"Content-Encoding: gzip\r\n"), 400, "decompressing"),
    "unknown model": (infer_request("ecko", ROW), 404, "echo"),
    "no name in UTF-8": (get("/v2/models/%ff%fe"), 400, "UTF-8"),
}

FORM: Cases = {
    "nothing": (raw_json(""), 400, "with its shape"),
    "no JSON": (raw_json("hello"), 400, "JSON"),
    "half a JSON": (raw_json('{"inputs": [{"name": "x",'), 400, "JSON"),
    "an array": (raw_json("[]"), 400, "object"),
    "no inputs": (raw_json("{}"), 400, "inputs"),
    "inputs are null": (raw_json('{"inputs": null}'), 400, "array"),
    "name is a number": (infer_request("echo", ROW | {"name": 5}), 400, "inputs[0].name"),
    "shape is text": (echo([1, 2, 3, 4], "1,4"), 400, "inputs[0].shape"),
    "dim is text": (echo([1, 2, 3, 4], [1, "4"]), 400, "inputs[0].shape[1]"),
    "dim is no integer": (echo([1, 2, 3, 4], [1, 4.5]), 400, "inputs[0].shape[1]"),
    "unknown datatype": (echo([1, 2, 3, 4], [1, 4], "FLOAT"), 400, "FP32"),
    "data is an object": (echo({"a": 1}, [1, 4]), 400, "array"),
    "data is text": (echo("1234", [1, 4]), 400, "array"),
    "data has text in it": (echo([1, 2, "3", 4], [1, 4]), 400, "Element 2"),
    "data has null in it": (echo([1, 2, 3, None], [1, 4]), 400, "Element 3"),
    "too deep": (raw_json(DEEP), 400, "deep"),
    "id is a number": (infer_request("echo", ROW, id=5), 400, "id"),
    "parameter of a wrong type": (
        infer_request("echo", ROW, parameters={"priority": "high"}),
        400,
        "priority",
    ),
}

SHAPES: Cases = {
    "too few": (echo([1, 2, 3], [1, 4]), 400, "3 elements"),
    "too many": (echo([1, 2, 3, 4, 5], [1, 4]), 400, "5 elements"),
    "overflow of 64 bits": (echo([1], [2**32, 2**32, 1]), 400, "multiply"),
    "dim of 64 bits": (echo([1], [1, 2**63]), 400, "multiply"),
    "dim of 100 digits": (echo([1], [10**100]), 400, "shape"),
    "negative": (echo([1, 2, 3, 4], [-1, -4]), 400, "an integer >= 0"),
    "minus one": (echo([1, 2, 3, 4], [-1, 4]), 400, "an integer >= 0"),
    "of 100 dims": (echo([1], [1] * 100), 400, "dimensions"),
    "overflow in binary": (in_binary(-1, blob_input([2**62, 4], 16), bytes(16)), 400, "multiply"),
    "empty batch": (echo([], [0, 4]), 400, "empty batch"),
    "empty batch in binary": (in_binary(-1, blob_input([0, 4], 0), b""), 400, "empty batch"),
    "too large a batch": (echo([1.0] * 68, [17, 4]), 400, "at most 16"),
    "no dims where a batch is wanted": (echo([1], []), 400, "[-1,4]"),
    "no dims where some are wanted": (infer_request("add", tensor("a", [1], [])), 400, "[4]"),
    "wrong dims": (echo([1, 2], [1, 2]), 400, "[-1,4]"),
}

VALUES: Cases = {
    "NaN as an integer": (kind("INT8", [float("nan"), 1]), 400, "Element 0"),
    "300 as INT8": (kind("INT8", [1, 300]), 400, "-128 to 127"),
    "2**64 as UINT64": (kind("UINT64", [1, 2**64]), 400, "Element 1"),
    "10**400 as INT64": (kind("INT64", [1, 10**400]), 400, "INT64"),
    "1.5 as INT32": (kind("INT32", [1.5, 1]), 400, "Element 0"),
    "FP16 in JSON": (kind("FP16", [1, 1]), 400, "binary"),
    "a BOOL of 2": (in_binary(-1, blob_input([2, 1], 2, "BOOL"), b"\x01\x02", "kinds"), 400, "0 nor 1"),
}

INPUTS: Cases = {
    "none": (infer_request("echo"), 400, "no input 'x'"),
    "unknown": (infer_request("echo", ROW | {"name": "z"}), 400, "no input 'z'; it takes 'x' FP32[-1,4]"),
    "one too many": (infer_request("echo", ROW, ROW | {"name": "z"}), 400, "no input 'z'"),
    "twice": (infer_request("echo", ROW, ROW), 400, "'x' is given more than once"),
    "one missing": (infer_request("add", tensor("a", [1, 2, 3, 4], [4])), 400, "no input 'b'"),
    "unknown output": (infer_request("echo", ROW, outputs=[{"name": "z"}]), 400, "no output 'z'"),
    "output twice": (
        infer_request("echo", ROW, outputs=[{"name": "y"}] * 2),
        400,
        "'y' is given more than once",
    ),
}

BINARY: Cases = {
    "length beyond the body": (in_binary(5000, BLOB, bytes(16)), 400, "5000"),
    "length too short": (in_binary(20, BLOB, bytes(16)), 400, "Inference-Header-Content-Length"),
    "length too long": (in_binary(105, BLOB, bytes(16)), 400, "Inference-Header-Content-Length"),
    "length is no number": (in_binary(b"many", BLOB, bytes(16)), 400, "'many'"),
    "length is negative": (in_binary(b"-7", BLOB, bytes(16)), 400, "'-7'"),
    "length is huge": (in_binary(b"9" * 5000, BLOB, bytes(16)), 400, "digits"),
    "size beyond the body": (in_binary(-1, blob_input([1, 4], 17), bytes(16)), 400, "16 bytes are left"),
    "size not that of the shape": (in_binary(-1, blob_input([1, 4], 12), bytes(12)), 400, "takes 16 bytes"),
    "size is negative": (in_binary(-1, blob_input([1, 4], -1), b""), 400, "binary_data_size"),
    "bytes left over": (in_binary(-1, BLOB, bytes(20)), 400, "4 are left over"),
    "an element cut short": (
        in_binary(-1, blob_input([1], 8, "BYTES"), b"\xff\xff\xff\x7fabcd", "bytes"),
        400,
        "'x'",
    ),
    "data twice": (in_binary(-1, BLOB | {"data": [1, 2, 3, 4]}, bytes(16)), 400, "both"),
}

CASES = {
    f"{kind}: {name}": case
    for kind, cases in (
        ("http", HTTP),
        ("form", FORM),
        ("shape", SHAPES),
        ("value", VALUES),
        ("input", INPUTS),
        ("binary", BINARY),
    )
    for name, case in cases.items()
}
