"""FlowControl for parts: when they are due, and what happens to them while a receiver is full."""

from trivium.core.workers.connection import FlowControl
from trivium_worker.wire import frames
from trivium_worker.wire.window import BYTES


def told(receipts):
    """Item -> parts, of the frames that go out."""
    pieces = b"".join(map(bytes, receipts.write()))
    found, used = frames.frames(pieces)
    assert used == len(pieces)
    assert all(kind == frames.TAKEN for kind, _, _ in found)
    return dict(frames.TAKEN_BODY.unpack(pieces[at:end]) for _, at, end in found)


def test_one_frame_for_all_parts_of_an_item():
    receipts = FlowControl()
    for item in (1, 2, 1, 1):
        receipts.came(item, 1)
    assert told(receipts) == {1: 3, 2: 1}
    assert told(receipts) == {}


def test_what_is_held_is_told_when_it_is_resumed():
    receipts = FlowControl()
    receipts.hold(1)
    for item in (1, 1, 2):
        receipts.came(item, 1)
    assert told(receipts) == {2: 1}
    receipts.came(1, 1)
    receipts.hold(1)
    assert told(receipts) == {}
    receipts.resume(1)
    assert told(receipts) == {1: 3}
    receipts.resume(1)
    assert told(receipts) == {}


def test_each_item_is_stopped_by_itself():
    receipts = FlowControl()
    receipts.hold(1)
    for _ in range(frames.WINDOW):
        assert not receipts.has_stopped(1)
        receipts.came(1, 1)
        receipts.came(2, 1)
        receipts.write()
    assert receipts.has_stopped(1)
    assert not receipts.has_stopped(2)
    receipts.resume(1)
    assert not receipts.has_stopped(1)


def test_an_item_is_stopped_when_it_has_sent_all_that_it_may():
    receipts = FlowControl()
    receipts.hold(1)
    for sent in range(frames.WINDOW):
        assert not receipts.is_stopped, sent
        receipts.came(1, 1)
        receipts.write()
    assert receipts.is_stopped
    receipts.resume(1)
    assert not receipts.is_stopped


def test_what_has_ended_is_forgotten():
    receipts = FlowControl()
    receipts.hold(1)
    for _ in range(frames.WINDOW):
        receipts.came(1, 1)
    receipts.write()
    receipts.came(1, 1)
    receipts.forget(1)
    assert (receipts.is_stopped, receipts.held, told(receipts)) == (False, {}, {})


def test_an_item_is_stopped_when_it_has_sent_all_the_bytes_that_it_may():
    receipts = FlowControl()
    receipts.came(1, BYTES)
    assert not receipts.is_stopped  # its receiver has room
    receipts.hold(1)
    assert receipts.is_stopped
    assert told(receipts) == {}
    assert receipts.has_stopped(1)
    receipts.resume(1)
    assert not receipts.is_stopped
    assert told(receipts) == {1: 1}
    receipts.hold(1)
    receipts.came(1, BYTES - 1)
    assert not receipts.has_stopped(1)
    receipts.came(1, 1)
    assert receipts.has_stopped(1)
    receipts.forget(1)
    assert not receipts.has_stopped(1)
