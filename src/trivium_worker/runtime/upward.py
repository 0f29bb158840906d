"""Sends what user code asks of the server: other models, loads, log lines, custom metrics - as frames.

A call waits in the thread that makes it, for the parts of its answer, which the reading thread puts into its
box. A call ends when its final part has come, when it is closed, or when the item that made it is cancelled.
"""

import contextlib
import itertools
import queue
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from trivium_worker.runtime.adapter import Answer, Call, Host
from trivium_worker.wire import frames
from trivium_worker.wire.values import Failure, Generate, Generated, Item, Listed, anew
from trivium_worker.wire.writer import Writer

ABANDONED = Failure("The request that made this call was cancelled.", "cancelled")

_ALWAYS, _DEFAULTS = ("model", "version", "outputs"), Call._field_defaults

RECEIPT = frames.WINDOW // 2
"""Parts that are read before the server is told so."""


class _Box:
    """The box in which the parts of one call's answer arrive."""

    def __init__(self, parent: int) -> None:
        self.parent = parent
        self.parts: queue.SimpleQueue[Any] = queue.SimpleQueue()


class WireHost(Host):
    """Implements `Host` over the wire. `replied` and `cancel_calls` are called by the reading thread."""

    def __init__(
        self, writer: Writer, texts: frames.Texts, needed: Callable[[], None], wake: Callable[[], None]
    ) -> None:
        """`needed` is called before a thread waits for what the server says; `wake` see `Host.wake`."""
        self._wake = wake
        self._needed = needed
        self._writer = writer
        self._texts = texts
        self._numbers = itertools.count(1)
        self._boxes: dict[int, _Box] = {}
        self._dropped: deque[int] = deque()

    def call(self, parent: Item | None, call: Call) -> "Iterator[Answer]":
        """See `Host.call`. The request leaves at once, not with the first `next`."""
        fields = call._asdict()
        name = fields.pop("request_id").encode()
        described, blobs = frames.payload_text(fields.pop("payload"))
        owner = parent.number if parent is not None else 0
        told = {key: value for key, value in fields.items() if key in _ALWAYS or value != _DEFAULTS[key]}
        about = frames.text({**told, **described, "parent": owner})
        size = sum(map(len, blobs))
        number, box = self._open(owner)
        if parent is not None and parent.is_cancelled:
            self.close(number)
            raise anew(ABANDONED)
        fixed = frames.ITEM.pack(number, 1, len(name), len(about), frames.INLINE, 0, size)
        length = 1 + len(fixed) + len(name) + len(about) + size
        self._writer.send(frames.HEAD.pack(length, frames.CALL), fixed, name, about, *blobs)
        return _Answers(self, number, box)

    def ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        """See `Host.ask`."""
        number, box = self._open(0)
        try:
            told = {**fields, "call": number, "verb": verb}
            self._writer.send(frames.frame(frames.ASK, frames.text(told)))
            answer = self._await(box)
            if isinstance(answer, Failure):
                raise anew(answer)
            return dict(answer.parameters)
        finally:
            self.close(number)

    def log(self, level: str, message: str) -> None:
        """See `Host.log`."""
        self._writer.send(frames.frame(frames.LOG, frames.text({"level": level, "message": message})))

    def measure(self, metric: dict[str, Any]) -> None:
        """See `Host.measure`."""
        self._writer.send(frames.frame(frames.MEASURE, frames.text(metric)))

    def wake(self) -> None:
        """See `Host.wake`."""
        self._wake()

    # -- from the reading thread ---------------------------------------------------------------------------

    def replied(self, body: memoryview) -> None:
        """One part of an answer has come."""
        number, what, text_size, _ = frames.ANSWER.unpack_from(body, 0)
        box = self._boxes.get(number)
        if box is None:
            return  # closed meanwhile
        at = frames.ANSWER.size
        told = self._texts.read(bytes(body[at : at + text_size])) if text_size else {}
        data = body[at + text_size :]
        kind, final = what & 3, bool(what & frames.FINAL)
        if kind == frames.FAILURE:
            box.parts.put(Failure(told["message"], told["code"], told["status"]))
            return
        payload = frames.read_payload(told, data) if kind == frames.PAYLOAD else None
        assert not isinstance(payload, (Listed, Generate, Generated)), "an answer is tensors or a body"
        box.parts.put(Answer(payload, final, dict(told.get("parameters", {}))))

    def open_calls(self) -> list[int]:
        """List the calls whose answers have not ended, by number."""
        return sorted(self._boxes)

    def cancel_calls(self, parent: int) -> None:
        """The item that made these calls is cancelled."""
        for box in list(self._boxes.values()):
            if box.parent == parent:
                box.parts.put(ABANDONED)

    def _open(self, parent: int) -> Any:
        with contextlib.suppress(IndexError):
            while self._dropped:
                self.hang_up(self._dropped.popleft())
        number, box = next(self._numbers), _Box(parent)
        self._boxes[number] = box
        return number, box

    def _await(self, box: _Box) -> Any:
        self._needed()
        return box.parts.get()

    # -- the end of a call ---------------------------------------------------------------------------------

    def close(self, number: int) -> None:
        """Nothing is wanted of it any more."""
        self._boxes.pop(number, None)

    def hang_up(self, number: int) -> None:
        """Tell the server so."""
        self._writer.send(frames.frame(frames.HANG_UP, frames.NUMBER.pack(number)))

    def heard(self, number: int, count: int) -> None:
        """Tell the server that so many more parts have been read: who makes them waits while too many have not."""
        self._writer.send(frames.frame(frames.HEARD, frames.TAKEN_BODY.pack(number, count)))

    def drop(self, number: int) -> None:
        """Both, the second one with the next call: a destructor may run while this very thread writes a frame."""
        self._boxes.pop(number, None)
        self._dropped.append(number)


class _Answers:
    """The parts of one call's answer, as they come. Closing it before the last one cancels the call, and so does
    letting go of it.
    """

    def __init__(self, host: WireHost, number: int, box: _Box) -> None:
        self._host = host
        self._number = number
        self._box = box
        self._is_over = False
        self._unheard = 0  # parts that have been read, and the server not told

    def __iter__(self) -> "_Answers":
        return self

    def __next__(self) -> Answer:
        if self._is_over:
            raise StopIteration
        answer = self._host._await(self._box)
        if isinstance(answer, Answer):
            if answer.final:
                self._end()
            else:
                self._unheard += 1
                if self._unheard == RECEIPT:
                    self._host.heard(self._number, RECEIPT)
                    self._unheard = 0
            return answer
        if answer is ABANDONED:
            self.close()
        else:
            self._end()
        raise anew(answer)

    def close(self) -> None:
        """Nobody wants the rest."""
        if not self._is_over:
            self._end()
            self._host.hang_up(self._number)

    def __del__(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._host.drop(self._number)

    def _end(self) -> None:
        self._is_over = True
        self._host.close(self._number)
