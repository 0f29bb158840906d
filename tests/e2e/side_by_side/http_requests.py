"""Tables of requests over HTTP, from sections 4.1 to 4.13 of the sheet: good ones, and what is wrong with bad ones.

Each row makes one request with what the generator draws for it. Requests that end or hang the original (section 12)
are not among them.
"""

import gzip
import json
import random
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from tests.harness.raw_http import get, post

Make = Callable[[random.Random], bytes]
Document = dict[str, Any]

_OF_TYPE: Mapping[str, Callable[[random.Random], Any]] = {
    "BOOL": lambda rng: rng.random() < 0.5,
    "UINT8": lambda rng: rng.randrange(2**8),
    "UINT64": lambda rng: rng.randrange(2**63),
    "INT8": lambda rng: rng.randrange(-(2**7), 2**7),
    "INT16": lambda rng: rng.randrange(-(2**15), 2**15),
    "INT64": lambda rng: rng.randrange(-(2**63), 2**63),
    "FP64": lambda rng: rng.choice([rng.gauss(0, 1), float(rng.randrange(-9, 9)), rng.random() * 1e12]),
}


def tensor(name: str, datatype: str, shape: list[int], **more: Any) -> Document:
    """An input; `more`: data, parameters."""
    return {"name": name, "shape": shape, "datatype": datatype} | more


def ints(rng: random.Random, count: int = 16) -> list[int]:
    return [rng.randrange(-1000, 1000) for _ in range(count)]


def floats(rng: random.Random, count: int) -> list[float]:
    return [round(rng.uniform(-9, 9), 3) for _ in range(count)]


def words(rng: random.Random, count: int) -> list[str]:
    return [
        rng.choice(["a", "", "two words", "äöü", "\0null", '"quoted"']) + str(rng.randrange(9))
        for _ in range(count)
    ]


