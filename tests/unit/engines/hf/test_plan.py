"""Who gets which slot, who gets a token, and how much of which prompt is read: by tables, and for any load."""

from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.engines.hf.plan import (
    PromptPiece,
    SlotHolder,
    SlotJoin,
    SlotSeeker,
    StepPlan,
    StepSettings,
    StepView,
    plan,
)

SETTINGS = StepSettings(slots=4, chunk=10)


def holder(key, slot, left=1, lent=False):
    return SlotHolder(key, slot, left, lent)


def extra(key, left=1, own=None):
    return SlotSeeker(key, left, own, is_first=False)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        pytest.param(StepView((0, 1), (), ()), StepPlan(), id="nobody is there"),
        pytest.param(
            StepView((2, 3), (holder(1, 0), holder(2, 1)), ()),
            StepPlan(rows=(1, 2)),
            id="who runs gets a token",
        ),
        pytest.param(
            StepView((3, 1), (holder(1, 0),), (SlotSeeker(2, 7),)),
            StepPlan(joins=(SlotJoin(2, 1),), rows=(1,), pieces=(PromptPiece(2, 7),)),
            id="a new one takes the lowest slot and reads at once",
        ),
        pytest.param(
            StepView((2, 3), (holder(1, 0, 25), holder(2, 1, 5)), ()),
            StepPlan(pieces=(PromptPiece(1, 10),)),
            id="a long prompt reads a chunk and the next one waits",
        ),
        pytest.param(
            StepView((2, 3), (holder(1, 0, 6), holder(2, 1, 5)), ()),
            StepPlan(pieces=(PromptPiece(1, 6), PromptPiece(2, 4))),
            id="what is left of the chunk goes to the next prompt",
        ),
        pytest.param(
            StepView((), (holder(1, 0), holder(2, 1), holder(3, 2), holder(4, 3)), (SlotSeeker(5, 3),)),
            StepPlan(rows=(1, 2, 3, 4)),
            id="without a slot a new one waits",
        ),
        pytest.param(
            StepView(
                (), (holder(1, 0), holder(2, 1, lent=True), holder(3, 2, lent=True)), (SlotSeeker(5, 1),)
            ),
            StepPlan((3,), (SlotJoin(5, 2),), (1, 2, 5)),
            id="the last slot that was lent goes to a request that has none",
        ),
        pytest.param(
            StepView((1, 2), (holder(1, 0),), (extra(2), extra(3), SlotSeeker(4, 1))),
            StepPlan(joins=(SlotJoin(4, 1), SlotJoin(2, 2)), rows=(1, 2, 4)),
            id="further sequences take what no request wants",
        ),
        pytest.param(
            StepView((), (holder(1, 0),), (extra(2, own=3), extra(4))),
            StepPlan(joins=(SlotJoin(2, 3),), rows=(1, 2)),
            id="a request's own slot is its next sequence's",
        ),
    ],
)
def test_a_step(view, expected):
    found = plan(view, SETTINGS)
    assert (found.returns, set(found.joins), set(found.rows), found.pieces) == (
        expected.returns,
        set(expected.joins),
        set(expected.rows),
        expected.pieces,
    )


def young(key, slot, blocks, left=1):
    """The only sequence of a request."""
    return SlotHolder(key, slot, left, request=key, blocks=blocks)


def lent(key, slot, blocks, request):
    return SlotHolder(key, slot, 1, lent=True, request=request, blocks=blocks)


def first(key, blocks, left=1):
    return SlotSeeker(key, left, request=key, blocks=blocks)


def more(key, blocks, request, own=None):
    return SlotSeeker(key, 1, own, is_first=False, request=request, blocks=blocks)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        pytest.param(
            StepView((2,), (young(1, 0, 6), young(2, 1, 4)), ()), StepPlan(rows=(1, 2)), id="just enough"
        ),
        pytest.param(
            StepView((3,), (young(1, 0, 6), young(2, 1, 3), young(3, 2, 2)), ()),
            StepPlan(rows=(1, 2), preempted=(3,)),
            id="the youngest request gives its memory back",
        ),
        pytest.param(
            StepView((3,), (young(1, 0, 9), young(2, 1, 3), young(3, 2, 2)), ()),
            StepPlan(rows=(1,), preempted=(3, 2)),
            id="and the next one if that is not enough",
        ),
        pytest.param(
            StepView((3,), (young(1, 0, 5), lent(2, 1, 3, request=1), young(3, 2, 3)), ()),
            StepPlan((2,), rows=(1, 3)),
            id="a lent slot goes before any request",
        ),
        pytest.param(
            StepView((), (young(1, 0, 9), lent(2, 1, 1, request=1)), (more(3, 2, 3, own=2),)),
            StepPlan((2,), rows=(1,), preempted=(3,)),
            id="a request between two sequences in its own slot gives way as others do",
        ),
        pytest.param(
            StepView((3,), (young(1, 0, 8), young(2, 1, 5)), (first(3, 1),)),
            StepPlan(rows=(1,), preempted=(2,)),
            id="nobody joins in the place of one that gave way",
        ),
        pytest.param(
            StepView((1, 2), (young(1, 0, 5),), (first(2, 6), first(3, 1))),
            StepPlan(rows=(1,)),
            id="a new one waits for memory, and later ones behind it",
        ),
        pytest.param(
            StepView((2, 3), (young(1, 0, 5), lent(2, 1, 3, request=1)), (first(3, 5),)),
            StepPlan((2,), (SlotJoin(3, 1),), (1, 3)),
            id="memory of a lent slot goes to a request that has none",
        ),
        pytest.param(
            StepView((2, 3), (young(1, 0, 5), lent(2, 1, 3, request=1)), (first(3, 6),)),
            StepPlan(rows=(1, 2)),
            id="but not where it is too little",
        ),
        pytest.param(
            StepView((1, 2), (young(1, 0, 5),), (more(2, 3, request=1), more(3, 3, request=1))),
            StepPlan(joins=(SlotJoin(2, 1),), rows=(1, 2)),
            id="further sequences take memory that nobody wants",
        ),
        pytest.param(
            StepView((0, 1), (), (first(7, 10, left=300),)),
            StepPlan(joins=(SlotJoin(7, 0),), pieces=(PromptPiece(7, 10),)),
            id="one that needs all begins where it is alone",
        ),
    ],
)
def test_a_step_within_ten_blocks(view, expected):
    assert plan(view, StepSettings(4, 10, 10)) == expected


