"""Runs batches on a model that is called with named arrays: what engines of whole arrays have in common.

A batch of one reaches the model uncopied; larger ones are stacked into memory that is kept. An engine opens the model
and says how to call it.
"""

from collections.abc import Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from trivium.codecs.binary import pack_strings
from trivium.codecs.new_axis import narrowed, widened
from trivium.codecs.ragged import RaggedRules
from trivium.codecs.rows import Stacker, split
from trivium.types.datatype import Array, DataType
from trivium.types.errors import ServeError, frameless
from trivium.types.payload import Tensors
from trivium.types.running import Batch, Outcome, Ran
from trivium.types.spec import Join, ModelSpec


class Called(NamedTuple):
    """The outputs of one call, when its inputs were ready, and when the outputs were there."""

    outputs: Tensors
    ready: float
    began: float


class ArrayModel(Protocol):
    """A model that an engine has opened."""

    def accept(self, payload: Tensors) -> Tensors | ServeError:
        """Return an item as the model takes it, or why the model cannot take it."""

    def call(self, arrays: dict[str, Array], datatypes: Mapping[str, DataType], is_alone: bool) -> Called:
        """Run the model once. Unless the batch `is_alone` (one item), the arrays are overwritten by the next call,
        so that no output may view them. Raises ServeError.
        """

    def interrupt(self) -> None:
        """Have the call in hand raise soon, where that can be done. Called from any thread."""

    def close(self) -> None:
        """Free the model."""


Model = TypeVar("Model", bound=ArrayModel)


class BatchedRunner(Generic[Model]):
    """Runs the batches of one instance. `run` is called by one thread at a time."""

    def __init__(self, spec: ModelSpec, model: Model) -> None:
        self.model = model
        self._join = spec.batching.join
        self._splits = spec.batching.batch_axis or self._join is not Join.ROWS
        self._stacker = Stacker()
        rules = RaggedRules(spec)
        self._ragged = None if rules.are_none else rules
        self._told = {name: one.datatype for one in spec.batch_shapes.inputs for name in one.names}

    def run(self, batch: Batch) -> Ran:
        """Return an outcome per item. Without a batch dimension the items run one after the other."""
        outcomes: list[Outcome] = []
        items: list[Tensors] = []
        rows: list[int] = []
        for operation, count in zip(batch.operations, batch.rows, strict=True):
            assert isinstance(operation.payload, Tensors)
            item = self.model.accept(operation.payload)
            outcomes.append(item)
            if isinstance(item, Tensors):
                items.append(item)
                rows.append(count)
        if not items:
            return Ran(outcomes)
        if not self._splits and len(items) > 1:
            return Ran([self._alone(one) if isinstance(one, Tensors) else one for one in outcomes])
        if self._join is not Join.ROWS:
            items = widened(items, self._join is Join.PAD)
        outputs, ready, began = self._call(items)
        answers = iter(self._divided(outputs, items, rows))
        return Ran([next(answers) if isinstance(one, Tensors) else one for one in outcomes], ready, began)

    def interrupt(self) -> None:
        """See `SupportsInterrupt`."""
        self.model.interrupt()

    def close(self) -> None:
        """Free the model."""
        self.model.close()

    def _call(self, items: list[Tensors]) -> Called:
        types = {tensor.name: tensor.datatype for tensor in items[0].items}
        if self._ragged is not None:
            arrays, types = self._ragged.stack(self._stacker, items), {**types, **self._told}
        else:
            arrays = self._stacker.stack(items, list(types))
        return self.model.call(arrays, types, len(items) == 1)

    def _divided(self, outputs: Tensors, items: list[Tensors], rows: list[int]) -> list[Tensors]:
        if self._ragged is not None:
            return self._ragged.divide(outputs, items, rows)
        if not self._splits:
            return [pack_strings(outputs)]
        parts = split(outputs, rows)
        return list(map(pack_strings, parts if self._join is Join.ROWS else map(narrowed, parts)))

    def _alone(self, item: Tensors) -> Outcome:
        try:
            return pack_strings(self._call([item]).outputs)
        except ServeError as error:
            return frameless(error)
