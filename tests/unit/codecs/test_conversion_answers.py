"""The payload table, answers: a handler's body as outputs, and tensors as bodies by what a client accepts."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.payload_bodies import (
    BOTH,
    MODELS,
    ONE,
    PNG,
    TWO,
    V2_X,
    V2_Y,
    X,
    Y,
    as_ndlist,
    as_npz,
    as_safetensors,
    doc,
    json_values,
    outcome,
)
from tests.harness.tensor_strategies import same, tensors

from trivium.codecs.conversion import negotiated, to_outputs, to_tensors
from trivium.codecs.payload_table import READERS
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Raw, RawPart, Tensor, Tensors
from trivium.types.spec import TensorSpec

X_VALUE = ("FP32", ONE.tolist())
TYPES = ["", "image/png", "text/plain", *(row.media_types[0] for row in READERS)]


def answer(data, outputs=(), content_type="", names=(), **more):
    found, parameters = to_outputs(Raw((RawPart(data, content_type),), **more), outputs, "m", names)
    return {t.name: (t.datatype.wire, t.array.tolist()) for t in found.items}, parameters


@pytest.mark.parametrize(
    "data",
    [
        doc({"y": [[3]], "x": [[1, 2]], "took": 0.1}),
        doc({"outputs": [V2_Y, V2_X]}),
        as_npz(y=TWO, x=ONE),
        as_npz(arr_0=ONE, arr_1=TWO),
        as_ndlist(x=ONE, y=TWO, z=TWO),
        as_safetensors(x=ONE, y=TWO),
    ],
)
def test_declared_outputs_are_found_by_name(data):
    assert answer(data, (X, Y)) == (BOTH, {})
    assert list(answer(data, (X, Y))[0]) == ["x", "y"]


@pytest.mark.parametrize(
    ("data", "outputs", "kind"),
    [
        (doc([1, 2]), (X,), "application/json"),
        (doc({"x": [1, 2]}), (X, Y), "application/json"),
        (doc({"x": [1, 2]}), (), "application/json"),
        (as_npz(x=ONE), (X, Y), "application/octet-stream"),
        (b"hello", (X,), "text/plain; charset=utf-8"),
        (b'{"a', (), "text/plain; charset=utf-8"),
        (PNG, (), "image/png"),
        (b"a\0b", (), "application/octet-stream"),
        (b"", (), "text/plain; charset=utf-8"),
    ],
)
def test_else_the_body_is_one_output(data, outputs, kind):
    assert answer(data, outputs) == ({"output": ("BYTES", [data])}, {"content_type": kind})
    assert answer(data, content_type="a/b")[1] == {"content_type": "a/b"}
    assert answer(data, properties={"Content-Type": "a/c"})[1] == {"content_type": "a/c"}


@pytest.mark.parametrize(
    ("data", "kind", "names", "found"),
    [
        (as_ndlist(x=ONE), "tensor/ndlist", (), {"x": X_VALUE}),
        (as_npz(arr_0=ONE), "tensor/npz", (), {"output": X_VALUE}),
        (as_npz(arr_0=ONE, arr_1=ONE), "application/x-npz", (), {"output_0": X_VALUE, "output_1": X_VALUE}),
        (as_npz(arr_0=ONE), "tensor/npz", ("a", "b"), {"output": X_VALUE}),
        (as_npz(arr_0=ONE), "", ("a",), {"a": X_VALUE}),
        (as_ndlist(x=ONE), "", ("a",), {"a": X_VALUE}),
        (as_npz(x=ONE, y=ONE), "application/octet-stream", ("y", "x"), {"x": X_VALUE, "y": X_VALUE}),
    ],
)
def test_without_declared_outputs_a_content_type_or_the_names_asked_for_make_tensors(
    data, kind, names, found
):
    assert answer(data, (), kind, names) == (found, {})


@pytest.mark.parametrize(
    ("data", "kind", "names"),
    [
        (as_npz(arr_0=ONE), "", ()),
        (as_npz(arr_0=ONE), "application/octet-stream", ("a", "b")),
        (as_npz(arr_0=ONE)[:-9], "", ("a",)),
        (doc({"x": [1, 2]}), "application/json", ("x",)),
    ],
)
def test_else_it_is_one_output_whatever_it_looks_like(data, kind, names):
    assert answer(data, (), kind, names)[0] == {"output": ("BYTES", [data])}


def test_what_is_no_tensors_though_its_content_type_says_so_is_the_models_fault():
    with pytest.raises(ServeError, match="calls tensor/npz, and that cannot be read") as caught:
        answer(as_npz(arr_0=ONE)[:-9], (), "tensor/npz")
    assert caught.value.code is Code.MODEL_FAILED


def test_an_answer_without_parts_is_empty():
    found, parameters = to_outputs(Raw(()), (), "m")
    assert found["output"].tolist() == [b""]
    assert "content_type" in parameters


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (doc({"x": ["a"]}), "'x' takes FP32"),
        (as_npz(x=TWO), "'x' came as INT64"),
        (as_npz(x=ONE)[:-9], "the archive is damaged"),
    ],
)
def test_outputs_that_are_not_what_is_declared_are_the_models_fault(data, words):
    with pytest.raises(ServeError) as caught:
        answer(data, (X,))
    assert caught.value.code is Code.MODEL_FAILED
    assert words in caught.value.message


def test_a_handlers_error_keeps_its_status_and_words():
    with pytest.raises(ServeError) as caught:
        answer(b"no cat" + b"t" * 2000, status=422)
    error = caught.value
    assert (error.code, error.status) == (Code.MODEL_FAILED, 422)
    assert error.message.startswith("Model 'm' answered with status 422: no cattt")
    assert len(error.message) < 600
    with pytest.raises(ServeError, match="with status 500: bad"):
        answer(b"", status=500, reason="bad")


@pytest.mark.parametrize("status", [600, 999, 1000])
def test_a_status_that_is_no_errors_in_http_goes_no_further_than_its_text(status):
    with pytest.raises(ServeError, match=f"with status {status}: bad") as caught:
        answer(b"", status=status, reason="bad")
    assert caught.value.status is None


@given(st.binary(max_size=60) | json_values.map(doc), st.sampled_from(TYPES), st.sampled_from(MODELS))
def test_any_answer_is_tensors_or_the_models_fault(data, content_type, outputs):
    found = outcome(lambda: answer(data, outputs, content_type))
    assert isinstance(found, tuple) or found is Code.MODEL_FAILED


RESULT = Tensors.of({"x": ONE, "y": TWO})
NPZ, NDLIST, SAFE, JSON = "tensor/npz", "tensor/ndlist", "tensor/safetensors", "application/json"


@pytest.mark.parametrize(
    ("accept", "content_type", "expected"),
    [
        ("", "", NDLIST),
        ("*/*", "", NDLIST),
        ("application/json", "", JSON),
        ("application/x-npz", NPZ, "application/x-npz"),
        ("tensor/npz;q=0.5, tensor/safetensors", "", SAFE),
        ("tensor/npz;q=0, */*", "", NDLIST),
        ("image/png", "", NDLIST),
        ("image/png, application/json;q=0.1", "", JSON),
        ("tensor/*", "", NDLIST),
        ("application/*", "", JSON),
        ("*/*, application/json", "", JSON),  # a type before a range of the same quality
        ("*/*, application/json;q=0.5", "", NDLIST),
        ("", "application/json; charset=utf-8", JSON),
        ("*/*", NPZ, NPZ),
        ("tensor/ndlist", NPZ, NDLIST),
        (",;,q=x;;", "", NDLIST),
        ("application/json;q=nonsense", "", JSON),
    ],
)
def test_the_form_is_negotiated(accept, content_type, expected):
    kind, buffers = negotiated(RESULT, accept, content_type, NDLIST)
    assert kind == expected
    body = b"".join(buffers)
    if kind == JSON:
        assert json.loads(body) == {"outputs": [V2_X, V2_Y]}
    found = to_tensors(Raw((RawPart(body.replace(b"outputs", b"inputs"), kind),)), (X, Y), True, "m")
    assert {t.name: (t.datatype.wire, t.array.tolist()) for t in found.items} == BOTH


def test_what_a_form_cannot_hold_takes_another():
    half = Tensors.of({"x": np.ones(2, "<f2")})
    text = Tensors.of({"x": np.array([b"\xff", b"\0"], object)})
    bits = Tensors((Tensor("x", DataType.BF16, (1,), np.ones(1, "<u2")),))
    assert negotiated(half, JSON, "", JSON)[0] == NPZ
    assert negotiated(half, JSON, "", NDLIST)[0] == NDLIST
    assert negotiated(bits, NPZ, "", JSON)[0] == NDLIST
    assert negotiated(Tensors.of({"x": np.array(["a", "b"])}), SAFE, "", JSON)[0] == JSON
    with pytest.raises(ServeError, match="not UTF-8"):
        negotiated(text, JSON, "", JSON)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"a": [1]}', JSON),
        (b"{a}", "text/plain; charset=utf-8"),
        ("grüß".encode(), "text/plain; charset=utf-8"),
        (b"\xff\0", "application/octet-stream"),
        (PNG, "image/png"),
        (b"[" * 100_000, "text/plain; charset=utf-8"),
    ],
)
def test_one_text_element_is_the_body(body, kind):
    array = np.empty((1, 1), object)
    array[0, 0] = body
    assert negotiated(Tensors.of({"x": array}), "tensor/npz", "", NDLIST) == (kind, (body,))


def test_views_go_out_uncopied():
    _, buffers = negotiated(Tensors.of({"x": ONE}), SAFE, "", JSON)
    assert np.shares_memory(np.frombuffer(buffers[-1], "u1"), ONE)


numbers = st.sampled_from([one for one in DataType if one is not DataType.BYTES])
accepts = st.text(max_size=30) | st.lists(st.sampled_from(["*/*", JSON, NPZ, SAFE, "tensor/*;q=0.1"])).map(
    ",".join
)


@given(st.lists(tensors(numbers), min_size=1, max_size=2), accepts)
def test_whatever_is_accepted_something_is_written(found, accept):
    named = [Tensor(f"t{at}", t.datatype, t.shape, t.array) for at, t in enumerate(found)]
    kind, buffers = negotiated(Tensors(tuple(named)), accept, "", NDLIST)
    specs = tuple(TensorSpec(t.name, t.datatype, t.shape) for t in named)
    if kind == NDLIST:
        again = to_tensors(Raw((RawPart(b"".join(buffers), kind),)), specs, False, "m").items
        assert all(map(same, again, named))
