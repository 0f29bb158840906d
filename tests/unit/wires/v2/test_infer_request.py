import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.types.buffers import Lease
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import SequenceRef, WantedOutput
from trivium.types.payload import PayloadKind, Raw, RawForm, RawPart
from trivium.types.wire import Body, Head, Target
from trivium.wires.v2.http import KServeHttp
from trivium.wires.v2.infer_request import HEADER_LENGTH, decode_infer
from trivium.wires.v2.placement import RegionSlice
from trivium.wires.v2.routes import Verb

TARGET = Target(Verb.INFER, "m", "2", True)
LENGTH = b"inference-header-content-length"


def decode(body, headers=None):
    return decode_infer(Head("POST", "/v2/models/m/infer", "", headers or {}), TARGET, Body(body), None)


def decode_binary(document, *blobs, length=None):
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    headers = {LENGTH: str(len(text)).encode() if length is None else length}
    return decode(text + b"".join(blobs), headers)


def an_input(name="a", shape=(2,), datatype="FP32", **more):
    return {"name": name, "shape": list(shape), "datatype": datatype, **more}


def blob_input(size, **more):
    return an_input(parameters={"binary_data_size": size}, **more)


def refusal(body, headers=None):
    with pytest.raises(ServeError) as refused:
        decode(body, headers)
    return refused.value


def test_json_data():
    request = decode(json.dumps({"inputs": [an_input(data=[1, 2.5])]}).encode())
    operation = request.operation
    assert (operation.model, operation.version, operation.id) == ("m", "2", "")
    assert (operation.outputs, operation.priority, operation.queue_timeout) == ((), 0, None)
    tensor = operation.payload.items[0]
    assert (tensor.name, tensor.datatype, tensor.shape) == ("a", DataType.FP32, (2,))
    assert tensor.array.tolist() == [1.0, 2.5]


def test_the_answer_must_be_tensors():
    protocol, document = KServeHttp("t", "1"), {"inputs": [blob_input(4, shape=(1,))]}
    text = json.dumps(document).encode()
    head = Head("POST", "", "", {LENGTH: str(len(text)).encode()})
    for _ in range(2):  # the second time by the short way
        assert protocol.decode(head, TARGET, Body(text + bytes(4)))[0].wants is PayloadKind.TENSORS
    assert decode(text.replace(b'"parameters": {"binary_data_size": 4}', b'"data": [1]')).operation.wants


def test_binary_data_are_viewed_in_the_order_of_the_inputs_that_have_some():
    values = np.array([1, 2], "<f4")
    document = {
        "inputs": [
            blob_input(8),
            an_input("j", (1,), "INT8", data=[3]),
            blob_input(5, name="s", shape=(1,), datatype="BYTES"),
        ]
    }
    text = json.dumps(document).encode()
    lent = memoryview(bytearray(text + values.tobytes() + b"\1\0\0\0x"))
    lease = Lease(lent, lambda lease: None)
    head = Head("POST", "", "", {LENGTH: str(len(text)).encode()})
    payload = decode_infer(head, TARGET, Body(lent, lease), None).operation.payload
    assert [tensor.array.tolist() for tensor in payload.items] == [[1.0, 2.0], [3], [b"x"]]
    assert np.shares_memory(payload["a"], np.frombuffer(lent, "u1"))
    assert payload.lease is lease


def test_a_header_that_is_known_tells_where_its_data_begins():
    protocol = KServeHttp("t", "1")
    text = json.dumps({"inputs": [blob_input(8), blob_input(4, name="b", shape=(1,))]}).encode()
    lent = memoryview(bytearray(text + np.array([1, 2, 3], "<f4").tobytes()))
    lease = Lease(lent, lambda lease: None)
    head = Head("POST", "", "", {LENGTH: str(len(text)).encode()})
    for at in (None, len(text)):
        payload = protocol.decode(head, TARGET, Body(lent, lease))[0].payload
        assert (payload.lease, payload.at) == (lease, at)
        assert [tensor.array.tolist() for tensor in payload.items] == [[1.0, 2.0], [3.0]]


def test_what_else_a_request_says():
    document = {
        "id": "r1",
        "inputs": [],
        "outputs": [{"name": "x"}, {"name": "y", "parameters": {"binary_data": False, "classification": 0}}],
        "parameters": {
            "binary_data_output": True,
            "priority": 3,
            "timeout": 2000000,
            "k": "v",
            "sequence_id": 9,
        },
        "model_name": "another",
        "unknown": [{}],
    }
    request = decode(json.dumps(document).encode())
    operation = request.operation
    assert operation.id == "r1"
    assert operation.outputs == (WantedOutput("x"), WantedOutput("y"))
    assert request.forms == {"x": True, "y": False}
    assert (operation.priority, operation.queue_timeout, operation.parameters) == (3, 2.0, {"k": "v"})
    assert operation.sequence == SequenceRef(9)


