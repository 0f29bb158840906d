"""Batches, on the side of the instance: whole items into one batch by rows, and its result back into items.

Rule 6 of the hot path: inputs are stacked into memory that is kept, since fresh pages cost more than the
copy. Decides nothing about what may share a batch: the scheduler put only items of equal shapes together.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from trivium.types.datatype import Array
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor, Tensors

DEFAULT_KEPT_BYTES = 256 * 2**20


class Stacker:
    """Stacks the inputs of one instance, one batch at a time: each `stack` reuses the memory of the last.

    Holds one growing buffer per input name, `kept_bytes` in all at most; a batch beyond that is stacked into
    memory of its own, which is not kept.
    """

    def __init__(self, kept_bytes: int = DEFAULT_KEPT_BYTES) -> None:
        self._free = kept_bytes
        self._buffers: dict[str, Array] = {}

    def stack(self, items: Sequence[Tensors], names: Sequence[str]) -> dict[str, Array]:
        """Each name's arrays, concatenated along axis 0: `[rows, ...]`. Every item has every name.

        A batch of one item is its own arrays, uncopied; objects (BYTES) go into a new array. The rest is
        valid until the next call: a runner must not answer with a view of it.
        """
        if len(items) == 1:
            return {name: items[0][name] for name in names}
        return {name: self._concatenated(name, [item[name] for item in items]) for name in names}

    def _concatenated(self, name: str, arrays: list[Array]) -> Array:
        first = arrays[0]
        if first.dtype.hasobject:
            return np.concatenate(arrays)
        rows = sum(map(len, arrays))
        shape = (rows, *first.shape[1:])
        buffer = self._buffer(name, prod(shape) * first.dtype.itemsize)
        return np.concatenate(arrays, out=np.ndarray(shape, first.dtype, buffer))

    def _buffer(self, name: str, size: int) -> Array:
        kept = self._buffers.get(name)
        held = 0 if kept is None else len(kept)
        if kept is not None and size <= held:
            return kept
        # Doubling keeps the number of growths logarithmic; near the bound, just what is needed.
        grown = size if max(size, 2 * held) - held > self._free else max(size, 2 * held)
        buffer: Array = np.empty(grown, np.uint8)
        if grown - held <= self._free:
            self._free -= grown - held
            self._buffers[name] = buffer
        return buffer


def split(outputs: Tensors, rows: Sequence[int]) -> list[Tensors]:
    """The items of a batch: views of the outputs, `rows[i]` rows for item i.

    MODEL_FAILED for an output whose first dimension is not the sum of the rows.
    """
    total = sum(rows)
    for tensor in outputs.items:
        if tensor.shape[:1] != (total,):
            raise ServeError(
                Code.MODEL_FAILED,
                f"The model returned output {tensor.name!r} of shape {list(tensor.shape)} for a batch of "
                f"{total} rows; its first dimension must be {total}. Correct the model, or configure it "
                "without batching.",
            )
    if len(rows) == 1:
        return [outputs]
    items: list[Tensors] = []
    start = 0
    for count in rows:
        items.append(Tensors(tuple(_rows_of(tensor, start, count) for tensor in outputs.items)))
        start += count
    return items


def _rows_of(tensor: Tensor, start: int, count: int) -> Tensor:
    shape = (count, *tensor.shape[1:])
    return Tensor(tensor.name, tensor.datatype, shape, tensor.array[start : start + count])
