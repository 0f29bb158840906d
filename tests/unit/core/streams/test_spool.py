"""Where the parts of an answer lie until they are taken: order, bytes and files."""

import random

import pytest

from trivium.core.streams.spool import PartSpool, StreamStore
from trivium.types.core_config import UnreadLimits
from trivium.types.payload import Raw, RawPart
from trivium.types.running import Part


class Threads:
    """An offload whose work is done when the test says so."""

    def __init__(self):
        self.waiting = []

    def __call__(self, work, done):
        self.waiting.append((work, done))

    def turn(self):
        work, done = self.waiting.pop(0)
        done(work())


class Holder:
    def __init__(self):
        self.is_cut = False

    def give_up(self):
        self.is_cut = True


def part(number, size=1000):
    return Part(1, Raw((RawPart(number.to_bytes(4) + bytes(size)),)), None, False)


def number_of(found):
    return int.from_bytes(bytes(found.payload.parts[0].data[:4]))


def make(tmp_path, memory=40_000, disk=10**7):
    threads = Threads()
    store = StreamStore(UnreadLimits(memory, disk), tmp_path, threads)
    changes = []
    return PartSpool(1, store, Holder(), lambda: changes.append(1)), store, threads


@pytest.mark.parametrize("seed", range(20))
def test_parts_come_out_in_order_whenever_files_are_written_and_read(tmp_path, seed):
    dice = random.Random(seed)
    spool, store, threads = make(tmp_path)
    given, taken = 0, []
    while len(taken) < 300:
        match dice.choice("gggtw"):
            case "g" if given < 300:
                spool.append(part(given))
                given += 1
            case "t":
                found = spool.pop()
                taken += [] if found is None else [number_of(found)]
            case "w" if threads.waiting:
                threads.turn()
        assert store.unread.held_bytes == spool.memory + spool.filed
        assert store.memory == spool.memory
    assert taken == list(range(300))
    assert spool.is_empty
    while threads.waiting:
        threads.turn()
    assert not list(tmp_path.iterdir())


def test_what_is_in_memory_stays_within_its_bound_once_it_is_written(tmp_path):
    spool, store, threads = make(tmp_path)
    for number in range(200):
        spool.append(part(number))
        if threads.waiting:
            threads.turn()
        assert spool.memory <= store.bounds.memory + 2000
    assert spool.filed > 150_000


@pytest.mark.parametrize("turns", [0, 1])
def test_closed_it_leaves_nothing(tmp_path, turns):
    spool, store, threads = make(tmp_path)
    for number in range(100):
        spool.append(part(number))
        for _ in range(turns if threads.waiting else 0):
            threads.turn()
    spool.close()
    while threads.waiting:
        threads.turn()
    assert (store.memory, store.unread.held_bytes, list(tmp_path.iterdir())) == (0, 0, [])


def test_without_room_on_the_disk_what_was_to_be_written_stays_in_memory(tmp_path):
    spool, _, threads = make(tmp_path / "nowhere")
    for number in range(30):
        spool.append(part(number))
    threads.turn()
    assert not spool.has_files
    assert [number_of(spool.pop()) for _ in range(30)] == list(range(30))


def test_a_file_that_is_gone_tears_the_answer(tmp_path):
    spool, _, threads = make(tmp_path)
    for number in range(30):
        spool.append(part(number))
    threads.turn()
    for path in tmp_path.iterdir():
        path.unlink()
    assert spool.pop() is None
    threads.turn()
    assert spool.is_torn