@pytest.mark.parametrize("shape", [(0,), (1, 0), (0, 3)])
@pytest.mark.parametrize("datatype", ["FP32", "BYTES", "FP16"])
def test_an_input_without_elements_needs_no_data(shape, datatype):
    body = json.dumps({"inputs": [an_input(shape=shape, datatype=datatype)]}).encode()
    assert decode(body).operation.payload.items[0].array.shape == shape


def test_no_dimensions():
    document = {"inputs": [an_input(shape=(), datatype="INT32", data=[7])]}
    assert decode(json.dumps(document).encode()).operation.payload["a"].shape == ()
    assert decode_binary({"inputs": [blob_input(4, shape=())]}, b"1234").operation.payload["a"].shape == ()


def test_bare_words_are_numbers_in_data():
    body = (
        b'{"inputs": [{"name": "NaN", "shape": [3], "datatype": "FP32", "data": [NaN, -Infinity, 1]},'
        b'{"name": "s", "shape": [1], "datatype": "BYTES", "data": ["Infinity"]},'
        b'{"name": "n", "shape": [0], "datatype": "FP64"}], "id": "Infinity"}'
    )
    payload = decode(body).operation.payload
    assert np.array_equal(payload["NaN"], [np.nan, -np.inf, 1], equal_nan=True)
    assert payload["s"].tolist() == [b"Infinity"]
    assert payload["n"].shape == (0,)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (an_input(shape=(2**32, 2**32), data=[1]), "more than any tensor"),
        (an_input(shape=(10**30,), data=[1]), "more than any tensor"),
        (an_input(shape=(1,) * 100, data=[1]), "has 100 dimensions"),
        (an_input(data=[1]), "has 1 elements, but its shape"),
        (an_input(data={}), "expected an array"),
        (an_input(data=None), "expected an array"),
        (an_input(), "neither"),
        (an_input(shape=(2, 0), data=[1]), "has 1 elements"),
    ],
)
def test_data_that_do_not_fit_their_shape(document, words):
    with pytest.raises(ServeError, match=words) as refused:
        decode(json.dumps({"inputs": [document]}).encode())
    assert refused.value.code is Code.INVALID


@pytest.mark.parametrize(
    ("document", "blob", "words"),
    [
        (blob_input(8), b"1234567", "binary_data_size 8, but 7 bytes are left"),
        (blob_input(8), b"123456789", "make [0-9]+: 1 are left over"),
        (blob_input(4), b"1234", "takes 8 bytes, but 4 were sent"),
        (blob_input(-1), b"", "binary_data_size: expected an integer >= 0"),
        (blob_input(True), b"1", "expected an integer, got true or false"),
        (blob_input("8"), b"12345678", "expected an integer, got a string"),
        (blob_input(8.0), b"12345678", "expected an integer, got a number"),
        (blob_input(10**30), b"12345678", "binary_data_size 1000000000000000000000000000000, but 8"),
        (blob_input(2**40, shape=(2**40,), datatype="UINT8"), b"", "but 0 bytes are left"),
        (blob_input(8, data=[1, 2]), b"12345678", "both"),
        (blob_input(None), b"", "expected an integer"),
        (an_input(data=[1, 2]), b"1", "1 are left over"),
        (blob_input(2, shape=(2,), datatype="BOOL"), b"\1\2", "neither 0 nor 1"),
    ],
)
def test_blobs_that_do_not_add_up(document, blob, words):
    with pytest.raises(ServeError, match=words) as refused:
        decode_binary({"inputs": [document]}, blob)
    assert refused.value.code is Code.INVALID


@pytest.mark.parametrize(
    ("length", "code", "words"),
    [
        (b"-1", Code.INVALID, "'-1'; expected is the length"),
        (b"+5", Code.INVALID, "'\\+5'"),
        (b"", Code.INVALID, "''"),
        (b"abc", Code.INVALID, "'abc'"),
        (b"1e3", Code.INVALID, "'1e3'"),
        (b"1_0", Code.INVALID, "'1_0'"),
        (b"\xb2", Code.INVALID, "expected is the length"),
        (b"9" * 5000, Code.INVALID, "expected is the length"),
        (b"999999", Code.INVALID, "999999, but the body has only"),
        (b"5", Code.INVALID, "no valid JSON"),
    ],
)
def test_wrong_lengths_of_the_header(length, code, words):
    with pytest.raises(ServeError, match=words) as refused:
        decode_binary({"inputs": [blob_input(8)]}, b"12345678", length=length)
    assert refused.value.code is code


