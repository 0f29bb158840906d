"""ModelInferRequest to operation: raw and contents, parameters, and what is refused."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.grpc_messages import PROTOCOL, UNARY, decoded, request, tensor
from tritonclient.grpc import service_pb2

from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, SequenceRef, WantedOutput
from trivium.types.payload import PayloadKind, Tensors
from trivium.types.wire import RpcCall
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.grpc import KServeGrpc
from trivium.wires.v2.grpc_contents import FIELDS
from trivium.wires.v2.grpc_infer_request import MOST_TENSORS

RAW = np.arange(3, dtype=np.float32)
GOOD = tensor("x", "FP32", [3])
CONTENTS = [
    ("BOOL", [True, False]),
    ("INT8", [-128, 127]),
    ("INT16", [-(2**15), 2**15 - 1]),
    ("INT32", [-(2**31), 2**31 - 1]),
    ("INT64", [-(2**63), 2**63 - 1]),
    ("UINT8", [0, 255]),
    ("UINT16", [0, 2**16 - 1]),
    ("UINT32", [0, 2**32 - 1]),
    ("UINT64", [0, 2**64 - 1]),
    ("FP32", [0.5, float("inf")]),
    ("FP64", [1e300, -0.1]),
    ("BYTES", [b"", b"\xff\x00"]),
]


def refusal(message: Any) -> ServeError:
    with pytest.raises(ServeError) as caught:
        decoded(message)
    return caught.value


def arrays(message: Any) -> Tensors:
    payload = decoded(message).payload
    assert isinstance(payload, Tensors)
    return payload


def test_raw_inputs() -> None:
    message = request(
        GOOD, tensor("t", "BYTES", [2]), raw=[RAW.tobytes(), b"\x01\x00\x00\x00a\x00\x00\x00\x00"]
    )
    payload = arrays(message)
    np.testing.assert_array_equal(payload["x"], RAW)
    assert payload["t"].tolist() == [b"a", b""]
    assert [item.datatype for item in payload.items] == [DataType.FP32, DataType.BYTES]


@pytest.mark.parametrize(("kind", "values"), CONTENTS, ids=[kind for kind, _ in CONTENTS])
def test_contents(kind: str, values: list[Any]) -> None:
    datatype = DataType(kind)
    (item,) = arrays(request(tensor("x", kind, [1, 2], **{FIELDS[datatype]: values}))).items
    assert (item.datatype, item.shape, item.array.shape) == (datatype, (1, 2), (1, 2))
    assert item.array.dtype == datatype.dtype
    assert item.array.ravel().tolist() == values


@given(st.sampled_from(CONTENTS), st.data())
def test_numbers_outside_a_datatype_are_refused_with_their_index(
    case: tuple[str, list[Any]], data: st.DataObject
) -> None:
    kind, bounds = case
    if kind not in ("INT8", "INT16", "UINT8", "UINT16"):
        return
    least = 0 if kind.startswith("U") else -(2**31)
    most = 2**32 - 1 if kind.startswith("U") else 2**31 - 1
    values = data.draw(st.lists(st.integers(least, most), min_size=1, max_size=5))
    message = request(tensor("x", kind, [len(values)], **{FIELDS[DataType(kind)]: values}))
    wrong = [index for index, value in enumerate(values) if not bounds[0] <= value <= bounds[1]]
    if not wrong:
        assert arrays(message)["x"].tolist() == values
    else:
        error = refusal(message)
        assert error.code is Code.INVALID
        assert f"Value {wrong[0]} of input 'x' is {values[wrong[0]]};" in error.message


def test_the_rest_of_a_request() -> None:
    message = request(GOOD, raw=[RAW.tobytes()], id="7", model_version="3")
    for name in ("a", "b"):
        message.outputs.add(name=name)
    for key, field, value in (
        ("own", "string_param", "text"),
        ("flag", "bool_param", True),
        ("number", "int64_param", -5),
        ("share", "double_param", 0.5),
        ("huge", "uint64_param", 2**64 - 1),
        ("priority", "uint64_param", 2),
        ("timeout", "int64_param", 1500),
        ("sequence_id", "int64_param", 9),
        ("sequence_start", "bool_param", True),
    ):
        setattr(message.parameters[key], field, value)
    operation, _ = PROTOCOL.decode(RpcCall(UNARY.method, timeout=2.5), message.SerializeToString())
    assert operation.model == "m"
    assert (operation.version, operation.id, operation.deadline) == ("3", "7", 2.5)
    assert operation.outputs == (WantedOutput("a"), WantedOutput("b"))
    own = {"own": "text", "flag": True, "number": -5, "share": 0.5, "huge": 2**64 - 1}
    assert operation.parameters == own
    assert (operation.priority, operation.queue_timeout) == (2, 0.0015)
    assert operation.sequence == SequenceRef(9, True, False)
    assert operation.wants is PayloadKind.TENSORS


def with_parameter(key: str, **value: Any) -> Any:
    message = request(GOOD, raw=[RAW.tobytes()])
    message.parameters[key].CopyFrom(service_pb2.InferParameter(**value))
    return message


def with_input_parameter(key: str, **value: Any) -> Any:
    entry = tensor("x", "FP32", [3])
    entry.parameters[key].CopyFrom(service_pb2.InferParameter(**value))
    return request(entry)


REFUSED = {
    "no data": (request(GOOD), "no data for input 'x'"),
    "too few raw": (request(GOOD, tensor("y", "FP32", [3]), raw=[RAW.tobytes()]), "no data for input 'y'"),
    "both": (request(tensor("x", "FP32", [3], fp32_contents=[1]), raw=[b""]), "in the one or all in the"),
    "datatype": (request(tensor("x", "FLOAT", [3]), raw=[b""]), "the datatype 'FLOAT'; expected is one of"),
    "another field": (
        request(tensor("x", "FP32", [1], int_contents=[1])),
        "has values in int_contents; those of FP32 belong in fp32_contents",
    ),
    "two fields": (request(tensor("x", "FP32", [1], fp32_contents=[1], int_contents=[1])), "int_contents"),
    "FP16": (request(tensor("x", "FP16", [1], fp32_contents=[1])), "Send it in raw_input_contents"),
    "too few": (
        request(tensor("x", "INT8", [3], int_contents=[1])),
        "takes 3 values, but int_contents has 1",
    ),
    "bytes": (request(GOOD, raw=[b"123"]), "takes 12 bytes, but 3 were sent"),
    "negative dim": (request(tensor("x", "FP32", [-3]), raw=[b""]), "is negative"),
    "huge dims": (request(tensor("x", "FP32", [2**40, 2**40]), raw=[b""]), "more than any tensor can hold"),
    "huge contents": (request(tensor("x", "INT8", [2**40], int_contents=[1])), "takes 1099511627776 values"),
    "reserved": (with_parameter("triton_x", bool_param=True), "'triton_x'"),
    "valueless": (with_parameter("own"), "'own' has no value"),
    "priority": (with_parameter("priority", string_param="1"), "'priority'"),
    "empty final": (
        with_parameter("triton_enable_empty_final_response", int64_param=1),
        "set its bool_param",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    message, text = REFUSED[case]
    error = refusal(message)
    assert error.code is Code.INVALID
    assert text in error.message


class OneRegion:
    """Shared memory of one name."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def view(self, name: str, offset: int, size: int) -> memoryview:
        assert name == "r"
        return memoryview(self.data)[offset : offset + size]


