"""Tensors whose shape is one to clients and another to the engine: inputs on their way in, outputs on their way out.

Only sizes move, never elements. Pure; a model without such tensors has none of this. Must not know who decided the two
shapes, nor check them: that they have as many elements, the format has seen to.
"""

from collections.abc import Mapping, Sequence

import msgspec

from trivium.types.datatype import DataType
from trivium.types.interfaces import Sink
from trivium.types.operations import ResponsePart
from trivium.types.payload import Tensor, Tensors, reshaped
from trivium.types.spec import ModelSpec, TensorSpec

Dims = tuple[int, ...]


class Reshapes:
    """Reshapes the tensors of one model; it is prepared once."""

    def __init__(self, spec: ModelSpec) -> None:
        self._rows = 1 if spec.batching.batch_axis else 0
        self._inputs = _inner(spec.inputs)
        self._outputs = _inner(spec.outputs)

    @property
    def are_none(self) -> bool:
        """Have all tensors one shape?"""
        return not (self._inputs or self._outputs)

    def inward(self, payload: Tensors) -> Tensors:
        """Inputs as the engine takes them."""
        if not self._inputs:
            return payload
        return Tensors(tuple(map(self._taken, payload.items)), payload.lease)

    def around(self, sink: Sink) -> Sink:
        """A sink that gets outputs as clients see them."""
        if not self._outputs:
            return sink

        def give(part: ResponsePart) -> None:
            payload = part.payload
            if isinstance(payload, Tensors):
                shown = Tensors(tuple(map(self._shown, payload.items)), payload.lease)
                part = msgspec.structs.replace(part, payload=shown)
            sink(part)

        return give

    def _taken(self, tensor: Tensor) -> Tensor:
        rule = self._inputs.get(tensor.name)
        return tensor if rule is None else self._moved(tensor, rule[1], rule[2])

    def _shown(self, tensor: Tensor) -> Tensor:
        """One of another datatype (classes instead of numbers) is none of the model's own any more."""
        rule = self._outputs.get(tensor.name)
        if rule is None or tensor.datatype is not rule[0]:
            return tensor
        return self._moved(tensor, rule[2], rule[1])

    def _moved(self, tensor: Tensor, source: Dims, target: Dims) -> Tensor:
        """Return it as it is where its shape is not the one that was declared: models may answer otherwise."""
        head, tail = tensor.shape[: self._rows], tensor.shape[self._rows :]
        if len(head) < self._rows or not _fits(tail, source):
            return tensor
        return reshaped(tensor, (*head, *moved(tail, source, target)))


def moved(shape: Dims, source: Dims, target: Dims) -> Dims:
    """The shape that fits `target`, of one that fits `source`: their variable sizes go together in order."""
    sizes = iter([size for size, dim in zip(shape, source, strict=True) if dim == -1])
    return tuple(next(sizes) if dim == -1 else dim for dim in target)


def _inner(tensors: Sequence[TensorSpec]) -> Mapping[str, tuple[DataType, Dims, Dims]]:
    return {one.name: (one.datatype, one.dims, one.inner) for one in tensors if one.inner is not None}


def _fits(shape: Dims, dims: Dims) -> bool:
    return len(shape) == len(dims) and all(d in (-1, s) for s, d in zip(shape, dims, strict=True))