def test_a_length_into_the_blob_is_refused():
    text = json.dumps({"inputs": [blob_input(8)]}).encode()
    error = refusal(text + b"12345678", {LENGTH: str(len(text) + 4).encode()})
    assert error.code is Code.INVALID


@pytest.mark.parametrize(
    ("document", "code", "words"),
    [
        ({"inputs": [an_input(data=[1, 2])] * 2}, Code.INVALID, "input 'a' is given more than once"),
        ({"inputs": [], "parameters": {"foo": {"a": 1}}}, Code.INVALID, "'foo'"),
        ({"inputs": [], "outputs": [{"name": "x"}] * 2}, Code.INVALID, "output 'x' is given more than once"),
        (
            {"inputs": [], "outputs": [{"name": "x", "parameters": {"shared_memory_region": "r"}}]},
            Code.INVALID,
            "'x' is to be in shared memory.*Give both",
        ),
        (
            {"inputs": [an_input(parameters={"shared_memory_region": "r", "shared_memory_byte_size": 8})]},
            Code.UNSUPPORTED,
            "'a' is to be in shared memory",
        ),
        (
            {"inputs": [an_input(parameters={"shared_memory_offset": 8}, data=[1, 2])]},
            Code.INVALID,
            "shared memory.*Give both",
        ),
        (
            {"inputs": [], "outputs": [{"name": "x", "parameters": {"classification": -1}}]},
            Code.INVALID,
            ">= 0",
        ),
        (
            {"inputs": [], "outputs": [{"name": "x", "parameters": {"binary_data": 1}}]},
            Code.INVALID,
            "true or",
        ),
    ],
)
def test_wishes_that_are_refused(document, code, words):
    with pytest.raises(ServeError, match=words) as refused:
        decode(json.dumps(document).encode())
    assert refused.value.code is code


@pytest.mark.parametrize("headers", [{LENGTH: b"0"}, {LENGTH: b"000"}])
def test_a_body_without_a_header_is_left_to_the_door(headers):
    lease = Lease(memoryview(bytearray(4)), lambda lease: None)
    head = Head("POST", "", "", headers)
    request = decode_infer(head, TARGET, Body(b"abcd", lease), None)
    payload = request.operation.payload
    assert payload == Raw((RawPart(b"abcd", "application/octet-stream"),), lease=lease, form=RawForm.TENSOR)
    assert (request.operation.model, request.operation.version) == ("m", "2")
    assert (request.forms, request.binary_output) == ({}, True)
    assert isinstance(decode(b"").operation.payload, Raw), "so does nothing at all"


class Memory:
    """A region `r` of 16 bytes."""

    def __init__(self):
        self.data = bytearray(range(16))

    def view(self, name, offset, size):
        if name != "r" or offset + size > len(self.data):
            raise ServeError(Code.NOT_FOUND, "no such region")
        return memoryview(self.data)[offset : offset + size]


def placed(region="r", size=8, offset=0):
    return {"shared_memory_region": region, "shared_memory_byte_size": size, "shared_memory_offset": offset}


def decode_shared(document):
    head = Head("POST", "", "", {})
    return decode_infer(head, TARGET, Body(json.dumps(document).encode()), None, Memory())


def test_inputs_in_shared_memory_are_copied_out_of_it():
    document = {
        "inputs": [an_input(datatype="INT32", parameters=placed(offset=4)), an_input("b", data=[1, 2])]
    }
    request = decode_shared(document)
    first, second = request.operation.payload.items
    assert first.array.tobytes() == bytes(range(4, 12))
    assert second.array.tolist() == [1, 2]
    assert not first.array.flags.writeable


