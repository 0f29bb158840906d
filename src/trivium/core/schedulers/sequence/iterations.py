"""Stands between the pool and a model that may want a request back: that is queued again, and nobody hears of it.

An execution counts, whatever becomes of its requests. Sheet "triton", section 8.7; there each iteration counts as a
request that went well, here only the last one does, so that as many are counted as were sent.
"""

from collections.abc import Sequence
from typing import Protocol

from trivium.core.instances.pool import Owner
from trivium.core.request import Item
from trivium.types.errors import RunAgain
from trivium.types.running import Executed
from trivium.types.state import ItemState


class Iterated(Owner, Protocol):
    """The model."""

    def again(self, item: Item) -> None:
        """Queue a request that was run for another run."""
        ...


class Iterations:
    """Hears what the pool of such a model tells, in place of the model itself."""

    def __init__(self, model: Iterated) -> None:
        self._model = model
        self.part, self.died = model.part, model.died
        self.stale, self.freed, self.stepped = model.stale, model.freed, model.stepped

    def executed(self, run: Executed, items: Sequence[Item]) -> None:
        """See `Owner`. One that was cancelled meanwhile ends all the same."""
        wanted = [
            type(outcome) is RunAgain and item.state is not ItemState.ENDED
            for item, outcome in zip(items, run.outcomes, strict=True)
        ]
        if any(wanted):
            kept = [i for i, again in enumerate(wanted) if not again]
            run = run.only(kept, sum(item.rows for item in items))
            for item, again in zip(items, wanted, strict=True):
                if again:
                    self._model.again(item)
            items = [items[i] for i in kept]
        self._model.executed(run, items)
