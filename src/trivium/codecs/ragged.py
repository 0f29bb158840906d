"""Batches of items whose shapes differ: laid one behind the other without rows, with further inputs for the shapes.

Beside `rows`, for models that ask for it. What is told, and what outputs follow, `types.batch_shapes` says. Decides
nothing about what may share a batch.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod

import numpy as np

from trivium.codecs.rows import Stacker, split
from trivium.types.batch_shapes import BatchInput, ShapeFact
from trivium.types.datatype import Array
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor, Tensors
from trivium.types.spec import ModelSpec

Shapes = Sequence[tuple[int, ...]]


class RaggedRules:
    """Rules of one model with ragged inputs, prepared once."""

    def __init__(self, spec: ModelSpec) -> None:
        self._ragged = frozenset(tensor.name for tensor in spec.inputs if tensor.ragged)
        self._told = spec.batch_shapes.inputs
        dims = {tensor.name: tensor.dims for tensor in spec.outputs}
        self._following = {
            name: (output.source, (-1, *dims.get(name, ())))
            for output in spec.batch_shapes.outputs
            for name in output.names
        }

    @property
    def are_none(self) -> bool:
        """Does the model take its requests by rows alone?"""
        return not (self._ragged or self._told or self._following)

    def stack(self, stacker: Stacker, items: Sequence[Tensors]) -> dict[str, Array]:
        """See `Stacker.stack`; ragged inputs have one dimension, and those that tell of them come last."""
        names = [tensor.name for tensor in items[0].items]
        arrays = stacker.stack(items, [name for name in names if name not in self._ragged])
        for name in names:
            if name in self._ragged:
                arrays[name] = np.concatenate([item[name].ravel() for item in items])
        for told in self._told:
            array = tell(told, [item[told.source].shape for item in items])
            arrays |= dict.fromkeys(told.names, array)
        return arrays

    def divide(self, outputs: Tensors, items: Sequence[Tensors], rows: Sequence[int]) -> list[Tensors]:
        """See `rows.split`. MODEL_FAILED for an output that has not the elements of the input that it follows."""
        plain = Tensors(tuple(tensor for tensor in outputs.items if tensor.name not in self._following))
        parts = {
            tensor.name: self._scattered(tensor, items)
            for tensor in outputs.items
            if tensor.name in self._following
        }
        if not parts:
            return split(plain, rows)
        answers = split(plain, rows) if plain.items else [plain] * len(items)
        by_name = [{tensor.name: tensor for tensor in answer.items} for answer in answers]
        return [
            Tensors(tuple(parts[t.name][i] if t.name in parts else by_name[i][t.name] for t in outputs.items))
            for i in range(len(items))
        ]

    def _scattered(self, tensor: Tensor, items: Sequence[Tensors]) -> list[Tensor]:
        source, dims = self._following[tensor.name]
        shapes = [_followed(dims, item[source].shape) for item in items]
        counts = [prod(shape) for shape in shapes]
        flat = tensor.array.reshape(-1)
        if flat.size != sum(counts):
            raise ServeError(
                Code.MODEL_FAILED,
                f"The model returned output {tensor.name!r} with {flat.size} elements for a batch whose input "
                f"{source!r} asks for {sum(counts)}. Correct the model, or its batch_output.",
            )
        ends = list(accumulate(counts))
        pieces = zip(shapes, [0, *ends], ends, strict=False)
        return [
            Tensor(tensor.name, tensor.datatype, shape, flat[start:end].reshape(shape))
            for shape, start, end in pieces
        ]


def tell(told: BatchInput, shapes: Shapes) -> Array:
    """The tensor that tells of parts of these shapes, rows included."""
    counts = [prod(shape) for shape in shapes]
    values: Mapping[ShapeFact, object] = {
        ShapeFact.COUNTS: counts,
        ShapeFact.SUMS: list(accumulate(counts)),
        ShapeFact.SUMS_FROM_ZERO: [0, *accumulate(counts)],
    }
    dtype = told.datatype.dtype
    if told.told is ShapeFact.GREATEST_AS_SHAPE:
        return np.zeros(max(counts, default=0), dtype)
    if told.told in values:
        return np.array(values[told.told], dtype)
    items = np.array([shape[1:] for shape in shapes for _ in range(shape[0])], dtype)
    return items if told.told is ShapeFact.SHAPES else items.ravel()


def _followed(dims: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """-1 is the size that stands at the same place in the shape of the input."""
    return tuple(size if size != -1 or at >= len(shape) else shape[at] for at, size in enumerate(dims))
