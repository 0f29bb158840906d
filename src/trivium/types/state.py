"""Life cycles as tables. A move that a table does not list is our own fault and is refused in one place.

The diagrams in `docs/architecture.md` are drawn from these tables.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar


class VersionState(Enum):
    """One version of one model. LOADING includes warm-up; READY will serve without anybody's action, COLD is loaded and
    was scaled to no instance: it refuses requests until it is scaled up.
    """

    REGISTERED = "registered"
    LOADING = "loading"
    READY = "ready"
    COLD = "cold"
    UNLOADING = "unloading"
    UNLOADED = "unloaded"
    FAILED = "failed"


class ItemState(Enum):
    """One request inside the core. It ends exactly once."""

    QUEUED = "queued"
    STARTED = "started"  # handed to an instance, user code has not got it: can be recalled
    BEGUN = "begun"  # user code has it: never run again, unless that code asks for it
    ENDED = "ended"


class ServerState(Enum):
    """The whole server, as its own health says."""

    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"
    STOPPED = "stopped"


_V, _I, _S = VersionState, ItemState, ServerState

VERSION_MOVES: Mapping[VersionState, frozenset[VersionState]] = {
    _V.REGISTERED: frozenset({_V.LOADING, _V.UNLOADED}),
    _V.LOADING: frozenset({_V.READY, _V.FAILED}),
    _V.READY: frozenset({_V.UNLOADING, _V.COLD}),
    _V.COLD: frozenset({_V.UNLOADING, _V.READY}),
    _V.UNLOADING: frozenset({_V.UNLOADED, _V.LOADING}),
    _V.UNLOADED: frozenset({_V.LOADING}),
    _V.FAILED: frozenset({_V.LOADING, _V.UNLOADED}),
}

ITEM_MOVES: Mapping[ItemState, frozenset[ItemState]] = {
    _I.QUEUED: frozenset({_I.STARTED, _I.ENDED}),
    _I.STARTED: frozenset({_I.BEGUN, _I.QUEUED, _I.ENDED}),
    _I.BEGUN: frozenset({_I.QUEUED, _I.ENDED}),
    _I.ENDED: frozenset(),
}

SERVER_MOVES: Mapping[ServerState, frozenset[ServerState]] = {
    _S.STARTING: frozenset({_S.SERVING, _S.DRAINING}),
    _S.SERVING: frozenset({_S.DRAINING}),
    _S.DRAINING: frozenset({_S.STOPPED}),
    _S.STOPPED: frozenset(),
}

State = TypeVar("State", VersionState, ItemState, ServerState)


def move(moves: Mapping[State, frozenset[State]], now: State, to: State) -> State:
    """Return `to` if the table lists the move; AssertionError otherwise."""
    assert to in moves[now], f"no move from {now.value} to {to.value}"
    return to
