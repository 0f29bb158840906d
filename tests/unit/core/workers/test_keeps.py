"""What is held on a worker's behalf: until the item ends, until it lets go, or until it is gone."""

import struct

import pytest

from trivium.core.workers.arena import SMALLEST, Arena
from trivium.core.workers.connection import RetainedLeases
from trivium.core.workers.wire import UNREADABLE
from trivium.types.buffers import Lease
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium_worker.wire.frames import FREED, KEPT, KEPT_BODY


@pytest.fixture
def arena():
    made = Arena("m", 16 * SMALLEST)
    yield made
    made.close()


def item(lease):
    return Infer(model="m", payload=Tensors((), lease))


def kept(keeps, items, number, block):
    keeps.take(KEPT, memoryview(KEPT_BODY.pack(number, block)), items)


def freed(keeps, *blocks):
    keeps.take(FREED, memoryview(struct.pack(f"<{len(blocks)}Q", *blocks)), {})


@pytest.mark.parametrize("is_copy", [False, True])
def test_a_block_that_is_kept_outlives_its_item(arena, is_copy):
    lease = arena.lend(1)
    keeps = RetainedLeases({5: lease} if is_copy else {})
    kept(keeps, {5: item(None if is_copy else lease)}, 5, 1)
    keeps.forget(5)
    if not is_copy:
        lease.release()  # the core's own hold
    assert arena.lent == SMALLEST
    freed(keeps, 1)
    assert arena.lent == 0
    assert not keeps.copies
    assert not keeps.kept


def test_several_are_freed_at_once_and_the_rest_with_the_worker(arena):
    leases = {number: arena.lend(1) for number in range(4)}
    keeps = RetainedLeases({3: arena.lend(1)})
    items = {number: item(lease) for number, lease in leases.items()}
    for number, lease in leases.items():
        kept(keeps, items, number, 10 + number)
        if number < 3:
            lease.release()
    assert arena.lent == 5 * SMALLEST
    freed(keeps, 12, 10)
    assert arena.lent == 3 * SMALLEST
    keeps.close()
    assert arena.lent == SMALLEST, "the core's own hold"
    leases[3].release()
    keeps.close()
    assert arena.lent == 0


def test_an_item_that_kept_nothing_gives_its_copy_back(arena):
    keeps = RetainedLeases({1: arena.lend(1), 2: arena.lend(1)})
    keeps.forget(1)
    keeps.forget(9)
    assert arena.lent == SMALLEST
    keeps.close()
    assert arena.lent == 0


def test_what_cannot_be_is_garbage(arena):
    lease = arena.lend(1)
    pooled = Lease(memoryview(bytearray(8)), lambda lease: None)
    keeps = RetainedLeases({})
    items = {1: item(lease), 2: item(pooled), 3: item(None)}
    kept(keeps, items, 1, 1)
    for number, block in ((1, 1), (2, 2), (3, 3), (9, 9)):
        with pytest.raises(UNREADABLE):
            kept(keeps, items, number, block)
    for body in (b"", b"1234567"):
        with pytest.raises(UNREADABLE):
            keeps.take(KEPT, memoryview(body), items)
    with pytest.raises(UNREADABLE):
        freed(keeps, 2)
    with pytest.raises(UNREADABLE):
        keeps.take(FREED, memoryview(b"1234567"), items)
    assert list(keeps.kept) == [1]
