"""Decides what one step computes: who gets which slot, who gets a token, and how much is read of each prompt.

A sequence that has a slot and one input left to compute gets its token in every step. Of those that have more to read,
the first to have come reads first, until the step has read a chunk. A slot that is free goes to the request that came
first and has none, if the memory that it needs to begin with is free as well; a request has further slots for its other
sequences only while no other request wants them. Where more memory is needed than there is, what is kept of sequences
that have ended goes first; then the youngest of those that run give theirs back. This is pure: the runner acts on it,
and a simulation can.
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
    The first `known` of the inputs that are left need not be computed where it begins with what is `kept` in a place.
    """

    key: int
    left: int
    own: int | None = None
    is_first: bool = True
    request: int = 0
    blocks: int = 0
    kept: int | None = None
    known: int = 0


@dataclass(frozen=True, slots=True)
class KeptPrefix:
    """Keys and values of a sequence that has ended: where they lie, and how many blocks they have."""

    place: int
    blocks: int


@dataclass(frozen=True, slots=True)
class StepSettings:
    """The bounds of a step: one token for each of `slots`, `chunk` tokens of prompts, and `blocks` of memory."""

    slots: int
    chunk: int
    blocks: int = sys.maxsize


@dataclass(frozen=True, slots=True)
class StepView:
    """All that is decided upon: the slots that nobody has, and the sequences in the order in which they came. Numbers
    of requests rise in that order. What is kept is in the order in which it goes.
    """

    free: tuple[int, ...]
    holders: tuple[SlotHolder, ...]
    seekers: tuple[SlotSeeker, ...]
    kept: tuple[KeptPrefix, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotJoin:
    """A sequence gets a slot, and begins with what is kept in a place, if that is set."""

    key: int
    slot: int
    kept: int | None = None


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """The next `count` inputs of a sequence are read."""

    key: int
    count: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Lists what is done, in this order: what is `dropped` of the kept goes, but what a join begins with goes into its
    slot; requests that are `preempted` give back all that they have, lent slots are given back, others taken; then
    `rows` get a token each, and the pieces are read.
    """

    returns: tuple[int, ...] = ()
    joins: tuple[SlotJoin, ...] = ()
    rows: tuple[int, ...] = ()
    pieces: tuple[PromptPiece, ...] = ()
    preempted: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()


def plan(view: StepView, settings: StepSettings) -> StepPlan:
    """Return what the next step does. It computes at most `slots + chunk` tokens."""
    dropped, preempted, returns = give_way(view, settings.blocks)
    if preempted or returns:  # then nothing is kept any more
        joins = tuple(
            SlotJoin(seeker.key, seeker.own)
            for seeker in view.seekers
            if seeker.own is not None and seeker.request not in preempted
        )
    else:
        returns, joins, dropped = _Joining(view, settings.blocks, dropped).decide()
    gone = set(returns)
    left = {
        holder.key: holder.left
        for holder in view.holders
        if holder.key not in gone and holder.request not in preempted
    }
    wanted = {seeker.key: seeker for seeker in view.seekers}
    for join in joins:
        seeker = wanted[join.key]
        left[join.key] = seeker.left - (0 if join.kept is None else seeker.known)
    rows = tuple(key for key, count in left.items() if count == 1)
    pieces: list[PromptPiece] = []
    budget = settings.chunk
    for key, count in sorted(left.items()):  # keys are given in the order in which sequences come
        if count > 1 and budget:
            taken = min(count, budget)
            pieces.append(PromptPiece(key, taken))
            budget -= taken
    return StepPlan(returns, joins, rows, tuple(pieces), preempted, dropped)


def give_way(view: StepView, bound: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return what of the kept goes, the requests that give all their memory back, and the lent sequences that do, so
    that what the others need for their next step is at most the bound. What costs least to do without goes first.
    """
    over = sum(one.blocks for one in _owners(view)) + sum(one.blocks for one in view.kept) - bound
    dropped: list[int] = []
    returns: list[int] = []
    preempted: list[int] = []
    for given, key, blocks in _givers(view, (dropped, returns, preempted)):
        if over <= 0:
            break
        given.append(key)
        over -= blocks
    return tuple(dropped), tuple(preempted), tuple(returns)


def _givers(
    view: StepView, lists: tuple[list[int], list[int], list[int]]
) -> Iterator[tuple[list[int], int, int]]:
    """Yield who gives way, behind the list of those of its kind, and how many blocks that frees, in the order in which
    they do: what is kept; lent sequences, the last one first; then whole requests, the youngest first.
    """
    dropped, returns, preempted = lists
    for one in view.kept:
        yield dropped, one.place, one.blocks
    for holder in reversed(view.holders):
        if holder.lent:
            yield returns, holder.key, holder.blocks
    owners = [one for one in _owners(view) if isinstance(one, SlotSeeker) or not one.lent]
    by_age = sorted(owners, key=_request, reverse=True)
    for request, own in groupby(by_age, _request):
        yield preempted, request, sum(one.blocks for one in own)


def _owners(view: StepView) -> tuple[SlotHolder | SlotSeeker, ...]:
    """Return the sequences that have memory, or get a slot that their request has kept."""
    return (*view.holders, *(seeker for seeker in view.seekers if seeker.own is not None))


def _request(one: SlotHolder | SlotSeeker) -> int:
    return one.request


class _Joining:
    """Decides which sequences get a slot in one step, and what goes for them."""

    def __init__(self, view: StepView, bound: int, dropped: tuple[int, ...]) -> None:
        self._view = view
        self._free = sorted(view.free, reverse=True)  # the lowest is taken first: slots in use lie together
        self._lent = [holder for holder in view.holders if holder.lent]
        self._dropped = list(dropped)
        self._kept = {one.place: one.blocks for one in view.kept if one.place not in dropped}
        self._room = bound - sum(one.blocks for one in _owners(view)) - sum(self._kept.values())
        self._used: set[int] = set()
        self._joins: list[SlotJoin] = []
        self._returns: list[int] = []

    def decide(self) -> tuple[tuple[int, ...], tuple[SlotJoin, ...], tuple[int, ...]]:
        """Return the sequences that give a lent slot back, those that get one, and what of the kept goes."""
        for seeker in self._view.seekers:
            if seeker.own is not None:
                self._join(seeker, seeker.own)
        if all(map(self._begin, self._view.seekers)):  # else who came later waits behind the one that cannot
            for seeker in self._view.seekers:
                self._spread(seeker)
        return tuple(self._returns), tuple(self._joins), tuple(self._dropped)

    def _begin(self, seeker: SlotSeeker) -> bool:
        """Give a request its first slot. Returns whether that can be, or is none of its business."""
        if seeker.own is not None or not seeker.is_first:
            return True
        lent = sum(one.blocks for one in self._lent)
        if self._room + self._spare() + lent < seeker.blocks or not (self._free or self._lent):
            return False
        while not self._free:
            self._return_last()
        is_moved = self._drop_for(seeker)
        while self._room < seeker.blocks:
            self._return_last()
        self._join(seeker, self._free.pop(), is_moved)
        self._room -= seeker.blocks
        return True

    def _spread(self, seeker: SlotSeeker) -> None:
        """Give a request a further slot, where there is one."""
        is_extra = seeker.own is None and not seeker.is_first
        if is_extra and self._free and self._room + self._spare() >= seeker.blocks:
            is_moved = self._drop_for(seeker)
            self._join(seeker, self._free.pop(), is_moved)
            self._room -= seeker.blocks

    def _spare(self) -> int:
        """Return the blocks of what is kept and may go: not what another one begins with in this step."""
        return sum(blocks for place, blocks in self._kept.items() if place not in self._used)

    def _drop_for(self, seeker: SlotSeeker) -> bool:
        """Drop what is kept until there is room, in its order, and last what the seeker itself begins with: returns
        whether that has gone, which it then moves into its slot.
        """
        if self._room >= seeker.blocks:
            return False
        was_there = seeker.kept in self._kept
        for place in sorted(self._kept, key=lambda place: place == seeker.kept):
            if self._room < seeker.blocks and place not in self._used:
                self._room += self._kept.pop(place)
                self._dropped.append(place)
        return was_there and seeker.kept not in self._kept

    def _return_last(self) -> None:
        last = self._lent.pop()
        self._returns.append(last.key)
        self._free.append(last.slot)
        self._room += last.blocks

    def _join(self, seeker: SlotSeeker, slot: int, is_moved: bool = False) -> None:
        """Give a slot away, with what is kept of its beginning, if that is there, or goes for this one."""
        kept = seeker.kept if is_moved or seeker.kept in self._kept else None
        if kept is not None:
            self._used.add(kept)
        self._joins.append(SlotJoin(seeker.key, slot, kept))
