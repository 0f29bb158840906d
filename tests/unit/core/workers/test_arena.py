"""Memory that workers share: lent and taken back, found again by address, never waited for."""

import mmap
import os

import numpy as np
import pytest

from trivium.core.workers.arena import ALIGNED, RESTING_BYTES, SMALLEST, Arena, address

CAPACITY = 16 * SMALLEST


@pytest.fixture
def arena():
    made = Arena("m", CAPACITY)
    yield made
    made.close()


def test_what_is_lent_is_as_long_as_was_asked_for_and_comes_back(arena):
    lease = arena.lend(SMALLEST + 1)
    assert len(lease.view) == SMALLEST + 1
    assert arena.lent == 2 * SMALLEST
    lease.hold()
    lease.release()
    assert arena.lent == 2 * SMALLEST
    lease.release()
    assert arena.lent == 0
    assert arena.lend(CAPACITY).offset == 0


def test_where_there_is_no_room_nothing_is_lent(arena):
    assert arena.lend(CAPACITY + 1) is None
    whole = arena.lend(CAPACITY)
    assert arena.lend(1) is None
    whole.release()
    assert arena.lend(1) is not None


def test_a_worker_sees_what_was_written_and_may_write(arena):
    lease = arena.lend(SMALLEST)
    lease.view[:5] = b"hello"
    with mmap.mmap(arena.descriptor, CAPACITY) as seen:
        assert seen[lease.offset : lease.offset + 5] == b"hello"
        seen[lease.offset] = ord("j")
    assert lease.view[:5] == b"jello"


@pytest.mark.parametrize("lead", [0, 1, 63, 64, 65, 151, 5000, 10**16])
def test_what_follows_the_lead_is_aligned(arena, lead):
    lease = arena.lend(SMALLEST - ALIGNED, lead)
    assert len(lease.view) == SMALLEST - ALIGNED
    assert (address(lease.view) + lead) % ALIGNED == 0
    assert arena.lent == SMALLEST
    lease.view[-1] = 1
    lease.release()
    assert arena.lent == 0
    assert arena.lend(CAPACITY).offset == 0


def test_views_are_found_by_their_address(arena):
    arena.lend(SMALLEST)
    lease = arena.lend(4 * SMALLEST)
    assert arena.offset_of(lease.view) == lease.offset
    array = np.frombuffer(lease.view, "<f4")[10:20]
    assert arena.offset_of(array.data.cast("B")) == lease.offset + 40
    elsewhere = arena.offset_of(b"elsewhere")
    assert not 0 <= elsewhere < CAPACITY


def test_views_outlive_it():
    arena = Arena("m", CAPACITY)
    lease = arena.lend(SMALLEST)
    lease.view[:3] = b"abc"
    view = lease.view[:3]
    arena.close()
    with pytest.raises(OSError):
        os.fstat(arena.descriptor)
    assert arena.lend(1) is None
    del arena
    assert bytes(view) == b"abc"


def test_any_name_will_do():
    Arena("m" * 1000, CAPACITY).close()
    Arena("modèle/…", CAPACITY).close()


def test_an_address_is_that_of_the_first_byte():
    data = bytes(range(10))
    assert address(memoryview(data)[3:]) == address(data) + 3


def test_the_last_that_came_back_is_lent_again_to_its_like(arena):
    first = arena.lend(SMALLEST, 100)
    first.release()
    again = arena.lend(SMALLEST, 100)
    assert again is first
    assert arena.lent == 2 * SMALLEST
    beside = arena.lend(SMALLEST, 100)
    assert beside.offset != again.offset
    beside.release()
    again.release()
    with pytest.raises(AssertionError, match="released more often"):
        again.release()
    assert arena.lent == 0


@pytest.mark.parametrize(("size", "lead"), [(SMALLEST - 1, 100), (SMALLEST, 101), (CAPACITY, 0)])
def test_another_size_or_lead_gets_a_lease_of_its_own(arena, size, lead):
    first = arena.lend(SMALLEST, 100)
    first.release()
    other = arena.lend(size, lead)
    assert other is not first
    assert len(other.view) == size
    assert (address(other.view) + lead) % ALIGNED == 0


def test_a_closed_arena_keeps_nothing_to_lend_again():
    arena = Arena("m", CAPACITY)
    first, second = arena.lend(SMALLEST), arena.lend(SMALLEST)
    first.release()
    arena.close()
    second.release()
    assert arena.lent == 0
    assert arena.lend(SMALLEST) is None


def test_what_rests_no_more_keeps_no_memory():
    """As the kernel counts it: pages of the anonymous file that are there."""
    arena = Arena("m")

    def taken() -> int:
        return os.fstat(arena.descriptor).st_blocks * 512

    leases = [arena.lend(2**24) for _ in range(6)]
    assert taken() == 0, "what is lent and not written to takes nothing"
    for lease in leases:
        lease.view[:] = bytes(2**24)
    assert taken() == 6 * 2**24
    for lease in leases:
        lease.release()
    assert taken() <= 2**24 + RESTING_BYTES, "one is kept to be lent again, and two rest"
    again = arena.lend(2**24)
    again.view[:] = b"x" * 2**24
    again.release()
    arena.close()
