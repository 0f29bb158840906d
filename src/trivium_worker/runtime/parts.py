"""Answers in parts, from whichever thread of user code: one at a time, no more than the receiver has room for.

Between `Item.send` and the writer. An item ends with its final part, and only once.
"""

import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any

from trivium_worker.runtime.faults import fault
from trivium_worker.wire import frames
from trivium_worker.wire.loans import Kept, RetainedBlocks
from trivium_worker.wire.values import END, Failure, Generated, Item, Outlet, Part, Raw
from trivium_worker.wire.window import Window
from trivium_worker.wire.writer import Writer

CANCELLED = Failure("The request was cancelled by its client.", "cancelled")


def _nothing() -> None:
    """Nobody waits: whoever keeps parts asks again."""


def _append(outcomes: "deque[Any]", outcome: Any) -> None:
    """Join a part with the one before, where both are of a kind that can be joined."""
    last = outcomes[-1] if outcomes else None
    if isinstance(last, Generated) and isinstance(outcome, Generated):
        outcomes[-1] = Generated([*last.pieces, *outcome.pieces])
    elif isinstance(last, Raw) and isinstance(outcome, Raw) and len(last.parts) == len(outcome.parts) == 1:
        part = last.parts[0]
        data = b"".join((part.data, outcome.parts[0].data))
        joined = Part(data, part.content_type, part.name, part.filename)
        outcomes[-1] = Raw([joined], last.properties, last.query, last.status, last.reason, last.path)
    else:
        outcomes.append(outcome)


def _credit(item: Item, begun: dict[int, float]) -> bytes:
    ended = monotonic()
    began = begun.pop(item.number, ended)
    return frames.frame(frames.CREDIT, frames.CREDIT_BODY.pack(item.number, item.rows, began, ended))


class Parts(Outlet):
    """One per worker. `items` are those in hand, by their numbers; `needed` sees to it that somebody reads the wire
    while user code waits for room.
    """

    def __init__(
        self, items: dict[int, Item], writer: Writer, loans: RetainedBlocks, needed: Callable[[], None]
    ) -> None:
        self._items = items
        self._writer = writer
        self._loans = loans
        self._needed = needed
        self._texts = frames.AnswerTexts()
        self._lock = threading.Lock()
        self.windows: dict[int, Window] = {}
        self._held: dict[int, tuple[Item, deque[Any]]] = {}
        self.begun: dict[int, float] | None = None
        """When user code got each item, where each has a credit of its own, which follows its final part."""

    def send(self, item: Item, outcome: Any, final: bool, parameters: dict[str, Any] | None = None) -> None:
        """One part; waits while the receiver has no room for it. Without effect where nobody wants it any more."""
        final = final or outcome is END or isinstance(outcome, Failure)
        if final or self._has_room(item):
            self._put(item, outcome, final, parameters)

    def offer(self, item: Item, outcome: Any, changed: Callable[[], Any]) -> bool:
        """Send one part that is not the last, at once. False while its receiver has no room for it; then `changed` is
        called once, by whichever thread, when that may be otherwise. A part that nobody wants any more is dropped.
        """
        number = item.number
        if number not in self._items or item.is_cancelled:
            return True
        window = self.windows.get(number) or self.windows.setdefault(number, Window())
        is_in = window.enter_now(changed)
        if is_in:
            self._put(item, outcome, False, None)
        return is_in is not None

    def keep(self, item: Item, outcome: Any) -> None:
        """Send one part that is not the last, at once, or keep it where its receiver has no room: see `release`. The
        main thread calls it.
        """
        number = item.number
        if number not in self._items or item.is_cancelled:
            return
        held = self._held.get(number)
        if held is None:
            if self.offer(item, outcome, _nothing):
                return
            self._held[number] = held = (item, deque())
        _append(held[1], outcome)

    def release(self) -> None:
        """Send what was kept and has room by now. The main thread calls it."""
        for item, outcomes in list(self._held.values()):
            while outcomes and self.offer(item, outcomes[0], _nothing):
                outcomes.popleft()
            if not outcomes:
                self._held.pop(item.number, None)

    @property
    def held(self) -> int:
        """Return how many items have parts that wait for room."""
        return len(self._held)

    def _put(self, item: Item, outcome: Any, final: bool, parameters: dict[str, Any] | None) -> None:
        with self._lock:
            if final:
                if self._items.pop(item.number, None) is None:
                    return  # it has ended: another thread was quicker
                outcome = self._with_held(item, outcome)
                self.close(item.number)
                if item.is_cancelled:
                    outcome = CANCELLED
            pieces: list[Any] = [b""]
            size = self._write(pieces, item.number, outcome, frames.FINAL if final else 0, parameters)
            pieces[0] = frames.HEAD.pack(size + 1, frames.PART)
            if not final and (window := self.windows.get(item.number)) is not None:
                window.wrote(size)
            kept: Kept = []
            if final:
                size += self._loans.ended((item.number,), pieces, 0, kept)
                if self.begun is not None:
                    pieces.append(_credit(item, self.begun))
                    size += len(pieces[-1])
            self._writer.write(pieces, size + 5)
            self._loans.written(kept)

    def _with_held(self, item: Item, outcome: Any) -> Any:
        """Write what was kept of an item that ends now, and return its end, joined with the last of that if it can
        be.
        """
        kept = self._held.pop(item.number, None)
        if kept is None or item.is_cancelled:
            return outcome
        outcomes = kept[1]
        _append(outcomes, outcome)
        while len(outcomes) > 1:
            pieces: list[Any] = [b""]
            size = self._write(pieces, item.number, outcomes.popleft(), 0, None)
            pieces[0] = frames.HEAD.pack(size + 1, frames.PART)
            self._writer.write(pieces, size + 5)
        return outcomes[0]

    def close(self, number: int) -> None:
        """Its item has ended: nobody waits any longer to send what nobody wants."""
        window = self.windows.pop(number, None)
        if window is not None:
            window.close()

    def cancel(self, number: int) -> None:
        """Its client wants no more; who waits for room need not."""
        window = self.windows.get(number)
        if window is not None:
            window.close()

    def taken(self, number: int, count: int) -> None:
        """The receiver has taken so many of its parts."""
        window = self.windows.get(number)
        if window is not None:
            window.taken(count)

    def _write(
        self, pieces: list[Any], number: int, outcome: Any, flags: int, parameters: dict[str, Any] | None
    ) -> int:
        """Add a part's pieces. What cannot be written is raised to whoever sends it, or is the end of the item."""
        try:
            return self._texts.write(pieces, number, outcome, flags, parameters)
        except Exception as error:
            if flags:
                return self._texts.write(pieces, number, fault(error), flags)
            if (window := self.windows.get(number)) is not None:
                window.leave()
            raise

    def _has_room(self, item: Item) -> bool:
        """Waits until a further part may be sent; False where nobody wants one any more."""
        number = item.number
        if number not in self._items or item.is_cancelled:
            return False
        window = self.windows.get(number)
        if window is None:
            window = self.windows.setdefault(number, Window())
        if window.enter(self._needed):
            if number in self._items and not item.is_cancelled:
                return True
            window.close()  # for whoever else waits for it
        if number not in self._items:
            self.windows.pop(number, None)
        return False
