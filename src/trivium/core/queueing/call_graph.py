"""Records who waits for whom: the upward calls of all models, and whether a new one could ever be served.

A model's handler may call other models while it holds an instance. Where every instance of the called model is
held by somebody who waits, directly or through others, for this very call, waiting would never end. Pure.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import CallRef
from trivium.types.running import ItemId


class CallTarget(Protocol):
    """A loaded model, as a call sees it."""

    @property
    def can_grow(self) -> bool:
        """May it open a further instance, or is one being opened?"""
        ...

    def holders(self) -> Iterable[Collection[ItemId]]:
        """Return for each open instance that can take nothing now the items that it holds, in groups: it can take more
        once all items of one group have ended. A free one has an empty group.
        """
        ...

    def beside(self, call: ItemId) -> Collection[ItemId]:
        """Return what must go on for a call to go on that an instance has: it and those that it runs with. None while
        it waits in the queue.
        """
        ...


@dataclass(frozen=True, slots=True)
class PendingCall:
    """One that has not ended: its number, whom it calls, for whom, and how to end it."""

    number: ItemId
    name: str
    model: CallTarget
    parent: CallRef
    cancel: Callable[[ServeError], None]


Waiting = Mapping[ItemId, Mapping[ItemId, PendingCall]]
"""For every item the calls that it waits for, by number."""


class CallGraph:
    """One per server. Used on the loop only."""

    def __init__(self) -> None:
        self._waiting: dict[ItemId, dict[ItemId, PendingCall]] = {}

    def begun(self, call: PendingCall) -> None:
        """Its parent waits for it from now on."""
        self._waiting.setdefault(call.parent.items[-1], {})[call.number] = call

    def ended(self, number: ItemId, parent: CallRef) -> None:
        """Nobody waits for it any more. Nothing happens if it had not begun."""
        waiting = self._waiting.get(parent.items[-1])
        if waiting is not None:
            waiting.pop(number, None)
            if not waiting:
                del self._waiting[parent.items[-1]]

    @property
    def waiting(self) -> Waiting:
        """Return for every item the calls that it waits for, by number."""
        return self._waiting

    def check(self, name: str, model: CallTarget, parent: CallRef) -> None:
        """Raises QUEUE_FULL, naming the chain, where a call to `model` would wait for itself."""
        if is_held(model, frozenset(parent.items), self._waiting):
            raise _endless(name, parent)

    def review(self) -> None:
        """A model has lost an instance for good: end, one by one, the calls that can never be served now."""
        for calls in list(self._waiting.values()):
            for call in list(calls.values()):
                if (
                    call.number in calls
                    and not call.model.beside(call.number)
                    and is_held(call.model, frozenset(call.parent.items), self._waiting)
                ):
                    call.cancel(_endless(call.name, call.parent))


def is_held(model: CallTarget, path: Collection[ItemId], waiting: Waiting) -> bool:
    """Is every instance of the model held by an item of the path, or by one that waits for such an instance?

    Whoever can go on is taken to do so, until nobody is left who can: what is left then waits for itself.
    """
    pools, groups, calls = _reachable(model, waiting)
    stuck_pools = {key for key, held in pools.items() if held}
    stuck_items = {item for group in groups for item in group}

    def goes_on(call: PendingCall) -> bool:
        beside = calls[call.number]
        return stuck_items.isdisjoint(beside) if beside else id(call.model) not in stuck_pools

    is_changing = True
    while is_changing and id(model) in stuck_pools:
        moving = {
            item
            for item in stuck_items
            if item not in path and all(map(goes_on, waiting.get(item, {}).values()))
        }
        stuck_items -= moving
        free = {key for key in stuck_pools if any(map(stuck_items.isdisjoint, pools[key]))}
        stuck_pools -= free
        is_changing = bool(moving or free)
    return id(model) in stuck_pools


def _reachable(
    model: CallTarget, waiting: Waiting
) -> tuple[dict[int, list[Collection[ItemId]]], list[Collection[ItemId]], dict[ItemId, Collection[ItemId]]]:
    """Return what a call to the model could have to wait for: by model the items of each instance (no instance where
    it can grow); all groups of items that end together; by call those that it runs with.
    """
    pools: dict[int, list[Collection[ItemId]]] = {}
    groups: list[Collection[ItemId]] = []
    calls: dict[ItemId, Collection[ItemId]] = {}
    seen: set[ItemId] = set()
    models: list[CallTarget] = [model]
    fresh: list[Collection[ItemId]] = []
    while models or fresh:
        if models:
            pool = models.pop()
            if id(pool) not in pools:
                pools[id(pool)] = held = [] if pool.can_grow else list(pool.holders())
                fresh += held
            continue
        group = fresh.pop()
        groups.append(group)
        for item in group:
            if item in seen:
                continue
            seen.add(item)
            for call in waiting.get(item, {}).values():
                calls[call.number] = beside = call.model.beside(call.number)
                if beside:
                    fresh.append(beside)
                else:
                    models.append(call.model)
    return pools, groups, calls


def _endless(name: str, parent: CallRef) -> ServeError:
    chain = " -> ".join(names := (*parent.chain, name))
    return ServeError(
        Code.QUEUE_FULL,
        f"The call {chain} can never be served: every instance of model '{name}' is held by a request that waits for "
        "this very call. Give the model more instances than its chain is deep, or call it from outside the chain.",
        info=ErrorInfo.of(reasons.ENDLESS, chain=names),
    )
