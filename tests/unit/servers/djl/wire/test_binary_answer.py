"""The forms that DJL's binary mode answers in, by both headers: sheet `djl`, section 9.2."""

import io
import json

import numpy as np
import pytest

from trivium import ndlist
from trivium.codecs import safetensors
from trivium.servers.djl.wire.binary_answer import binary_body, unnamed
from trivium.types.payload import Tensors

ONE = Tensors.of({"OUTPUT__0": np.array([[1, 2], [3, 4]], "<f4")})
TWO = Tensors.of({"OUTPUT__0": np.array([1.5], "<f4"), "named": np.array([[7]], "<i8")})


def body(tensors, accept="", content_type=""):
    kind, buffers = binary_body(tensors, accept, content_type)
    return kind, b"".join(map(bytes, buffers))


@pytest.mark.parametrize(
    ("accept", "content_type", "kind"),
    [
        ("", "", "tensor/ndlist"),
        ("*/*", "image/png", "tensor/ndlist"),
        ("", "tensor/ndlist", "tensor/ndlist"),
        ("tensor/npz", "", "tensor/npz"),
        ("", "tensor/npz", "tensor/npz"),
        ("", "tensor/npz; charset=x", "tensor/npz"),
        ("tensor/npz; q=1", "", "tensor/ndlist"),
        ("tensor/ndlist", "tensor/npz", "tensor/npz"),
        ("tensor/safetensors", "", "tensor/safetensors"),
        ("", "tensor/safetensors", "tensor/safetensors"),
        ("text/csv", "", "text/csv"),
        ("", "text/csv", "tensor/ndlist"),
        ("application/json", "", ""),
        ("", "application/json", ""),
        ("application/json", "tensor/npz", "tensor/npz"),
        ("text/csv", "application/json", "text/csv"),
    ],
)
def test_which_form(accept, content_type, kind):
    assert body(ONE, accept, content_type)[0] == kind


def test_what_the_model_does_not_name_has_no_name():
    names = [tensor.name for tensor in unnamed(TWO).items]
    assert names == ["", "named"]
    assert unnamed(named := Tensors.of({"x": np.ones(1), "OUTPUT__0": np.ones(1)})) is named
    archive = np.load(io.BytesIO(body(TWO, "tensor/npz")[1]))
    assert {name: archive[name].tolist() for name in archive} == {"arr_0": [1.5], "named": [[7]]}
    found = safetensors.decode(body(TWO, "tensor/safetensors")[1])
    assert [tensor.name for tensor in found] == ["arr_0", "named"]
    assert list(ndlist.decode_named(body(TWO)[1])) == ["arr_0", "named"]


def test_json_is_a_nested_list_or_pairs():
    assert json.loads(body(ONE, "application/json")[1]) == {"predictions": [[1, 2], [3, 4]]}
    pairs = [{"key": "", "value": [1.5]}, {"key": "named", "value": [[7]]}]
    assert json.loads(body(TWO, "application/json")[1]) == {"predictions": pairs}
    scalar = Tensors.of({"x": np.float32(3)})
    assert json.loads(body(scalar, "application/json")[1]) == {"predictions": 3}
    assert json.loads(body(Tensors(()), "application/json")[1]) == {"predictions": []}
    empty = Tensors.of({"x": np.zeros((0, 2))})
    assert json.loads(body(empty, "application/json")[1]) == {"predictions": []}


def test_csv_is_a_line_for_each_row():
    assert body(ONE, "text/csv")[1] == b"1.0,2.0\n3.0,4.0\n"


# -- the pair of functions for clients ---------------------------------------------------------------------


def test_arrays_there_and_back():
    arrays = [np.arange(6, dtype="<f4").reshape(2, 3), np.array([True, False]), np.array(["a", "ü"])]
    found = ndlist.decode(ndlist.encode(arrays))
    assert [one.tolist() for one in found] == [
        [[0, 1, 2], [3, 4, 5]],
        [True, False],
        [b"a", "ü".encode()],
    ]
    assert list(ndlist.decode_named(ndlist.encode({"x": arrays[0]}))) == ["x"]


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1", b"nonsense"])
def test_what_is_no_list(data):
    with pytest.raises(ValueError, match="NDList"):
        ndlist.decode(data)


def test_what_a_list_cannot_hold():
    with pytest.raises(TypeError, match="complex128"):
        ndlist.encode([np.ones(1, "c16")])
    with pytest.raises(ValueError, match="UTF-8"):
        ndlist.encode([np.array([b"\xff"], object)])
