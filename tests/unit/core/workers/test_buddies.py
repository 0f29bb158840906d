"""Blocks in a region, whatever comes and goes: they do not overlap, and what is free joins up again."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.core.workers import arena as buddies_module
from trivium.core.workers.arena import BuddyAllocator

SMALLEST, CAPACITY = 8, 256

steps = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 300)), st.tuples(st.just("back"), st.integers(0, 40))
    ),
    max_size=80,
)


def block(size):
    """What a block of at least `size` bytes takes up."""
    taken = SMALLEST
    while taken < size:
        taken *= 2
    return taken


def check(buddies, taken):
    """The books of those who hold blocks: offset to size asked for."""
    spans = sorted((offset, offset + block(size)) for offset, size in taken.items())
    for (_, end), (begin, _) in itertools.pairwise(spans):
        assert end <= begin
    for offset, size in taken.items():
        assert offset % block(size) == 0
        assert 0 <= offset <= CAPACITY - block(size)
    assert buddies.taken == sum(map(block, taken.values()))


@settings(max_examples=examples(300))
@given(steps, st.sampled_from([0, 1, 4, 32]))
def test_blocks_never_overlap_and_join_up_again(steps, resting):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buddies_module, "RESTING", resting)
        play(steps)


def play(steps):
    buddies, taken = BuddyAllocator(CAPACITY, SMALLEST), {}
    for what, number in steps:
        if what == "take":
            offset = buddies.take(number)
            if offset is not None:
                assert offset not in taken
                taken[offset] = number
            else:
                assert number > CAPACITY or buddies.taken > 0
        elif taken:
            offset = sorted(taken)[number % len(taken)]
            del taken[offset]
            buddies.give_back(offset)
        check(buddies, taken)
    for offset in list(taken):
        buddies.give_back(offset)
    assert buddies.take(CAPACITY) == 0, "all that is free is one block again"


@settings(max_examples=examples(100))
@given(st.lists(st.integers(1, 64), max_size=40))
def test_room_is_refused_only_where_there_is_none(sizes):
    buddies, held = BuddyAllocator(CAPACITY, SMALLEST), 0
    for size in sizes:
        if buddies.take(size) is not None:
            held += block(size)
        else:  # the smallest block that does is taken: what is left of all together is too small
            assert CAPACITY - held < block(size)
    assert buddies.taken == held <= CAPACITY


@pytest.mark.parametrize("size", [CAPACITY + 1, 2**40, 2**70])
def test_what_is_larger_than_the_region_is_refused(size):
    assert BuddyAllocator(CAPACITY, SMALLEST).take(size) is None


def test_equal_blocks_fill_it_to_the_last_byte():
    buddies = BuddyAllocator(CAPACITY, SMALLEST)
    offsets = {buddies.take(SMALLEST) for _ in range(CAPACITY // SMALLEST)}
    assert offsets == set(range(0, CAPACITY, SMALLEST))
    assert buddies.take(0) is None


@pytest.mark.parametrize("offset", [0, 8, 3, -8, CAPACITY])
def test_what_was_not_taken_cannot_be_given_back(offset):
    buddies = BuddyAllocator(CAPACITY, SMALLEST)
    with pytest.raises(KeyError):
        buddies.give_back(offset)
    taken = buddies.take(1)
    buddies.give_back(taken)
    with pytest.raises(KeyError):
        buddies.give_back(taken)
    assert buddies.take(CAPACITY) == 0