def placed(entry: Any, **parameters: int | str) -> Any:
    for key, value in parameters.items():
        field = "string_param" if isinstance(value, str) else "int64_param"
        setattr(entry.parameters[f"shared_memory_{key}"], field, value)
    return entry


def test_inputs_in_shared_memory_have_no_raw_entry() -> None:
    protocol = KServeGrpc("somebody", "1", KServeOptions(regions=OneRegion(bytes(4) + RAW.tobytes())))
    shared = placed(tensor("x", "FP32", [3]), region="r", byte_size=12, offset=4)
    message = request(shared, tensor("y", "FP32", [3]), raw=[RAW[::-1].tobytes()])
    operation, _ = protocol.decode(UNARY, message.SerializeToString())
    assert isinstance(operation, Infer)
    assert isinstance(operation.payload, Tensors)
    np.testing.assert_array_equal(operation.payload["x"], RAW)
    np.testing.assert_array_equal(operation.payload["y"], RAW[::-1])


PLACES = {
    "switched off": (placed(tensor("x", "FP32", [3]), region="r", byte_size=12), "does not serve"),
    "no size": (placed(tensor("x", "FP32", [3]), region="r"), "Give both"),
    "no region": (placed(tensor("x", "FP32", [3]), byte_size=12), "Give both"),
    "contents too": (
        placed(tensor("x", "FP32", [1], fp32_contents=[1]), region="r", byte_size=4),
        "has contents and shared_memory_region",
    ),
    "a wrong type": (placed(tensor("x", "FP32", [3]), region=5, byte_size=12), "Correct their types"),
}


