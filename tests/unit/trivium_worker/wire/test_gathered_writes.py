"""All that one thread writes between two calls leaves at once, and parts that have no room wait and are joined."""

import threading
from typing import Any

from trivium_worker.runtime.parts import Parts
from trivium_worker.wire import frames
from trivium_worker.wire.loans import RetainedBlocks
from trivium_worker.wire.values import END, Failure, Generated, Item, Part, Raw
from trivium_worker.wire.writer import Writer


class FakeWire:
    """A socket that keeps each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def sendall(self, data: bytes) -> None:
        self.writes.append(bytes(data))

    def sendmsg(self, pieces: list[memoryview]) -> int:
        self.writes.append(b"".join(pieces))
        return len(self.writes[-1])


class PartsStage:
    """One item and what is sent of it."""

    def __init__(self) -> None:
        self.wire = FakeWire()
        self.writer = Writer(self.wire)  # type: ignore[arg-type]
        self.items: dict[int, Item] = {}
        loans = RetainedBlocks(memoryview(bytearray(8)))
        self.parts = Parts(self.items, self.writer, loans, lambda: None)

    def item(self, number: int = 1) -> Item:
        self.items[number] = item = Item(number, "", 1, [], {}, self.parts)
        return item

    def sent(self) -> list[Any]:
        """What left, read as the server reads it: payloads, or what else an answer is."""
        came = b"".join(self.wire.writes)
        found, used = frames.frames(came)
        assert used == len(came)
        outcomes: list[Any] = []
        for kind, at, end in found:
            assert kind == frames.PART
            _, what, text_size, _ = frames.ANSWER.unpack_from(came, at)
            at += frames.ANSWER.size
            told = frames.read(came[at : at + text_size]) if text_size else {}
            data = memoryview(came)[at + text_size : end]
            payload = frames.read_payload(told, data) if what & 3 == frames.PAYLOAD else told
            outcomes.append(payload)
        return outcomes


def generated(*texts: str) -> Generated:
    return Generated([b'"%b"' % text.encode() for text in texts])


def whole(outcome: Any) -> bytes:
    return b"".join(map(bytes, outcome.pieces))


def test_what_one_thread_writes_leaves_at_once() -> None:
    stage = PartsStage()
    items = [stage.item(number) for number in range(5)]
    stage.writer.gather()
    for item in items:
        item.offer(generated("a"))
    other = threading.Thread(target=stage.writer.send, args=(b"of another thread",))
    other.start()
    other.join()
    assert stage.wire.writes == [b"of another thread"]
    stage.wire.writes.clear()
    stage.writer.flush()
    assert len(stage.wire.writes) == 1
    assert [whole(outcome) for outcome in stage.sent()] == [b'["a"]'] * 5
    stage.writer.flush()
    assert len(stage.wire.writes) == 1


def test_beyond_the_window_parts_are_joined_and_leave_with_the_next_receipt() -> None:
    stage = PartsStage()
    item = stage.item()
    for number in range(frames.WINDOW + 3):
        item.offer(generated(str(number)))
    assert (len(stage.sent()), stage.parts.held) == (frames.WINDOW, 1)
    stage.parts.release()
    assert len(stage.sent()) == frames.WINDOW
    stage.parts.taken(1, 2)
    stage.parts.release()
    assert whole(stage.sent()[-1]) == b'["16","17","18"]'
    assert stage.parts.held == 0


def test_the_final_part_takes_along_what_had_no_room() -> None:
    stage = PartsStage()
    item = stage.item()
    for number in range(frames.WINDOW + 2):
        item.offer(generated(str(number)))
    item.send(generated("end"), final=True)
    assert whole(stage.sent()[-1]) == b'["16","17","end"]'
    assert not stage.items
    item.offer(generated("late"))
    assert len(stage.sent()) == frames.WINDOW + 1


def test_what_cannot_be_joined_leaves_before_the_end() -> None:
    stage = PartsStage()
    item = stage.item()
    for _ in range(frames.WINDOW):
        item.offer(Raw([Part(b".")]))
    item.offer(Raw([Part(b"a", "text/plain")]))
    item.offer(Raw([Part(b"b")]))
    item.send(Failure("why"), final=True)
    *_, joined, failure = stage.sent()
    assert (bytes(joined.parts[0].data), joined.parts[0].content_type) == (b"ab", "text/plain")
    assert failure["message"] == "why"


def test_an_end_without_anything_more() -> None:
    stage = PartsStage()
    item = stage.item()
    for number in range(frames.WINDOW + 1):
        item.offer(generated(str(number)))
    item.send(END, final=True)
    assert whole(stage.sent()[-2]) == b'["16"]'
    assert stage.sent()[-1] == {}


def test_of_a_cancelled_item_nothing_is_kept() -> None:
    stage = PartsStage()
    item = stage.item()
    for number in range(frames.WINDOW + 1):
        item.offer(generated(str(number)))
    item.is_cancelled = True
    stage.parts.cancel(1)
    item.offer(generated("more"))
    stage.parts.release()
    assert stage.parts.held == 0
    item.send(generated("end"), final=True)
    assert stage.sent()[-1]["code"] == "cancelled"
