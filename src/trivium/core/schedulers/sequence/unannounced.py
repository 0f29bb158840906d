"""Finds the sequence of a request that nobody announced, or invents one, and hears which of them an answer ends.

Stands at the door of such a model, and between its pool and the model: others never meet it. Sheet "torchserve",
section 4.5.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence

from trivium.core.instances.pool import Owner
from trivium.core.request import Item
from trivium.types.operations import DESCRIBE, Infer, SequenceRef
from trivium.types.payload import Raw
from trivium.types.running import Executed, Part
from trivium.types.schedules import SequenceProperties, Unannounced


def place_of(infer: Infer, rules: Unannounced) -> SequenceRef:
    """Return the sequence of a request: that which its wire or a property names, else one of its own with a new id. A
    request for what a model says of itself belongs to none: it is a sequence of one request.
    """
    ref = infer.sequence
    if ref is None:
        said = infer.payload.properties if isinstance(infer.payload, Raw) else {}
        ref = _named(said, rules.properties)
    if ref.id == "":
        is_all = ref.ends or infer.method == DESCRIBE
        return SequenceRef(f"{rules.prefix}{uuid.uuid4()}", True, is_all)
    return SequenceRef(str(ref.id), ref.starts, ref.ends)


def _named(properties: Mapping[str, str], names: SequenceProperties) -> SequenceRef:
    said = {name.lower(): value for name, value in properties.items()}
    starts, ends = (_is_true(said.get(name.lower(), "")) for name in (names.starts, names.ends))
    return SequenceRef(said.get(names.id.lower(), ""), starts, ends)


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"


class Endings:
    """Hears what the pool of such a model tells, in front of the model itself: an answer may say that sequences are
    over. `end` is told of them before the answer leaves, so that who reads it can count on that.
    """

    def __init__(self, model: Owner, name: str, end: Callable[[Sequence[str]], None]) -> None:
        self._model = model
        self._name = name.lower()
        self._end = end
        self.died, self.stale = model.died, model.stale
        self.freed, self.stepped = model.freed, model.stepped

    def executed(self, run: Executed, items: Sequence[Item]) -> None:
        """See `Owner`."""
        for outcome in run.outcomes:
            self._look(outcome)
        self._model.executed(run, items)

    def part(self, item: Item, part: Part) -> None:
        """See `Owner`."""
        self._look(part.payload)
        self._model.part(item, part)

    def _look(self, answer: object) -> None:
        if isinstance(answer, Raw):
            for name, value in answer.properties.items():
                if name.lower() == self._name:
                    self._end([identity.strip() for identity in value.split(";")])