@pytest.mark.parametrize("case", PLACES)
def test_shared_memory_that_cannot_be(case: str) -> None:
    entry, text = PLACES[case]
    assert text in refusal(request(entry)).message


def test_outputs_with_a_class_count() -> None:
    message = request(GOOD, raw=[RAW.tobytes()])
    message.outputs.add(name="y").parameters["classification"].int64_param = 3
    message.outputs.add(name="z").parameters["binary_data"].bool_param = True
    assert decoded(message).outputs == (WantedOutput("y", 3), WantedOutput("z"))
    placed(message.outputs[0], region="r", byte_size=4)
    assert "both shared_memory_region and classification" in refusal(message).message


def test_metadata_that_become_parameters() -> None:
    protocol = KServeGrpc("somebody", "1", KServeOptions(forwards=re.compile("x-.*|triton_.*")))
    message = request(GOOD, raw=[RAW.tobytes()]).SerializeToString()
    metadata = {"x-a": " 1 2 \t", "y": "2", "triton_grpc_error": "true"}
    operation, _ = protocol.decode(RpcCall(UNARY.method, metadata), message)
    assert isinstance(operation, Infer)
    assert operation.parameters == {"x-a": "1 2"}, "blanks around a value are none of it"
    with pytest.raises(ServeError, match="'triton_x' cannot become a parameter"):
        protocol.decode(RpcCall(UNARY.method, {"triton_x": "1"}), message)


def test_no_elements_need_no_data() -> None:
    assert arrays(request(tensor("x", "FP32", [0, 3])))["x"].shape == (0, 3)


def test_raw_data_that_is_left_over_is_not_looked_at() -> None:
    assert len(arrays(request(GOOD, raw=[RAW.tobytes(), b"more"])).items) == 1


def is_clear(data: bytes) -> bool:
    """A request, or refused as one."""
    try:
        PROTOCOL.decode(UNARY, data)
    except ServeError as error:
        return error.code in (Code.INVALID, Code.UNSUPPORTED)
    return True


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    assert is_clear(data)


GOOD_BYTES = request(
    GOOD, tensor("t", "BYTES", [2]), raw=[RAW.tobytes(), b"\x01\x00\x00\x00a\x00\x00\x00\x00"], id="7"
).SerializeToString()


@given(st.integers(0, len(GOOD_BYTES) - 1), st.integers(0, 255))
def test_a_good_request_with_one_byte_changed(at: int, byte: int) -> None:
    assert is_clear(GOOD_BYTES[:at] + bytes([byte]) + GOOD_BYTES[at + 1 :])


@pytest.mark.parametrize("what", ["inputs", "outputs"])
def test_what_a_request_names_is_bounded(what: str) -> None:
    message = request()
    for _ in range(MOST_TENSORS + 1):
        getattr(message, what).add(name="x")
    error = refusal(message)
    assert error.code is Code.TOO_LARGE
    assert f"{what}; at most {MOST_TENSORS} are read" in error.message


@pytest.mark.parametrize("dims", [100, 300_000, 9_000_000])
def test_a_shape_with_many_dims_is_not_read(dims: int) -> None:
    error = refusal(request(tensor("x", "FP32", [1] * dims)))
    assert error.code is Code.INVALID
    assert f"'x' has {dims} dimensions" in error.message
