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
