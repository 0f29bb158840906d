"""Bodies of every form with the same two tensors, and the specs that they are for."""

import json

import numpy as np
from hypothesis import strategies as st

from trivium.codecs import ndlist, npy, safetensors
from trivium.types.datatype import DataType
from trivium.types.errors import ServeError
from trivium.types.payload import Tensors
from trivium.types.spec import TensorSpec

X = TensorSpec("x", DataType.FP32, (2,))
Y = TensorSpec("y", DataType.INT64, (1,))
TEXT = TensorSpec("text", DataType.BYTES, (1,))
EXTRA = TensorSpec("extra", DataType.FP32, (1,), optional=True)
MODELS = [(X,), (X, Y), (TEXT,), (TEXT, EXTRA), (EXTRA,), (), (X, TEXT)]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(32)
ONE = np.array([[1, 2]], "<f4")
TWO = np.array([[3]], "<i8")
V2_X = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
V2_Y = {"name": "y", "datatype": "INT64", "shape": [1, 1], "data": [3]}
ONLY_X = {"x": ("FP32", [[1, 2]])}
BOTH = {**ONLY_X, "y": ("INT64", [[3]])}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "inputs", "data"]), inner)
    ),
    max_leaves=8,
)


def as_npz(**arrays):
    return npy.encode_npz(Tensors.of(arrays).items, 2**20)


def as_ndlist(**arrays):
    return ndlist.encode(Tensors.of(arrays).items)


def as_safetensors(**arrays):
    return b"".join(safetensors.encode(Tensors.of(arrays).items))


def as_npy(array):
    return npy.encode_npy(Tensors.of({"x": array}).items[0], 2**20)


def doc(value):
    return json.dumps(value).encode()


def outcome(call):
    """What a call returns, or the code of its refusal; anything else that is raised fails the test."""
    try:
        return call()
    except ServeError as error:
        return error.code
