"""Who gets which slot, who gets a token, and how much of which prompt is read: by tables, and for any load."""

from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.engines.hf.plan import (
    KeptPrefix,
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


def begins(key, blocks, kept, known, left=20):
    """A request that begins with what is kept."""
    return SlotSeeker(key, left, request=key, blocks=blocks, kept=kept, known=known)


OLD, NEW = KeptPrefix(8, 3), KeptPrefix(9, 4)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        pytest.param(
            StepView((1, 2), (young(1, 0, 3),), (), (OLD, NEW)), StepPlan(rows=(1,)), id="just enough"
        ),
        pytest.param(
            StepView((1, 2), (young(1, 0, 4),), (), (OLD, NEW)),
            StepPlan(rows=(1,), dropped=(8,)),
            id="the oldest goes for those that run",
        ),
        pytest.param(
            StepView((3,), (young(1, 0, 8), young(2, 1, 4)), (), (OLD, NEW)),
            StepPlan(rows=(1,), preempted=(2,), dropped=(8, 9)),
            id="all of it goes before a request does",
        ),
        pytest.param(
            StepView((2, 3), (young(1, 0, 2), lent(2, 1, 1, request=1)), (first(3, 3),), (OLD, NEW)),
            StepPlan((), (SlotJoin(3, 2),), (1, 2, 3), dropped=(8,)),
            id="a new one takes its memory before that of a lent slot",
        ),
        pytest.param(
            StepView((1, 2), (young(1, 0, 3),), (more(2, 6, request=1),), (OLD, NEW)),
            StepPlan(joins=(SlotJoin(2, 1),), rows=(1, 2), dropped=(8, 9)),
            id="a further sequence does so too",
        ),
        pytest.param(
            StepView((1, 2), (young(1, 0, 5),), (first(2, 6),), (OLD,)),
            StepPlan(rows=(1,)),
            id="nothing goes in vain",
        ),
        pytest.param(
            StepView((0, 1), (), (begins(7, 3, kept=9, known=15),), (OLD, NEW)),
            StepPlan(joins=(SlotJoin(7, 0, 9),), pieces=(PromptPiece(7, 5),)),
            id="what is known is not read",
        ),
        pytest.param(
            StepView((0, 1), (), (begins(7, 3, kept=9, known=19),), (OLD, NEW)),
            StepPlan(joins=(SlotJoin(7, 0, 9),), rows=(7,)),
            id="up to the last input",
        ),
        pytest.param(
            StepView((0, 1), (), (begins(7, 5, kept=8, known=15),), (OLD, NEW)),
            StepPlan(joins=(SlotJoin(7, 0, 8),), pieces=(PromptPiece(7, 5),), dropped=(9,)),
            id="another one goes before what it begins with",
        ),
        pytest.param(
            StepView((0, 1), (), (begins(7, 8, kept=8, known=15),), (OLD, NEW)),
            StepPlan(joins=(SlotJoin(7, 0, 8),), pieces=(PromptPiece(7, 5),), dropped=(9, 8)),
            id="which goes into its slot where there is no room for both",
        ),
        pytest.param(
            StepView(
                (0, 1, 2),
                (),
                (begins(6, 3, kept=9, known=15), begins(7, 5, kept=9, known=15), first(8, 3)),
                (OLD, NEW),
            ),
            StepPlan(joins=(SlotJoin(6, 0, 9),), pieces=(PromptPiece(6, 5),)),
            id="what one begins with stays for this step",
        ),
        pytest.param(
            StepView((0, 1), (), (first(6, 7), begins(7, 3, kept=9, known=15)), (OLD, NEW)),
            StepPlan(
                joins=(SlotJoin(6, 0), SlotJoin(7, 1)),
                pieces=(PromptPiece(7, 10),),
                rows=(6,),
                dropped=(8, 9),
            ),
            id="what went for another one has to be read",
        ),
        pytest.param(
            StepView((1,), (young(1, 0, 8),), (first(6, 1), begins(7, 1, kept=8, known=15)), (OLD,)),
            StepPlan(joins=(SlotJoin(6, 1),), rows=(1, 6), dropped=(8,)),
            id="what went for those that run is no beginning",
        ),
    ],
)
def test_a_step_with_kept_beginnings(view, expected):
    assert plan(view, StepSettings(4, 10, 10)) == expected


kept_places = st.lists(st.integers(1, 6), max_size=5).map(
    lambda sizes: tuple(KeptPrefix(100 + at, blocks) for at, blocks in enumerate(sizes))
)


@given(
    kept_places,
    st.lists(st.integers(1, 6), max_size=3),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5)), max_size=6),
    st.integers(12, 40),
)
def test_what_is_kept_never_keeps_anybody_waiting_and_the_bound_holds_at_each_step(kept, held, coming, bound):
    holders = tuple(young(key, key, blocks) for key, blocks in enumerate(held))
    seekers = tuple(
        begins(10 + at, blocks, 100 + choice if choice < len(kept) else None, 15)
        for at, (blocks, choice) in enumerate(coming)
    )
    free = tuple(range(len(held), 6))
    settings = StepSettings(6, 50, bound)
    found = plan(StepView(free, holders, seekers, kept), settings)
    without = plan(StepView(free, holders, seekers), settings)
    assert found.preempted == without.preempted
    joined = [join.key for join in found.joins]
    assert joined == [join.key for join in without.joins][: len(joined)]
    if not found.preempted and len(joined) < len(without.joins):
        used = {join.kept for join in found.joins}
        assert used - {None}, "only what others begin with stays for a step"
    blocks = {one.place: one.blocks for one in kept}
    needs = {seeker.key: seeker.blocks for seeker in seekers}
    moved = [join.kept for join in found.joins if join.kept in found.dropped]
    assert len(set(found.dropped)) == len(found.dropped)
    # as it is done: what nobody begins with is dropped first, then one joins after the other
    for place in set(found.dropped) - set(moved):
        del blocks[place]
    taken = sum(one.blocks for one in holders if one.request not in found.preempted)
    assert taken + sum(blocks.values()) <= bound
    for join in found.joins:
        if join.kept is not None:
            assert join.kept in blocks, "it is there when it is wanted"
        if join.kept in found.dropped:
            del blocks[join.kept]
        taken += needs[join.key]
        assert taken + sum(blocks.values()) <= bound


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
