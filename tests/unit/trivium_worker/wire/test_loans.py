"""Blocks of the arena: seen in place, and told of where they outlive the answer to the request that lies in them."""

import gc
import struct

import numpy as np
import pytest

from trivium_worker.wire import frames
from trivium_worker.wire.loans import RetainedBlocks
from trivium_worker.wire.values import Tensor

SIZE = 4096


class LoansHarness:
    """RetainedBlocks over an arena, and what they would send."""

    def __init__(self):
        self.arena = bytearray(4 * SIZE)
        self.loans = RetainedBlocks(memoryview(self.arena))

    def ended(self, *items):
        """What is told of items that end: (item, number) of each that somebody has still got."""
        pieces, kept = [b"first", b"answer"], []
        size = self.loans.ended(items, pieces, 1, kept)
        told = pieces[1:-1]
        assert pieces == [b"first", *told, b"answer"]
        assert size == sum(map(len, told))
        self.loans.written(kept)
        assert kept == []
        return sorted(frames.KEPT_BODY.unpack(body) for body in self.bodies(frames.KEPT, told))

    def freed(self):
        """The numbers that are told to be free."""
        (body,) = self.bodies(frames.FREED, [self.loans.take_freed()])
        return [number for (number,) in struct.iter_unpack("<Q", body)]

    def bodies(self, wanted, sent):
        for one in sent:
            ((kind, at, end),), used = frames.frames(one)
            assert (kind, used) == (wanted, len(one))
            yield one[at:end]


@pytest.fixture
def stage():
    return LoansHarness()


def test_data_is_seen_in_place_and_may_be_written(stage):
    stage.arena[SIZE : SIZE + 3] = b"abc"
    data = stage.loans.view(7, SIZE, 3)
    assert bytes(data) == b"abc"
    data[0] = ord("x")
    assert stage.arena[SIZE : SIZE + 4] == b"xbc\0"


def test_what_nobody_has_any_more_is_not_told(stage):
    for item in range(5):
        stage.loans.view(item, 0, SIZE)
    assert stage.ended(0, 1, 2, 3, 4) == []
    assert not stage.loans.out
    assert not stage.loans.freed


def array_of(data):
    return np.ndarray((len(data) // 4,), "<f4", data)


@pytest.mark.parametrize(
    "made",
    [
        lambda data: data,
        lambda data: data[5:9],
        lambda data: data[4:8].cast("f"),
        lambda data: Tensor("x", "FP32", (4,), data),
        array_of,
        lambda data: array_of(data)[7:9],
        lambda data: array_of(data).reshape(2, -1).T.view("<i4"),
        lambda data: memoryview(array_of(data)[3:]),
        lambda data: np.frombuffer(data, "u1"),
        lambda data: {"deep": [array_of(data)]},
    ],
)
def test_what_somebody_has_is_told_and_told_again_when_it_is_gone(stage, made):
    thing = made(stage.loans.view(7, SIZE, SIZE))
    assert stage.ended(7) == [(7, 1)]
    assert not stage.loans.freed
    del thing
    assert stage.freed() == [1]
    assert stage.freed() == []


def test_blocks_are_told_apart(stage):
    kept = {item: stage.loans.view(item, item * SIZE, SIZE) for item in range(3)}
    stage.loans.view(3, 3 * SIZE, SIZE)
    assert stage.ended(0, 3, 99) == [(0, 1)]
    assert sorted(stage.loans.out) == [1, 2], "these have not ended"
    assert stage.ended(2, 1) == [(1, 3), (2, 2)]
    del kept[2]
    del kept[0]
    assert stage.freed() == [2, 1]


def test_an_item_that_comes_again_has_another_number(stage):
    first = stage.loans.view(7, 0, SIZE)
    assert stage.ended(7) == [(7, 1)]
    second = stage.loans.view(7, SIZE, SIZE)
    assert stage.ended(7) == [(7, 2)]
    del first
    assert stage.freed() == [1]
    del second
    assert stage.freed() == [2]


def test_nothing_is_free_before_it_was_told_to_be_kept(stage):
    data = stage.loans.view(7, 0, SIZE)
    kept = []
    stage.loans.ended([7], [], 0, kept)
    del data
    assert not stage.loans.freed, "the server does not know yet"
    stage.loans.written(kept)
    assert stage.freed() == [1]


def test_a_cycle_frees_its_block_when_it_is_collected(stage):
    class Node:
        pass

    node = Node()
    node.self, node.data = node, stage.loans.view(7, 0, SIZE)
    del node
    assert stage.ended(7) == [(7, 1)]
    gc.collect()
    assert stage.freed() == [1]


def test_what_a_forked_process_may_have_is_never_given_back(stage):
    kept = stage.loans.view(1, 0, SIZE)
    assert stage.ended(1) == [(1, 1)]
    data = stage.loans.view(2, SIZE, SIZE)
    stage.loans.pin()
    del data
    assert stage.ended(2) == [(2, 2)]
    del kept
    assert not stage.loans.freed
    stage.loans.view(3, 2 * SIZE, SIZE)
    assert stage.ended(3) == [], "that came after the fork"
