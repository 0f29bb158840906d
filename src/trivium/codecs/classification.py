"""The classification extension: the highest elements of an output, each with its index and its label.

Source: spec sheet `triton`, section 4.7. Pure; which outputs may be asked for so, the core's door says.
"""

import numpy as np

from trivium.codecs.elements import object_array
from trivium.types.datatype import Array, DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor

UNRANKED = frozenset({DataType.BYTES, DataType.BOOL})
"""Datatypes whose elements are no scores."""


def classify(tensor: Tensor, most: int, labels: tuple[str, ...], has_rows: bool) -> Tensor:
    """Per row (all as one where there are none) the `most` highest elements, highest first, the first of equals in
    front, as BYTES: `value:index`, or `value:index:label` where there is a label that is not empty.

    MODEL_FAILED for a datatype in `UNRANKED`.
    """
    if tensor.datatype in UNRANKED:
        raise ServeError(
            Code.MODEL_FAILED,
            f"Output {tensor.name!r} was asked for with classification and came as {tensor.datatype.wire}, which "
            "has no order. Ask for it plainly.",
        )
    values = _numbers(tensor)
    rows = len(values) if has_rows and values.ndim else 1
    table = values.reshape(rows, -1) if values.size else values.reshape(rows, 0)
    count = min(most, table.shape[1])
    texts = [text for row in table for text in _best(row, count, labels)]
    shape = (rows, count) if has_rows else (count,)
    return Tensor(tensor.name, DataType.BYTES, shape, object_array(texts, shape))


def _numbers(tensor: Tensor) -> Array:
    if tensor.datatype is DataType.BF16:
        return (tensor.array.astype("<u4") << 16).view("<f4")
    return tensor.array


def _best(row: Array, count: int, labels: tuple[str, ...]) -> list[bytes]:
    last = len(row) - 1
    if row.dtype.kind == "f":
        order = np.argsort(-row, kind="stable")[:count]  # what is not a number comes last
    else:
        order = last - np.argsort(row[::-1], kind="stable")[::-1][:count]  # unsigned ones have no negative
    texts = []
    for index, value in zip(order.tolist(), row[order].tolist(), strict=True):
        number = f"{value:f}" if isinstance(value, float) else str(value)
        label = labels[index] if index < len(labels) else ""
        texts.append(f"{number}:{index}{':' if label else ''}{label}".encode())
    return texts
