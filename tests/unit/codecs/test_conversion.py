"""The payload table, bodies to inputs: what becomes a model's tensors, what is refused, and how."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.payload_bodies import (
    BOTH,
    EXTRA,
    MODELS,
    ONE,
    ONLY_X,
    PNG,
    TEXT,
    TWO,
    V2_X,
    V2_Y,
    X,
    Y,
    as_ndlist,
    as_npy,
    as_npz,
    as_safetensors,
    doc,
    json_values,
    outcome,
)

from trivium.codecs import ndlist
from trivium.codecs.conversion import SLOW_BYTES, is_slow_to_read, to_tensors
from trivium.codecs.payload_table import READERS, WRITERS
from trivium.types.buffers import Lease
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Raw, RawForm, RawPart, Tensors
from trivium.types.spec import TensorSpec


def read(data, inputs=(X,), content_type="", batch_axis=True):
    parts = data if isinstance(data, tuple) else (RawPart(data, content_type),)
    found = to_tensors(Raw(parts), inputs, batch_axis, "m").items
    for tensor in found:
        assert tensor.array.shape == tensor.shape
        assert tensor.array.dtype == tensor.datatype.dtype
        assert tensor.array.flags.c_contiguous
    return {tensor.name: (tensor.datatype.wire, tensor.array.tolist()) for tensor in found}


def refusal(*args, **more):
    with pytest.raises(ServeError) as caught:
        read(*args, **more)
    return caught.value


@pytest.mark.parametrize(
    ("data", "inputs", "expected"),
    [
        (doc([[1, 2]]), (X,), ONLY_X),
        (doc([1, 2]), (X,), ONLY_X),  # without the batch dimension
        (doc({"x": [1, 2]}), (X,), ONLY_X),
        (doc({"inputs": [1, 2]}), (X,), ONLY_X),
        (doc({"instances": [[1, 2]]}), (X, EXTRA), ONLY_X),
        (doc({"inputs": [V2_X]}), (X,), ONLY_X),
        (doc({"id": "1", "inputs": [V2_X, V2_Y]}), (X, Y), BOTH),
        (doc({"y": [[3]], "x": [[1, 2]]}), (X, Y), BOTH),
        (doc({"x": [[1, 2]]}), (X, EXTRA), ONLY_X),
        (as_npy(ONE), (X,), ONLY_X),
        (as_npy(ONE[0]), (X,), ONLY_X),
        (as_npz(x=ONE, y=TWO), (X, Y), BOTH),
        (as_npz(y=TWO, x=ONE), (X, Y), BOTH),
        (as_npz(arr_0=ONE, arr_1=TWO), (X, Y), BOTH),
        (as_npz(whatever=ONE), (X, EXTRA), ONLY_X),
        (as_ndlist(y=TWO, x=ONE), (X, Y), BOTH),
        (as_safetensors(y=TWO, x=ONE), (X, Y), BOTH),
        (as_safetensors(other=ONE[0]), (X,), ONLY_X),
        (b"", (EXTRA,), {}),
        (b"", (), {}),
    ],
)
@pytest.mark.parametrize("content_type", ["", "application/octet-stream"])
def test_what_becomes_tensors_by_its_bytes(data, inputs, expected, content_type):
    assert read(data, inputs, content_type) == expected
    assert read(memoryview(data), inputs, content_type) == expected


def test_arrays_without_names_count_by_position():
    found = (*Tensors.of({"": ONE}).items, *Tensors.of({"": TWO}).items)
    assert read(ndlist.encode(found), (X, Y)) == BOTH


BODIES = {
    "application/json": doc([[1, 2]]),
    "application/x-npy": as_npy(ONE),
    "application/x-npz": as_npz(x=ONE),
    "tensor/ndlist": as_ndlist(x=ONE),
    "application/safetensors": as_safetensors(x=ONE),
    "text/csv": b"1,2",
}


@pytest.mark.parametrize("row", READERS, ids=lambda row: row.media_types[0])
def test_every_row_is_read_by_each_of_its_content_types(row):
    body = BODIES[row.media_types[0]]
    for name in row.media_types:
        assert read(body, (X,), name.upper() + "; charset=utf-8") == ONLY_X
        error = refusal(b"\xffno such thing", (X,), name)
        assert error.code is Code.INVALID


def signed(data, content_type):
    raw = Raw((RawPart(data, content_type),), form=RawForm.SIGNED)
    return to_tensors(raw, (X,), False, "m")


@pytest.mark.parametrize("content_type", ["tensor/ndlist", "application/json2", "image/png", ""])
@pytest.mark.parametrize("name", [name for name in BODIES if name != "text/csv"])
def test_where_bytes_go_before_the_content_type(name, content_type):
    assert signed(BODIES[name], content_type)["x"].tolist() == [[1, 2]]


def test_json_and_csv_are_what_they_are_said_to_be():
    assert signed(b"1,2", "text/csv")["x"].tolist() == [[1, 2]]
    for kind in ("application/json", "text/csv"):
        with pytest.raises(ServeError):
            signed(BODIES["tensor/ndlist"], kind)


def test_the_content_type_goes_before_the_bytes():
    assert refusal(as_npz(x=ONE), (X,), "application/json").code is Code.INVALID


@pytest.mark.parametrize(
    ("datatype", "given", "expected"),
    [
        ("FP32", [1, 1e99, "NaN"], [1, float("inf"), "nan"]),
        ("FP16", [0.5], [0.5]),
        ("INT8", [-128, 127], [-128, 127]),
        ("UINT64", [2**64 - 1], [2**64 - 1]),
        ("BOOL", [True, False], [True, False]),
        ("BYTES", ["a", "ü"], [b"a", "ü".encode()]),
    ],
)
def test_numbers_take_the_datatype_declared(datatype, given, expected):
    spec = TensorSpec("x", DataType(datatype), (-1,))
    text = json.dumps(given).replace('"NaN"', "NaN").encode()
    for body in (text, b'{"x": ' + text + b"}"):
        wire, values = read(body, (spec,), "application/json", False)["x"]
        assert wire == datatype
        assert [value if value == value else "nan" for value in values] == expected


@pytest.mark.parametrize(
    ("datatype", "value"),
    [
        ("FP32", ["1"]),
        ("FP32", [None]),
        ("FP32", [True]),
        ("FP32", [[1], [1, 2]]),
        ("FP32", [[1], 2]),
        ("FP32", [1, [2]]),
        ("FP32", [[], [1]]),
        ("INT8", [128]),
        ("INT8", [1.5]),
        ("UINT64", [2**64]),
        ("UINT64", [-1]),
        ("BOOL", [1]),
        ("BOOL", [[True], []]),
        ("BYTES", [["a"], ["b", "c"]]),
        ("BYTES", ["\ud800"]),
        ("BYTES", "\ud800"),
        ("FP32", "\ud800"),
        ("INT8", ["\ud800"]),
        ("BF16", [1]),
        ("FP32", {"a": 1}),
    ],
)
def test_what_does_not_fit_the_datatype_is_told(datatype, value):
    spec = TensorSpec("x", DataType(datatype), (-1,))
    error = refusal(doc({"x": value}), (spec,), "application/json", False)
    assert error.code is Code.INVALID
    assert "'x'" in error.message


def test_a_lone_value_is_one_element():
    assert read(doc({"x": 5, "text": "a"}), (TensorSpec("x", DataType.FP32, (1,)), TEXT)) == {
        "x": ("FP32", [[5]]),
        "text": ("BYTES", [[b"a"]]),
    }


@pytest.mark.parametrize("depth", [65, 10_000, 200_000])
@pytest.mark.parametrize("start", [b"", b'{"x":', b'{"y":', b'{"inputs":', b'{"inputs":[{"data":', b"[NaN,"])
def test_deep_nesting_is_refused(start, depth):
    assert refusal(start + b"[" * depth, (X,), "application/json").code is Code.INVALID
    assert refusal(start + b'{"x":' * depth, (X,), "application/json").code is Code.INVALID


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"x": [1], "z": 1}, "'z', which is no input of model 'm'"),
        ({"inputs": [1], "top_k": 1}, "'top_k' beside 'inputs'"),
        ({"inputs": [V2_X], "outputs": []}, "Only the v2 protocol's own routes"),
        ({"inputs": [{"name": "x"}]}, "holds no v2 tensors"),
        ({"inputs": [{**V2_X, "datatype": "FP33"}]}, "holds no v2 tensors"),
        ({"inputs": [{**V2_X, "shape": [3, 3]}]}, "Correct the shape"),
    ],
)
def test_faults_of_documents_are_told(value, words):
    error = refusal(doc(value), (X,), "application/json")
    assert error.code is Code.INVALID
    assert words in error.message


def test_names_of_a_v2_document_count():
    assert list(read(doc({"inputs": [{**V2_X, "name": "wrong"}]}), (X,))) == [
        "wrong"
    ]  # which admission refuses


@pytest.mark.parametrize(
    "content_type",
    ["", "image/png", "text/plain; charset=utf-8", "application/pdf", "application/octet-stream"],
)
def test_any_bytes_go_into_the_only_text_input(content_type):
    for data in (PNG, b"plain", as_npz(x=ONE), b""):
        assert read(data, (TEXT, EXTRA), content_type) == {"text": ("BYTES", [[data]])}
        assert read(memoryview(data), (TEXT,), content_type, False) == {"text": ("BYTES", [data])}


def test_the_dims_of_a_text_input():
    for dims, expected in (((), b"a"), ((1, 1), [[b"a"]]), ((-1,), [b"a"])):
        spec = TensorSpec("t", DataType.BYTES, dims)
        assert read(b"a", (spec,), "text/plain", False) == {"t": ("BYTES", expected)}


def test_json_into_a_text_input():
    kind = "application/json"
    v2 = {"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": ["a"]}
    for value in (["a"], {"text": ["a"]}, {"text": "a"}, {"inputs": [v2]}, {"instances": ["a"]}):
        assert read(doc(value), (TEXT,), kind) == {"text": ("BYTES", [[b"a"]])}
    other = doc({"prompt": "a"})
    assert read(other, (TEXT,), kind) == {"text": ("BYTES", [[other]])}


def test_two_text_inputs_need_names():
    other = TensorSpec("other", DataType.BYTES, (1,))
    assert refusal(b"plain", (TEXT, other), "text/plain").code is Code.UNSUPPORTED_MEDIA
    optional = TensorSpec("other", DataType.BYTES, (1,), optional=True)
    assert read(b"a", (TEXT, optional), "text/plain") == {"text": ("BYTES", [[b"a"]])}


@pytest.mark.parametrize(("data", "kind"), [(PNG, ""), (b"\xff\xd8\xff\xe0", ""), (b"?", "image/webp")])
def test_a_picture_is_never_made_numbers(data, kind):
    error = refusal(data, (X,), kind)
    assert error.code is Code.UNSUPPORTED_MEDIA
    assert "a picture (image/" in error.message
    assert "Resizing and normalisation are never guessed" in error.message
    assert "'x' FP32[-1,2]" in error.message


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (b"1,2", "text/tsv", "content type 'text/tsv'"),
        (b"1 2", "text/plain", "content type 'text/plain'"),
        (b"1 2", "", "3 bytes that no content type explains"),
        (b"", "", "0 bytes that no content type explains"),
        (b'{"a":1}', "application/json", "JSON in none of the forms"),
        (b'{"a":1}', "", "JSON in none of the forms"),
    ],
)
def test_the_rest_is_refused_with_what_would_be_accepted(data, kind, words):
    error = refusal(data, (X, Y), kind)
    assert error.code is Code.UNSUPPORTED_MEDIA
    assert words in error.message
    assert "application/json, " in error.message or "list" in error.message
    assert "'y' INT64[-1,1]" in error.message


def test_a_bare_list_for_several_inputs_is_refused():
    assert refusal(doc([1, 2]), (X, Y)).code is Code.UNSUPPORTED_MEDIA


def test_names_that_the_model_does_not_know():
    error = refusal(as_npz(a=ONE, b=TWO), (X, Y))
    assert error.code is Code.INVALID
    assert "the tensors 'a', 'b', but model 'm' takes 'x'" in error.message
    assert "has 2 tensors, but model 'm' takes 1" in refusal(as_npz(arr_0=ONE, arr_1=TWO), (X,)).message


def test_form_fields_by_the_inputs_names():
    fields = (
        RawPart(b"[[1, 2]]", "", "x"),
        RawPart(as_npy(TWO), "application/octet-stream", "y", "y.npy"),
        RawPart(PNG, "image/png", "text", "k.png"),
    )
    assert read(fields, (X, Y, TEXT)) == {**BOTH, "text": ("BYTES", [[PNG]])}
    assert read((RawPart(b" 7 ", "", "y"),), (Y,)) == {"y": ("INT64", [[7]])}
    assert read((RawPart(as_npz(some=TWO), "", "y"),), (Y,)) == {"y": ("INT64", [[3]])}
    assert "the field 'z', which is no input" in refusal((RawPart(b"1", "", "z"),), (Y,)).message
    error = refusal((RawPart(PNG, "", "y"),), (Y,))
    assert error.code is Code.UNSUPPORTED_MEDIA
    assert "in field 'y'" in error.message


@pytest.mark.parametrize("name", ["data", "body"])
def test_a_lone_field_may_be_the_whole_body(name):
    assert read((RawPart(as_npz(x=ONE), "", name, "x.npz"),), (X,)) == ONLY_X
    assert read((RawPart(PNG, "image/png", name),), (TEXT,)) == {"text": ("BYTES", [[PNG]])}


def test_tensors_view_the_body_and_keep_its_lease():
    body = memoryview(bytearray(as_safetensors(x=ONE)))
    lease = Lease(body, lambda lease: None)
    found = to_tensors(Raw((RawPart(body),), lease=lease), (X,), True, "m")
    assert found.lease is lease
    assert np.shares_memory(found["x"], np.frombuffer(body, "u1"))


TYPES = ["", "image/png", "text/plain", *(row.media_types[0] for row in READERS)]
REFUSED = (Code.INVALID, Code.UNSUPPORTED_MEDIA, Code.TOO_LARGE)


@given(
    st.binary(max_size=60) | json_values.map(doc),
    st.sampled_from(["", "x", "data", "text"]),
    st.sampled_from(TYPES),
    st.sampled_from(MODELS),
)
def test_any_body_is_tensors_or_refused(data, name, content_type, inputs):
    found = outcome(lambda: read((RawPart(data, content_type, name),), inputs))
    assert isinstance(found, dict) or found in REFUSED


@given(st.sampled_from(sorted(BODIES)), st.integers(0, 300), st.binary(max_size=3))
def test_damaged_bodies_are_tensors_or_refused(kind, at, patch):
    body = BODIES[kind]
    found = outcome(lambda: read(body[:at] + patch + body[at + len(patch) :], (X,), kind))
    assert isinstance(found, dict) or found in REFUSED


def test_the_table_is_whole():
    for rows in (READERS, WRITERS):
        names = [name for row in rows for name in row.media_types]
        assert len(set(names)) == len(names)
        assert all(row.rule for row in rows)


@pytest.mark.parametrize(
    ("body", "kind", "is_slow"),
    [
        (b"[1]", "application/json", False),
        (b"[1]" + b" " * SLOW_BYTES, "application/json", True),
        (b"PK\3\4 and so on", "", True),
        (b"PK\3\4 and so on", "application/octet-stream", True),
        (b"in front of the archive", "tensor/npz", True),
    ],
)
def test_what_may_unpack_to_much_is_slow_to_read(body, kind, is_slow):
    """Some hundred bytes may be an array of 64 MiB."""
    assert is_slow_to_read(Raw((RawPart(body, kind),))) is is_slow


@pytest.mark.parametrize(
    ("text", "datatype", "shape"),
    [
        ("[1, -2]", DataType.INT64, (2,)),
        ("[1, 2.0]", DataType.FP32, (2,)),
        ("[[1, 2e3]]", DataType.FP32, (1, 2)),
        ("[1, NaN]", DataType.FP32, (2,)),
        ("[Infinity, 1]", DataType.FP32, (2,)),
        ("[-Infinity]", DataType.FP32, (1,)),
        ("[]", DataType.FP32, (0,)),
        ("[[true, false]]", DataType.BOOL, (1, 2)),
        ('["a"]', DataType.BYTES, (1,)),
        ("5", DataType.INT64, (1,)),
        ("0.5", DataType.FP32, (1,)),
    ],
)
def test_values_for_which_no_datatype_is_declared(text, datatype, shape):
    spec = TensorSpec("x", DataType.FP32, (-1,), open=True)
    for body in (text, f'{{"x": {text}}}', f'{{"inputs": {text}}}'):
        wire, values = read(body.encode(), (spec,), "application/json", batch_axis=False)["x"]
        assert (wire, np.shape(values)) == (datatype.wire, shape)


def test_any_number_of_tensors_under_any_names():
    many = (TensorSpec("given", DataType.FP32, (-1,), open=True, many=True),)
    found = read(b'{"a": [1], "b": [0.5]}', many, "application/json", batch_axis=False)
    assert found == {"a": ("INT64", [1]), "b": ("FP32", [0.5])}
    arrays = (
        Tensors.of({"": np.ones(2, np.float32)}).items + Tensors.of({"": np.ones((1, 3), np.int32)}).items
    )
    found = read(ndlist.encode(arrays), many, "tensor/ndlist", batch_axis=False)
    assert found == {"arr_0": ("FP32", [1, 1]), "arr_1": ("INT32", [[1, 1, 1]])}