def infer(model: str, document: Any, fields: bytes = b"", blobs: bytes = b"", version: str = "") -> bytes:
    """A request; with `blobs` behind its JSON, and the header that says so."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    if blobs:
        fields += b"Inference-Header-Content-Length: %d\r\n" % len(text)
    place = f"/versions/{version}" if version else ""
    return post(f"/v2/models/{model}{place}/infer", text + blobs, fields)


def two(rng: random.Random, rows: int = 1, **more: Any) -> Document:
    """A right request for `simple` and `batched`."""
    inputs = [tensor(f"INPUT{i}", "INT32", [rows, 16], data=ints(rng, rows * 16)) for i in (0, 1)]
    return {"inputs": inputs} | more


def three(rng: random.Random, **more: Any) -> Document:
    """A right request for `ident_fp32`."""
    return {"inputs": [tensor("INPUT0", "FP32", [1, 3], data=floats(rng, 3))]} | more


def _pair(rng: random.Random) -> str:
    return rng.choice(["simple", "batched"])


def _named(rng: random.Random) -> Document:
    return {"id": f"request {rng.randrange(1000)}"} if rng.random() < 0.5 else {}


def _binary(rng: random.Random, rows: int, in_binary: bool, fields: bytes = b"") -> bytes:
    sizes = {"binary_data_size": rows * 64}
    inputs = [tensor(f"INPUT{i}", "INT32", [rows, 16], parameters=sizes) for i in (0, 1)]
    document: Document = {"inputs": inputs, "parameters": {"binary_data_output": in_binary}} | _named(rng)
    return infer(_pair(rng), document, fields, struct.pack(f"<{rows * 32}i", *ints(rng, rows * 32)))


def _mixed(rng: random.Random) -> bytes:
    inputs = [
        tensor("INPUT0", "INT32", [1, 16], data=ints(rng)),
        tensor("INPUT1", "INT32", [1, 16], parameters={"binary_data_size": 64}),
    ]
    outputs = [{"name": "OUTPUT1", "parameters": {"binary_data": True}}, {"name": "OUTPUT0"}]
    return infer("simple", {"inputs": inputs, "outputs": outputs}, b"", struct.pack("<16i", *ints(rng)))


def _typed(rng: random.Random) -> bytes:
    datatype = rng.choice(list(_OF_TYPE))
    count = rng.randrange(0, 6)
    data = [_OF_TYPE[datatype](rng) for _ in range(count)]
    return infer(
        f"ident_{datatype.lower()}",
        {"inputs": [tensor("INPUT0", datatype, [count], data=data)]} | _named(rng),
    )


def _strings(rng: random.Random) -> bytes:
    count = rng.randrange(1, 5)
    return infer("ident_string", {"inputs": [tensor("INPUT0", "BYTES", [1, count], data=words(rng, count))]})


def _binary_strings(rng: random.Random) -> bytes:
    blob = b"".join(struct.pack("<I", len(w.encode())) + w.encode() for w in words(rng, 3))
    inputs = [tensor("INPUT0", "BYTES", [1, 3], parameters={"binary_data_size": len(blob)})]
    return infer("ident_string", {"inputs": inputs}, b"", blob)


def _half(rng: random.Random) -> bytes:
    inputs = [tensor("INPUT0", "FP16", [2], parameters={"binary_data_size": 4})]
    outputs = [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]
    return infer(
        "ident_fp16", {"inputs": inputs, "outputs": outputs}, b"", struct.pack("<2e", *floats(rng, 2))
    )


def _nested(rng: random.Random) -> bytes:
    rows = rng.randrange(1, 4)
    data = [[float(value) for value in floats(rng, 2)] for _ in range(rows)]
    return infer("ident_nobatch", {"inputs": [tensor("INPUT0", "FP32", [rows, 2], data=data)]})


def _unusual_floats(rng: random.Random) -> bytes:
    data = rng.sample(["NaN", "Infinity", "-Infinity", "1e300", "-0.0", "3"], 3)
    shape = tensor("INPUT0", "FP32", [1, 3], data="?")
    return infer("ident_fp32", json.dumps({"inputs": [shape]}).replace('"?"', f"[{','.join(data)}]").encode())


def _classified(rng: random.Random) -> bytes:
    outputs = [{"name": "OUTPUT0", "parameters": {"classification": rng.randrange(1, 6)}}]
    rows = rng.randrange(1, 3)
    inputs = [tensor("INPUT0", "FP32", [rows, 4], data=rng.sample(range(100), rows * 4))]
    return infer("labelled", {"inputs": inputs, "outputs": outputs})


def _compressed(rng: random.Random) -> bytes:
    coding, pack = rng.choice([(b"gzip", gzip.compress), (b"deflate", zlib.compress)])
    text = json.dumps(two(rng)).encode()
    return post("/v2/models/simple/infer", pack(text), b"Content-Encoding: %s\r\n" % coding)


def _generated(rng: random.Random) -> bytes:
    fields: Document = {"PROMPT": rng.choice(words(rng, 3)), "temperature": 0.5, "stop": True} | _named(rng)
    if rng.random() < 0.5:
        fields["SUFFIX"] = "!"
    return post("/v2/models/prompt/generate", json.dumps(fields).encode())


def _streamed(rng: random.Random) -> bytes:
    return post("/v2/models/repeat/generate_stream", json.dumps({"TIMES": rng.randrange(1, 4)}).encode())


def _told(rng: random.Random) -> bytes:
    """Parameters that reach the model, and those that do not."""
    own = {"a": rng.randrange(9), "b": True, "c": "text", "priority": rng.randrange(3), "timeout": 10**9}
    inputs = [tensor("PROMPT", "BYTES", [1, 1], data=words(rng, 1))]
    return infer("prompt", {"inputs": inputs, "parameters": own})


def _sequence(rng: random.Random) -> bytes:
    inputs = [tensor("VALUE", "INT32", [1, 1], data=[rng.randrange(9)])]
    told = {
        "sequence_id": rng.choice([rng.randrange(1, 99), "a name"]),
        "sequence_start": True,
        "sequence_end": True,
    }
    return infer("counter", {"inputs": inputs, "parameters": told})


def _rows(rng: random.Random) -> bytes:
    return infer(_pair(rng), two(rng, rng.randrange(1, 9)) | _named(rng))


def _raw(rng: random.Random) -> bytes:
    model, size = rng.choice(
        [("ident_fp32", 12), ("ident_nobatch", 24), ("one_string", 5), ("ident_int16", 6)]
    )
    return post(
        f"/v2/models/{model}/infer", bytes(range(65, 65 + size)), b"Inference-Header-Content-Length: 0\r\n"
    )


def _in_chunks(rng: random.Random) -> bytes:
    """By hand, with or without a length that does not count beside them."""
    text = json.dumps(
        {"inputs": [tensor("INPUT0", "FP32", [1, 3], parameters={"binary_data_size": 12})]}
    ).encode()
    pieces = [text, *(struct.pack("<f", value) for value in floats(rng, 3)), b""]
    fields = [b"Transfer-Encoding: chunked", b"Inference-Header-Content-Length: %d" % len(text)]
    if rng.random() < 0.5:
        fields.append(b"Content-Length: %d" % rng.randrange(1000))
    head = b"\r\n".join([b"POST /v2/models/ident_fp32/infer HTTP/1.1", b"Host: test", *fields, b"", b""])
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def _ends_in_blanks(rng: random.Random) -> bytes:
    inputs = [tensor("PROMPT", "BYTES", [1, 1], data=words(rng, 1))]
    return infer("prompt", {"inputs": inputs, "outputs": [{"name": "TOLD"}]}, b"x-own: a b  \r\n")


def _chosen(rng: random.Random) -> bytes:
    return infer(_pair(rng), two(rng, outputs=[{"name": rng.choice(["OUTPUT0", "OUTPUT1"])}]))


GOOD: Mapping[str, Make] = {
    "infer of several rows": _rows,
    "infer of one output": _chosen,
    "infer without outputs asked for": lambda rng: infer("simple", two(rng, outputs=[])),
    "infer of a version": lambda rng: infer("simple", two(rng), version="1"),
    "infer with unknown keys": lambda rng: infer("simple", two(rng, model_name="other", more={"a": [1]})),
    "infer as a form": lambda rng: infer(
        "simple", two(rng), b"Content-Type: application/x-www-form-urlencoded\r\n"
    ),
    "infer in binary": lambda rng: _binary(rng, rng.randrange(1, 4), True),
    "infer in binary, answer in JSON": lambda rng: _binary(rng, 1, False),
    "infer both ways": _mixed,
    "infer of a datatype": _typed,
    "infer of strings": _strings,
    "infer of strings in binary": _binary_strings,
    "infer of FP16 in binary": _half,
    "infer of nested data": _nested,
    "infer of unusual floats": _unusual_floats,
    "infer with classification": _classified,
    "infer, compressed": _compressed,
    "infer with parameters": _told,
    "infer in a sequence": _sequence,
    "infer of no elements": lambda rng: infer(
        "ident_string", {"inputs": [tensor("INPUT0", "BYTES", [rng.randrange(1, 4), 0], data=[])]}
    ),
    "infer of a raw body": _raw,
    "infer in chunks": _in_chunks,
    "infer with a header that ends in blanks": _ends_in_blanks,
    "infer with a header": lambda rng: infer(
        "prompt", {"inputs": [tensor("PROMPT", "BYTES", [1, 1], data=words(rng, 1))]}, b"x-own:  a b\r\n"
    ),
    "generate": _generated,
    "generate_stream": _streamed,
    "generate with a parameter twice": lambda rng: post(
        "/v2/models/ident_string/generate",
        b'{"INPUT0":"p","a":1,"a":[2],"id":"i","id":%d}' % rng.randrange(9),
    ),
    "generate of several rows": lambda rng: post(
        "/v2/models/ident_fp32/generate",
        json.dumps({"INPUT0": floats(rng, 3 * rng.randrange(1, 5))}).encode(),
    ),
    "generate with lists of one": lambda rng: post("/v2/models/prompt/generate", b'{"PROMPT":[["a"]]}'),
    "health": lambda rng: get(rng.choice(["/v2/health/live", "/v2/health/ready"])),
    "a model's readiness": lambda rng: get(f"/v2/models/{_pair(rng)}/ready"),
    "metadata of the server": lambda rng: get("/v2"),
    "metadata of a model": lambda rng: get(
        f"/v2/models/{rng.choice(['simple', 'ident_nobatch', 'prompt', 'counter'])}"
    ),
    "a configuration": lambda rng: get(
        f"/v2/models/{rng.choice(['simple', 'batched', 'repeat', 'counter'])}/config"
    ),
    "statistics": lambda rng: get(f"/v2/models/{rng.choice(['batched', 'one_string'])}/stats"),
    "statistics of a version": lambda rng: get("/v2/models/batched/versions/1/stats"),
    "statistics of a model that failed": lambda rng: get("/v2/models/failing/stats"),
    "statistics of a model that refused": lambda rng: get("/v2/models/ident_nobatch/stats"),
    "log settings": lambda rng: get("/v2/logging"),
    "an unknown log setting": lambda rng: post("/v2/logging", b'{"log_infos":true,"log_info":null}'),
    "an unknown trace setting": lambda rng: post(
        "/v2/trace/setting", rng.choice([b'{"trace_rates":"1"}', b'{"trace_level":["LOUD"]}'])
    ),
    "trace settings": lambda rng: get(rng.choice(["/v2/trace/setting", "/v2/models/simple/trace/setting"])),
    "the index": lambda rng: post("/v2/repository/index", rng.choice([b"", b"{}", b'{"ready":true}'])),
    "shared memory": lambda rng: get(f"/v2/{rng.choice(['system', 'cuda'])}sharedmemory/status"),
    "unregister": lambda rng: post(f"/v2/{rng.choice(['system', 'cuda'])}sharedmemory/unregister", b""),
    "unload what is unknown": lambda rng: post("/v2/repository/models/unheard/unload", b""),
}
"""What is asked -> what makes it. None of them changes what a later one is answered."""
