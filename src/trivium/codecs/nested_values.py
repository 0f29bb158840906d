"""Writes a tensor as nested lists, for documents of JSON that say no datatypes and no shapes. Pure."""

import base64
from collections.abc import Callable

import numpy as np

from trivium.types.datatype import DataType
from trivium.types.payload import Tensor


def nested(tensor: Tensor, text: "Callable[[bytes], object]") -> list[object]:
    """Return the elements as lists of lists: what is no number is null, and `text` says what an element of BYTES is."""
    array = tensor.array
    if tensor.datatype is DataType.BYTES:
        told = np.empty(array.size, object)
        told[:] = [text(bytes(one)) for one in array.ravel().tolist()]
        return list(told.reshape(array.shape).tolist())
    if tensor.datatype is DataType.BF16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        finite = np.isfinite(array)
        array = array.astype(object)
        array[~finite] = None
    return list(array.tolist())


def with_replacements(data: bytes) -> str:
    """Return bytes as text, where what is no UTF-8 has been replaced."""
    return data.decode("utf-8", "replace")


def text_or_base64(data: bytes) -> object:
    """Return bytes as text, or what is no UTF-8 as TensorFlow Serving writes it: `{"b64": text}`."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode("ascii")}
