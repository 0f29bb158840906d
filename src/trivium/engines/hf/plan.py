"""Decides what one step computes: who gets which slot, who gets a token, and how much is read of each prompt.

A sequence that has a slot and one input left to compute gets its token in every step. Of those that have more to read,
the first to have come reads first, until the step has read a chunk. A slot that is free goes to the request that came
first and has none; a request has further slots for its other sequences only while no other request wants them. This
is pure: the runner acts on it, and a simulation can.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlotHolder:
    """A sequence that has a slot, and `left` inputs, one at least, whose keys and values are not computed. The slot is
    `lent` if its request has another one that is its own.
    """

    key: int
    slot: int
    left: int
    lent: bool = False


@dataclass(frozen=True, slots=True)
class SlotSeeker:
    """A sequence without a slot. `own` is the slot that its request keeps for it; without that, it `is_first` where its
    request has no slot at all, and else takes one that nobody wants.
    """

    key: int
    left: int
    own: int | None = None
    is_first: bool = True


@dataclass(frozen=True, slots=True)
class StepSettings:
    """The bounds of a step: one token for each of `slots`, and `chunk` tokens of prompts."""

    slots: int
    chunk: int


@dataclass(frozen=True, slots=True)
class StepView:
    """All that is decided upon: the slots that nobody has, and the sequences in the order in which they came."""

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
    """Lists what is done, in this order: lent slots are given back, others taken; then `rows` get a token each, and
    the pieces are read.
    """

    returns: tuple[int, ...] = ()
    joins: tuple[SlotJoin, ...] = ()
    rows: tuple[int, ...] = ()
    pieces: tuple[PromptPiece, ...] = ()


def plan(view: StepView, settings: StepSettings) -> StepPlan:
    """Return what the next step does. It computes at most `slots + chunk` tokens."""
    returns, joins = _joins(view)
    gone = set(returns)
    left = {holder.key: holder.left for holder in view.holders if holder.key not in gone}
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
    return StepPlan(returns, joins, rows, tuple(pieces))


def _joins(view: StepView) -> tuple[tuple[int, ...], tuple[SlotJoin, ...]]:
    """Return the sequences that give a lent slot back, and those that get one."""
    free = sorted(view.free, reverse=True)  # the lowest is taken first, so that slots in use lie together
    lent = [holder for holder in view.holders if holder.lent]
    joins = [SlotJoin(seeker.key, seeker.own) for seeker in view.seekers if seeker.own is not None]
    returns: list[int] = []
    for seeker in view.seekers:
        if seeker.own is not None or not seeker.is_first:
            continue
        if not free and lent:
            last = lent.pop()
            returns.append(last.key)
            free.append(last.slot)
        if free:
            joins.append(SlotJoin(seeker.key, free.pop()))
    for seeker in view.seekers:
        if free and seeker.own is None and not seeker.is_first:
            joins.append(SlotJoin(seeker.key, free.pop()))
    return tuple(returns), tuple(joins)
