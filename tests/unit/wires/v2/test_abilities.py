"""What the protocol does with content codings, forwarded headers and shared memory, without a server."""

import gzip
import json
import re
import zlib

import numpy as np
import pytest

from trivium.codecs.header_text import JSON
from trivium.types.errors import Code, ServeError
from trivium.types.operations import ResponsePart
from trivium.types.payload import Tensors
from trivium.types.wire import Body, Head
from trivium.wires.v2.abilities import EXTENSIONS, KServeOptions
from trivium.wires.v2.errors import refuse
from trivium.wires.v2.http import KServeHttp

DOCUMENT = {"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [1, 2]}]}
LARGE = ResponsePart(Tensors.of({"y": np.zeros(2000, "f4")}), model="m", version="1")


def ask(document=DOCUMENT, abilities=None, path="/v2/models/m/infer", **headers):
    protocol = KServeHttp("trivium", "1", abilities or KServeOptions())
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    fields = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    head = Head("POST", path, "", fields, len(body))
    return protocol.decode(head, protocol.head(head), Body(body))


def refusal(*words, **more):
    with pytest.raises(ServeError) as caught:
        ask(*words, **more)
    return caught.value


@pytest.mark.parametrize(
    ("coding", "pack"), [(b"gzip", gzip.compress), (b" X-GZIP", gzip.compress), (b"deflate", zlib.compress)]
)
def test_a_body_may_be_compressed(coding, pack):
    text = b'{"inputs":[{"name":"x","shape":[2],"datatype":"INT8","parameters":{"binary_data_size":2}}]}'
    operation, _ = ask(
        pack(text + b"\1\2"), content_encoding=coding, inference_header_content_length=b"%d" % len(text)
    )
    assert operation.payload["x"].tolist() == [1, 2]
    assert ask(pack(json.dumps(DOCUMENT).encode()), content_encoding=coding)[0].payload["x"].tolist() == [
        1,
        2,
    ]


def test_other_codings_are_refused_and_told_those_there_are():
    error = refusal(content_encoding=b"br")
    assert error.code is Code.UNSUPPORTED_MEDIA
    assert refuse(error).fields == JSON + b"Accept-Encoding: gzip, deflate\r\n"
    assert refusal(content_encoding=b"gzip, gzip").code is Code.UNSUPPORTED_MEDIA
    assert ask(content_encoding=b"Identity")[0].payload["x"].tolist() == [1, 2]
    assert (
        refusal(gzip.compress(bytes(99)), KServeOptions(most_unpacked=98), content_encoding=b"gzip").code
        is Code.TOO_LARGE
    )


def test_decoding_what_is_compressed_is_costly():
    protocol = KServeHttp("trivium", "1")
    head = Head("POST", "/v2/models/m/infer", "", {b"content-encoding": b"gzip"}, 5000)
    assert protocol.is_costly(head, bytes(5000))
    assert not protocol.is_costly(head, bytes(500))


@pytest.mark.parametrize(
    ("accept", "unpack"), [(b"gzip", gzip.decompress), (b"deflate, gzip;q=0.1", zlib.decompress)]
)
@pytest.mark.parametrize("path", ["/v2/models/m/infer", "/v2/models/m/generate"])
def test_answers_of_middling_size_are_compressed(accept, unpack, path):
    plain = ask(path=path)[1].encode(LARGE)
    packed = ask(path=path, accept_encoding=accept)[1].encode(LARGE)
    (content,) = packed.buffers
    assert packed.size == len(content)
    assert unpack(content) == b"".join(plain.buffers)
    assert packed.fields.endswith(b"\r\nVary: Accept-Encoding\r\n")


@pytest.mark.parametrize("size", [1, 100_000])
def test_small_and_large_ones_and_errors_are_not(size):
    encoder = ask(accept_encoding=b"gzip")[1]
    for part in (
        ResponsePart(Tensors.of({"y": np.zeros(size, "f4")}), model="m"),
        ResponsePart(error=ServeError(Code.INVALID, "x" * 3000)),
    ):
        assert b"Content-Encoding" not in encoder.encode(part).fields
    stream = ask(accept_encoding=b"gzip", path="/v2/models/m/generate_stream")[1]
    assert b"Content-Encoding" not in stream.encode(LARGE).fields


def test_headers_become_parameters():
    abilities = KServeOptions(forwards=re.compile("x-.*|word"))
    fields = {"x_a": b"1", "word": b"\xe4", "words": b"no"}
    for path in ("/v2/models/m/infer", "/v2/models/m/generate", "/v2/models/m/generate_stream"):
        operation, _ = ask({**DOCUMENT, "parameters": {"own": 1}}, abilities, path, **fields)
        assert operation.parameters == {"own": 1, "x-a": "1", "word": "ä"}
        assert ask(DOCUMENT, abilities, path)[0].parameters == {}


def test_a_reserved_header_is_not_forwarded():
    protocol = KServeHttp("trivium", "1", KServeOptions(forwards=re.compile(".*")))
    head = Head("POST", "/v2/models/m/infer", "", {b"triton_x": b"1"})
    with pytest.raises(ServeError, match="'triton_x' cannot become a parameter"):
        protocol.decode(head, protocol.head(head), Body(json.dumps(DOCUMENT).encode()))


def test_shared_memory_is_told_of_where_it_is_on():
    assert KServeOptions().extensions == EXTENSIONS
    assert KServeOptions(shares_memory=True).extensions == (*EXTENSIONS, "system_shared_memory")
    entry = {"name": "x", "shape": [1], "datatype": "INT8"}
    place = {"shared_memory_region": "r", "shared_memory_byte_size": 1}
    assert refusal({"inputs": [{**entry, "parameters": place}]}).code is Code.UNSUPPORTED


class Memory:
    def __init__(self):
        self.data = bytearray(64)

    def view(self, name, offset, size):
        return memoryview(self.data)[offset : offset + size]


def test_an_output_is_written_where_it_was_asked_for():
    memory = Memory()
    place = {"shared_memory_region": "r", "shared_memory_byte_size": 10, "shared_memory_offset": 4}
    outputs = [{"name": "y", "parameters": place}, {"name": "z"}]
    _, encoder = ask({**DOCUMENT, "outputs": outputs}, KServeOptions(regions=memory))
    part = ResponsePart(Tensors.of({"y": np.array([1, 2], "<i4"), "z": np.array([3], "i1")}), model="m")
    document = json.loads(b"".join(encoder.encode(part).buffers))
    assert document["outputs"] == [
        {"name": "y", "datatype": "INT32", "shape": [2]},
        {"name": "z", "datatype": "INT8", "shape": [1], "data": [3]},
    ]
    assert bytes(memory.data[:14]) == bytes(4) + np.array([1, 2], "<i4").tobytes() + bytes(2)
    large = ResponsePart(Tensors.of({"y": np.zeros(3, "<i4")}), model="m")
    refused = encoder.encode(large)
    assert (refused.status, b"takes 12 bytes" in b"".join(refused.buffers)) == (400, True)
