"""The door of one model: turns a request into what the model's engine takes, and judges it against the spec.

Pure. What is refused here never reaches the queue; the texts are those of `admission` and of the payload table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from trivium.codecs.conversion import to_outputs, to_tensors
from trivium.core.admission import InputRules, LevelRules, refuse_kind
from trivium.core.calls import Calls
from trivium.core.item import Item
from trivium.core.workers.arena import Arena
from trivium.types.errors import ServeError
from trivium.types.payload import Payload, PayloadKind, Raw, Scalar, Tensors
from trivium.types.running import Outcome
from trivium.types.spec import ModelSpec

TENSORS, RAW = PayloadKind.TENSORS, PayloadKind.RAW
ONLY_TENSORS = frozenset({TENSORS})


@dataclass(frozen=True, slots=True)
class Means:
    """What a loaded model is given: the payloads that its engine takes, the memory that its workers share with
    the server, and the books of upward calls.
    """

    takes: frozenset[PayloadKind] = ONLY_TENSORS
    arena: Arena | None = None
    calls: Calls = field(default_factory=Calls)


class Door:
    """One model's, prepared once."""

    def __init__(self, spec: ModelSpec, takes: frozenset[PayloadKind]) -> None:
        self._spec = spec
        self._takes_raw = RAW in takes
        self._takes_tensors = TENSORS in takes
        self._inputs = InputRules(spec)
        self._is_free = self._takes_raw and not spec.inputs
        self.levels = LevelRules(spec.scheduling)

    def admit(self, item: Item) -> None:
        """Set the item's rows and shape key; convert its payload, if it must be. Raises ServeError."""
        infer = item.operation
        payload = infer.payload
        if type(payload) is Raw and not self._takes_raw:
            spec = self._spec
            payload = to_tensors(payload, spec.inputs, spec.batching.batch_axis, spec.name)
            infer = item.operation = msgspec.structs.replace(infer, payload=payload)
        if type(payload) is not Tensors:
            if type(payload) is not Raw:
                refuse_kind(self._spec.name, payload)
            item.rows = 1
            return
        if self._is_free:
            return  # a handler that declares nothing takes whatever comes, as one row
        item.rows = self._inputs.admit(infer)
        if self._inputs.needs_key:
            item.shape_key = self._inputs.shape_key(infer)

    def answer(self, item: Item, outcome: Outcome) -> tuple[Outcome, Mapping[str, Scalar]]:
        """The outcome as the item's wire wants it, with parameters; an error where it cannot be had so."""
        if item.operation.wants is TENSORS and type(outcome) is Raw:
            try:
                return to_outputs(outcome, self._spec.outputs, self._spec.name)
            except ServeError as error:
                return error, {}
        return outcome, {}

    @staticmethod
    def chosen(item: Item, payload: Payload | None) -> Payload | None:
        """Of the tensors those that were asked for."""
        wanted = item.operation.outputs
        if wanted and isinstance(payload, Tensors):
            names = {output.name for output in wanted}
            return Tensors(tuple(tensor for tensor in payload.items if tensor.name in names))
        return payload
