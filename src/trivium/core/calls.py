"""Who waits for whom: the upward calls of all models, and whether a new one could ever be served.

A model's handler may call other models while it holds an instance. Where every instance of the called model is
held by somebody who waits, directly or through others, for this very call, waiting would never end. Pure.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from trivium.types.errors import Code, ServeError
from trivium.types.operations import CallRef
from trivium.types.running import ItemId


class Pooled(Protocol):
    """A loaded model, as a call sees it."""

    @property
    def can_grow(self) -> bool:
        """May it open a further instance, or is one being opened?"""
        ...

    def holders(self) -> Iterable[Collection[ItemId]]:
        """For each open instance that can take nothing now, the items that it holds; a free one as none."""
        ...


class Calls:
    """One per server: for every item, the models in whose queues its calls wait. Used on the loop only."""

    def __init__(self) -> None:
        self._waiting: dict[ItemId, dict[ItemId, Pooled]] = {}

    def queued(self, call: ItemId, parent: CallRef, model: Pooled) -> None:
        """A call waits in a model's queue."""
        self._waiting.setdefault(parent.items[-1], {})[call] = model

    def left(self, call: ItemId, parent: CallRef) -> None:
        """It waits no more: an instance has it, or it has ended."""
        waiting = self._waiting.get(parent.items[-1])
        if waiting is not None:
            waiting.pop(call, None)
            if not waiting:
                del self._waiting[parent.items[-1]]

    def check(self, name: str, model: Pooled, parent: CallRef) -> None:
        """Raises QUEUE_FULL, naming the chain, where a call to `model` would wait for itself."""
        if is_held(model, frozenset(parent.items), self._waiting):
            chain = " -> ".join((*parent.chain, name))
            raise ServeError(
                Code.QUEUE_FULL,
                f"The call {chain} can never be served: every instance of model '{name}' is held by a request that "
                "waits for this very call. Give the model more instances than its chain is deep, or call it "
                "from outside the chain.",
            )


def is_held(
    model: Pooled, path: frozenset[ItemId], waiting: Mapping[ItemId, Mapping[ItemId, Pooled]]
) -> bool:
    """Is every instance of the model held by an item of the path, or by one that waits for such a model?"""
    return _is_held(model, path, waiting, set())


def _is_held(
    model: Pooled,
    path: frozenset[ItemId],
    waiting: Mapping[ItemId, Mapping[ItemId, Pooled]],
    seen: set[int],
) -> bool:
    if model.can_grow:
        return False
    if id(model) in seen:
        return True  # nothing but what is already being looked at could free it
    seen.add(id(model))
    instances = list(model.holders())
    return bool(instances) and all(
        any(
            item in path
            or any(_is_held(called, path, waiting, set(seen)) for called in waiting.get(item, {}).values())
            for item in held
        )
        for held in instances
    )
