"""Lent buffers: exact sizes, never one lent twice, and a bound on what is kept."""

from mmap import PAGESIZE

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.core.buffer_pool import SMALLEST, BufferPool
from trivium.types.buffers import Lease


def test_a_lease_gives_back_at_the_last_release_and_only_then():
    back = []
    lease = Lease(memoryview(bytearray(3)), back.append)
    lease.hold()
    lease.release()
    assert back == []
    lease.release()
    assert back == [lease]


def test_a_lease_that_was_given_back_is_neither_held_nor_released_again():
    lease = Lease(memoryview(bytearray(3)), lambda lease: None)
    lease.release()
    with pytest.raises(AssertionError):
        lease.release()
    with pytest.raises(AssertionError):
        lease.hold()


@pytest.mark.parametrize(
    ("size", "capacity"),
    [
        (0, SMALLEST),
        (1, SMALLEST),
        (SMALLEST, SMALLEST),
        (SMALLEST + 1, SMALLEST + PAGESIZE),
        (2 * SMALLEST, 2 * SMALLEST),
        (2**28 + 1, 2**28 + PAGESIZE),
    ],
)
def test_a_view_has_the_size_asked_for_and_its_buffer_whole_pages(size, capacity):
    view = BufferPool(2**28).lend(size).view
    assert (len(view), len(view.obj), view.readonly) == (size, capacity, False)


def test_a_buffer_that_came_back_is_lent_again():
    pool = BufferPool(2**28)
    first = pool.lend(SMALLEST - 5)
    buffer = first.view.obj
    first.release()
    assert pool.lend(9).view.obj is buffer
    assert pool.lend(9).view.obj is not buffer
    assert pool.lent == 2


def test_no_more_is_kept_than_there_is_room_for():
    pool = BufferPool(kept_bytes=3 * SMALLEST)
    leases = [pool.lend(2 * SMALLEST), pool.lend(2 * SMALLEST), pool.lend(SMALLEST)]
    buffers = [lease.view.obj for lease in leases]
    for lease in leases:
        lease.release()
    again = [pool.lend(2 * SMALLEST).view.obj, pool.lend(2 * SMALLEST).view.obj, pool.lend(SMALLEST).view.obj]
    assert again[0] in buffers[:2]
    assert again[1] not in buffers
    assert again[2] is buffers[2]


def test_what_nobody_has_asked_for_longest_is_freed_first():
    pool = BufferPool(kept_bytes=3 * SMALLEST)
    old, new = pool.lend(SMALLEST), pool.lend(3 * SMALLEST)
    buffer = new.view.obj
    old.release()
    new.release()
    assert pool.idle_bytes == 3 * SMALLEST
    assert pool.lend(3 * SMALLEST).view.obj is buffer


def test_a_declared_size_takes_no_memory_until_bytes_come():
    """As the kernel counts it: the pages of 1 GiB are there when they are written to, and not before."""
    process = psutil.Process()
    before = process.memory_info().rss
    lease = BufferPool(2**28).lend(2**30)
    assert process.memory_info().rss - before < 2**24
    lease.view[2**29] = 1


def test_room_comes_back_with_a_buffer_that_is_lent_again():
    pool = BufferPool(kept_bytes=SMALLEST)
    for _ in range(3):
        lease = pool.lend(1)
        buffer = lease.view.obj
        lease.release()
        again = pool.lend(1)
        assert again.view.obj is buffer
        again.release()


@settings(max_examples=examples(100))
@given(st.lists(st.one_of(st.integers(0, 5 * SMALLEST), st.just(-1)), max_size=30), st.integers(0, 4))
def test_nothing_is_lent_twice_and_what_is_kept_is_bounded(steps, room):
    pool = BufferPool(kept_bytes=room * SMALLEST)
    out = []
    for size in steps:
        if size >= 0:
            out.append(pool.lend(size))
        elif out:
            out.pop(0).release()
        assert len({id(lease.view.obj) for lease in out}) == len(out) == pool.lent
        assert pool.idle_bytes <= room * SMALLEST
