"""Decides what one step computes: who gets which slot, who gets a token, and how much is read of each prompt.

A sequence that has a slot and one input left to compute gets its token in every step. Of those that have more to read,
the first to have come reads first, until the step has read a chunk. A slot that is free goes to the request that came
first and has none, if the memory that it needs to begin with is free as well; a request has further slots for its other
sequences only while no other request wants them. Where those that run need more memory than there is, the youngest give
theirs back. This is pure: the runner acts on it, and a simulation can.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class SlotHolder:
    """A sequence that has a slot, and `left` inputs, one at least, whose keys and values are not computed. The slot is
    `lent` if its `request` has another one that is its own. With the inputs that are left it has so many `blocks`.
    """

    key: int
    slot: int
    left: int
    lent: bool = False
    request: int = 0
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class SlotSeeker:
    """A sequence without a slot. `own` is the slot that its request keeps for it; without that, it `is_first` where its
    request has no slot at all, and else takes one that nobody wants. It begins where so many `blocks` are free.
    """

    key: int
    left: int
    own: int | None = None
    is_first: bool = True
    request: int = 0
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class StepSettings:
    """The bounds of a step: one token for each of `slots`, `chunk` tokens of prompts, and `blocks` of memory."""

    slots: int
    chunk: int
    blocks: int = sys.maxsize


@dataclass(frozen=True, slots=True)
class StepView:
    """All that is decided upon: the slots that nobody has, and the sequences in the order in which they came. Numbers
    of requests rise in that order.
    """

    free: tuple[int, ...]
    holders: tuple[SlotHolder, ...]
    seekers: tuple[SlotSeeker, ...]


@dataclass(frozen=True, slots=True)
class SlotJoin:
    """A sequence gets a slot."""

    key: int
    slot: int


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """The next `count` inputs of a sequence are read."""

    key: int
    count: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Lists what is done, in this order: requests that are `preempted` give back all that they have, lent slots are
    given back, others taken; then `rows` get a token each, and the pieces are read.
    """

    returns: tuple[int, ...] = ()
    joins: tuple[SlotJoin, ...] = ()
    rows: tuple[int, ...] = ()
    pieces: tuple[PromptPiece, ...] = ()
    preempted: tuple[int, ...] = ()


def plan(view: StepView, settings: StepSettings) -> StepPlan:
    """Return what the next step does. It computes at most `slots + chunk` tokens."""
    preempted, returns = give_way(view, settings.blocks)
    if preempted or returns:
        gone = set(returns)
        joins = tuple(
            SlotJoin(seeker.key, seeker.own)
            for seeker in view.seekers
            if seeker.own is not None and seeker.request not in preempted
        )
    else:
        returns, joins = _joins(view, settings.blocks)
        gone = set(returns)
    left = {
        holder.key: holder.left
        for holder in view.holders
        if holder.key not in gone and holder.request not in preempted
    }
    wanted = {seeker.key: seeker.left for seeker in view.seekers}
    left |= {join.key: wanted[join.key] for join in joins}
    rows = tuple(key for key, count in left.items() if count == 1)
    pieces: list[PromptPiece] = []
    budget = settings.chunk
    for key, count in sorted(left.items()):  # keys are given in the order in which sequences come
        if count > 1 and budget:
            taken = min(count, budget)
            pieces.append(PromptPiece(key, taken))
            budget -= taken
    return StepPlan(returns, joins, rows, tuple(pieces), preempted)


def give_way(view: StepView, bound: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the requests that give all their memory back, and the lent sequences that do, so that what the others need
    for their next step is at most the bound. What costs least to do without goes first.
    """
    over = sum(one.blocks for one in _owners(view)) - bound
    returns: list[int] = []
    preempted: list[int] = []
    for key, is_request, blocks in _givers(view):
        if over <= 0:
            break
        (preempted if is_request else returns).append(key)
        over -= blocks
    return tuple(preempted), tuple(returns)


def _givers(view: StepView) -> Iterator[tuple[int, bool, int]]:
    """Yield who gives way and how many blocks that frees, in the order in which they do: lent sequences, the last one
    first; then whole requests, the youngest first.
    """
    for holder in reversed(view.holders):
        if holder.lent:
            yield holder.key, False, holder.blocks
    kept = [one for one in _owners(view) if isinstance(one, SlotSeeker) or not one.lent]
    by_age = sorted(kept, key=_request, reverse=True)
    for request, own in groupby(by_age, _request):
        yield request, True, sum(one.blocks for one in own)


def _owners(view: StepView) -> tuple[SlotHolder | SlotSeeker, ...]:
    """Return the sequences that have memory, or get a slot that their request has kept."""
    return (*view.holders, *(seeker for seeker in view.seekers if seeker.own is not None))


def _request(one: SlotHolder | SlotSeeker) -> int:
    return one.request


def _joins(view: StepView, bound: int) -> tuple[tuple[int, ...], tuple[SlotJoin, ...]]:
    """Return the sequences that give a lent slot back, and those that get one."""
    free = sorted(view.free, reverse=True)  # the lowest is taken first, so that slots in use lie together
    room = bound - sum(one.blocks for one in _owners(view))
    lent = [holder for holder in view.holders if holder.lent]
    joins = [SlotJoin(seeker.key, seeker.own) for seeker in view.seekers if seeker.own is not None]
    returns: list[int] = []
    for seeker in view.seekers:
        if seeker.own is not None or not seeker.is_first:
            continue
        if room + sum(one.blocks for one in lent) < seeker.blocks or not (free or lent):
            return tuple(returns), tuple(joins)  # who came later waits behind it
        while not free or room < seeker.blocks:
            last = lent.pop()
            returns.append(last.key)
            free.append(last.slot)
            room += last.blocks
        joins.append(SlotJoin(seeker.key, free.pop()))
        room -= seeker.blocks
    for seeker in view.seekers:
        is_extra = seeker.own is None and not seeker.is_first
        if is_extra and free and seeker.blocks <= room:
            joins.append(SlotJoin(seeker.key, free.pop()))
            room -= seeker.blocks
    return tuple(returns), tuple(joins)
