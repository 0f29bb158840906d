"""Tensors as NVIDIA's clients take them, and samples of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tritonclient.http as triton

Array = npt.NDArray[Any]

A = np.array([1.5, -2.0, 3.25, 4.0], np.float32)
B = np.array([0.5, 10.0, 0.75, -4.0], np.float32)
TEXTS = [b"", b"plain", "Grüße, 世界 \N{GRINNING FACE}".encode(), b"a\x00b\x00", b"\x00", b' \n\t"\\']
NOT_TEXT = [b"\xff\xfe\x00\x80", b"\xc3("]


def given(name: str, array: Array, datatype: str = "FP32", is_binary: bool = True) -> triton.InferInput:
    """An input."""
    tensor = triton.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=is_binary)
    return tensor


def two(a: Array, b: Array, datatype: str = "FP32") -> list[triton.InferInput]:
    """The inputs of a model that adds."""
    return [given("a", a, datatype), given("b", b, datatype)]


def wanted(name: str, is_binary: bool = True) -> triton.InferRequestedOutput:
    """An output asked for."""
    return triton.InferRequestedOutput(name, binary_data=is_binary)


def objects(elements: Sequence[bytes]) -> Array:
    """A BYTES array."""
    return np.array(elements, object)


def encoded(array: Array) -> list[bytes]:
    """The elements of a BYTES array; the client decodes what came as JSON."""
    return [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
