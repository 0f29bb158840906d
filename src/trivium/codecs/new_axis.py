"""Items without a batch dimension get one, so that several of them are rows of one batch, and their answers lose it.

Decides nothing about what may share a batch: whoever puts unlike items together gets an error for all of them.
"""

from collections.abc import Sequence

import numpy as np

from trivium.types.datatype import Array
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor, Tensors


def widened(items: Sequence[Tensors], is_padded: bool) -> list[Tensors]:
    """Return each item as a single row. Tensors of one name have one shape; where shorter ones are padded, as many
    dimensions, and then zeros (of BYTES: nothing) stand behind them up to the longest.

    Raises INVALID, for the whole batch, for items whose tensors do not fit together.
    """
    first = items[0]
    names = sorted(tensor.name for tensor in first.items)
    for item in items[1:]:
        if sorted(tensor.name for tensor in item.items) != names:
            raise _unlike("the inputs differ", "send the same inputs in each request")
    shapes = {
        tensor.name: _common(tensor.name, [item[tensor.name].shape for item in items], is_padded)
        for tensor in first.items
    }
    return [
        Tensors(tuple(_row(tensor, shapes[tensor.name]) for tensor in item.items), item.lease)
        for item in items
    ]


def narrowed(item: Tensors) -> Tensors:
    """Return an answer of one row without its batch dimension."""
    return Tensors(
        tuple(
            Tensor(tensor.name, tensor.datatype, tensor.shape[1:], tensor.array.reshape(tensor.shape[1:]))
            for tensor in item.items
        ),
        item.lease,
    )


def _common(name: str, shapes: Sequence[tuple[int, ...]], is_padded: bool) -> tuple[int, ...]:
    different = [shape for shape in shapes if shape != shapes[0]]
    if not different:
        return shapes[0]
    found = f"input '{name}' has the shapes {list(shapes[0])} and {list(different[0])}"
    if not is_padded:
        raise _unlike(found, "send requests of one shape")
    if any(len(shape) != len(shapes[0]) for shape in different):
        raise _unlike(found, "send requests of as many dimensions")
    return tuple(map(max, zip(*shapes, strict=True)))


def _row(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    array: Array = tensor.array
    if tensor.shape != shape:
        missing = [(0, most - size) for size, most in zip(tensor.shape, shape, strict=True)]
        filler = b"" if array.dtype.hasobject else 0
        array = np.pad(array, missing, constant_values=filler)
    return Tensor(tensor.name, tensor.datatype, (1, *shape), array.reshape((1, *shape)))


def _unlike(found: str, hint: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"Requests that were put into one batch do not fit together: {found}. None of them was run; {hint}, or have "
        "the model take them one by one.",
    )