def test_outputs_in_shared_memory():
    outputs = [{"name": "x", "parameters": placed(size=3)}, {"name": "y"}]
    assert decode_shared({"inputs": [], "outputs": outputs}).forms == {
        "x": RegionSlice("r", 0, 3),
        "y": False,
    }


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"inputs": [an_input(parameters=placed("s"))]}, "no such region"),
        ({"inputs": [an_input(parameters=placed(size=4))]}, "takes 8 bytes, but 4"),
        ({"inputs": [an_input(parameters=placed(), data=[1, 2])]}, "data of its own"),
        ({"inputs": [an_input(parameters=placed() | {"binary_data_size": 8})]}, "data of its own"),
        ({"inputs": [], "outputs": [{"name": "x", "parameters": placed() | {"classification": 1}}]}, "both"),
        ({"inputs": [], "outputs": [{"name": "x", "parameters": placed() | {"binary_data": True}}]}, "both"),
        ({"inputs": [an_input(parameters={"shared_memory_region": "r"})]}, "Give both"),
        ({"inputs": [an_input(parameters=placed(offset=-1))]}, ">= 0"),
    ],
)
def test_shared_memory_that_does_not_add_up(document, words):
    with pytest.raises(ServeError, match=words):
        decode_shared(document)


def test_classification_is_the_cores():
    outputs = [{"name": "x", "parameters": {"classification": 3}}, {"name": "y"}]
    request = decode(json.dumps({"inputs": [], "outputs": outputs}).encode())
    assert request.operation.outputs == (WantedOutput("x", 3), WantedOutput("y"))


NUMERIC = [kind for kind in DataType if kind not in (DataType.BYTES, DataType.BOOL)]


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from(NUMERIC), st.integers(0, 3)), max_size=4), st.randoms())
def test_any_binary_tensors_come_out_as_they_went_in(kinds, chance):
    blobs = [chance.randbytes(kind.itemsize * count) for kind, count in kinds]
    document = {
        "inputs": [
            blob_input(len(blob), name=f"i{index}", shape=(count,), datatype=kind.wire)
            for index, ((kind, count), blob) in enumerate(zip(kinds, blobs, strict=True))
        ]
    }
    items = decode_binary(document, *blobs).operation.payload.items
    assert [(item.name, item.datatype, item.array.tobytes()) for item in items] == [
        (f"i{index}", kind, blob) for index, ((kind, _), blob) in enumerate(zip(kinds, blobs, strict=True))
    ]


VALID = json.dumps(
    {"id": "x", "inputs": [blob_input(8), an_input("b", data=[[1], [2]])], "outputs": [{"name": "o"}]}
).encode()


def test_what_is_damaged_below_was_whole():
    assert decode(VALID + b"12345678", {LENGTH: str(len(VALID)).encode()}).operation.id == "x"


noise = st.one_of(
    st.binary(max_size=12), st.text('[]{}":,0123456789.-eNaInfity\\ut', max_size=12).map(str.encode)
)


@settings(max_examples=examples(200))
@given(noise, st.integers(0, len(VALID) + 8), st.sampled_from([None, 0, 1]), st.integers(0, 300))
def test_hostile_bytes_are_decoded_or_refused(noise, place, kept, length):
    damaged = VALID[:place] + noise + VALID[place + len(noise) * (kept or 0) :] + b"12345678"
    for headers in ({}, {LENGTH: str(len(VALID)).encode()}, {LENGTH: str(length).encode()}):
        with suppress(ServeError):
            decode(damaged, headers)


def test_a_repeated_header_is_read_with_its_own_blobs():
    protocol = KServeHttp("t", "1")
    text = b'{"inputs":[{"name":"x","shape":[2],"datatype":"INT32","parameters":{"binary_data_size":8}}]}'
    head = Head("POST", "/v2/models/m/infer", "", {HEADER_LENGTH: str(len(text)).encode()})
    for values in ([1, 2], [3, 4], [5, 6]):
        body = text + np.array(values, "<i4").tobytes()
        operation, _ = protocol.decode(head, TARGET, Body(body))
        assert operation.payload["x"].tolist() == values
    with pytest.raises(ServeError, match="left over"):
        protocol.decode(head, TARGET, Body(text + bytes(9)))
    with pytest.raises(ServeError, match="7 bytes are left"):
        protocol.decode(head, TARGET, Body(text + bytes(7)))


def test_a_header_with_an_id_is_read_anew():
    protocol = KServeHttp("t", "1")
    for number in (b"1", b"2"):
        text = (
            b'{"id":"%s","inputs":[{"name":"x","shape":[1],"datatype":"UINT8","parameters":{"binary_data_size":1}}]}'
            % number
        )
        head = Head("POST", "/v2/models/m/infer", "", {HEADER_LENGTH: str(len(text)).encode()})
        for _ in range(2):
            operation, encoder = protocol.decode(head, TARGET, Body(text + b"x"))
            assert (operation.id, encoder.id) == (number.decode(), number.decode())