@dataclass
class Grown:
    """A request of one sequence: inputs that it has computed, and that it has at its end."""

    key: int
    prompt: int
    most: int
    known: int
    done: int = 0
    slot: int | None = None


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 30), st.integers(0, 3)), max_size=25),
    st.integers(1, 5),
    st.integers(1, 9),
    st.integers(0, 30),
)
def test_with_any_memory_that_holds_each_alone_all_end_and_the_bound_holds(told, slots, chunk, spare):
    """A block is one token here, so that every token needs memory."""
    bound = max((prompt + new for prompt, new, _ in told), default=1) + spare
    coming = deque(
        (Grown(key, prompt, prompt + new, prompt), after) for key, (prompt, new, after) in enumerate(told)
    )
    active: list[Grown] = []
    free = set(range(slots))
    until_next = preempted = 0
    for _ in range(20_000):
        while coming and len(active) < slots and until_next <= 0:
            one, until_next = coming.popleft()
            active.append(one)
        until_next -= 1
        if not active and not coming:
            break
        view = StepView(
            tuple(free),
            tuple(
                SlotHolder(one.key, one.slot, one.known - one.done, request=one.key, blocks=one.known)
                for one in active
                if one.slot is not None
            ),
            tuple(
                SlotSeeker(one.key, one.known, request=one.key, blocks=min(one.known + 1, one.most))
                for one in active
                if one.slot is None
            ),
        )
        found = plan(view, StepSettings(slots, chunk, bound))
        by_key = {one.key: one for one in active}
        holding = sorted(holder.key for holder in view.holders)
        assert list(found.preempted) == holding[len(holding) - len(found.preempted) :][::-1], (
            "the youngest go"
        )
        assert len(found.preempted) < len(holding) or not holding, "the oldest stays"
        for key in found.preempted:
            free.add(by_key[key].slot)
            by_key[key].slot, by_key[key].done = None, 0
            preempted += 1
        for join in found.joins:
            free.remove(join.slot)
            by_key[join.key].slot = join.slot
        assert found.rows or found.pieces or not active, "something is computed"
        for key, count in (
            *((key, 1) for key in found.rows),
            *((one.key, one.count) for one in found.pieces),
        ):
            one = by_key[key]
            one.done += count
            if one.done == one.known:
                one.known += 1
        assert sum(one.done for one in active) <= bound
        for one in [one for one in active if one.known > one.most]:
            active.remove(one)
            free.add(one.slot)
    assert not active
    assert not coming
    assert preempted <= len(told) ** 2, "nobody is sent away again and again"


@dataclass
class Running:
    key: int
    left: int
    answers: int
    slot: int | None = None
    waits: int = 0


requests = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 8), st.integers(0, 3)), max_size=40)


@given(requests, st.integers(1, 5), st.integers(1, 20))
def test_any_load_is_served_within_the_bounds(told, slots, chunk):
    coming = deque((Running(key, left, answers), after) for key, (left, answers, after) in enumerate(told))
    active: list[Running] = []
    free = set(range(slots))
    begun = []
    steps_until_next = 0
    for _ in range(10_000):
        while coming and len(active) < slots and steps_until_next <= 0:
            one, after = coming.popleft()
            active.append(one)
            steps_until_next = after
        steps_until_next -= 1
        if not active and not coming:
            break
        has_free = bool(free)
        view = StepView(
            tuple(free),
            tuple(SlotHolder(one.key, one.slot, one.left) for one in active if one.slot is not None),
            tuple(SlotSeeker(one.key, one.left) for one in active if one.slot is None),
        )
        found = plan(view, StepSettings(slots, chunk))
        by_key = {one.key: one for one in active}
        for join in found.joins:
            assert join.slot in free, "a slot has one owner"
            free.remove(join.slot)
            by_key[join.key].slot = join.slot
            begun.append(join.key)
        assert not (has_free and view.seekers and not found.joins), "a free slot is taken"
        running = {one.key for one in active if one.slot is not None and one.left == 1}
        assert set(found.rows) == running, "every one that runs gets a token"
        assert len(found.rows) + sum(piece.count for piece in found.pieces) <= slots + chunk
        assert all(0 < piece.count <= by_key[piece.key].left for piece in found.pieces)
        reading = [piece.key for piece in found.pieces]
        assert reading == sorted(reading)
        for piece in found.pieces[:-1]:
            assert piece.count == by_key[piece.key].left, "who came first reads first"
        ended = [*found.rows]
        for piece in found.pieces:
            by_key[piece.key].left -= piece.count
            ended += [piece.key] if not by_key[piece.key].left else []
        for key in ended:
            one = by_key[key]
            one.left, one.answers = 1, one.answers - 1
            if not one.answers:
                active.remove(one)
                free.add(one.slot)
    assert not active
    assert not coming
    assert begun == sorted(begun), "nobody is overtaken"
    assert len(free) == slots
