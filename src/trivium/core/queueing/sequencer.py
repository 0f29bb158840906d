"""Answers that leave in the order in which their requests came, whichever instance is done first.

A request joins the line when it is queued; what it is answered waits until it is in front. One that nobody waits for
any more leaves the line and holds up nobody. It knows neither models nor wires.
"""

import logging
from collections import deque

from trivium.types.interfaces import Sink
from trivium.types.operations import ResponsePart
from trivium.types.running import ItemId

log = logging.getLogger(__name__)


class ResponseSlot:
    """A receiver in the line: a sink that keeps what comes before its turn."""

    __slots__ = ("_line", "has_left", "is_over", "kept", "sink")

    def __init__(self, line: "ResponseSequencer", sink: Sink) -> None:
        self._line = line
        self.sink = sink
        self.kept: deque[ResponsePart] = deque()
        self.is_over = False
        self.has_left = False

    def __call__(self, part: ResponsePart) -> None:
        """Give it, or keep it. A receiver that fails hurts nobody behind it."""
        if self.has_left:
            self.sink(part)
            return
        self.kept.append(part)
        self.is_over = part.final
        self._line.advance()


class ResponseSequencer:
    """Keeps the answers of one model version in order. Used on the loop only."""

    def __init__(self) -> None:
        self._places: dict[ItemId, ResponseSlot] = {}  # in the order of arrival
        self._is_advancing = False

    def join(self, number: ItemId, sink: Sink) -> ResponseSlot:
        """The sink for a request that is being queued; it is behind all that came before."""
        place = self._places[number] = ResponseSlot(self, sink)
        return place

    def leave(self, number: ItemId) -> None:
        """Its receiver hears at once from now on, and nobody waits for it."""
        place = self._places.pop(number, None)
        if place is not None:
            place.has_left = True
            self.advance()

    def advance(self) -> None:
        """Give all that need not wait. A receiver may submit, answer or leave meanwhile."""
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            while self._places:
                number, first = next(iter(self._places.items()))
                if first.kept:
                    _give(first.sink, first.kept.popleft())
                elif first.is_over:
                    self._places.pop(number, None)
                else:
                    return
        finally:
            self._is_advancing = False


def _give(sink: Sink, part: ResponsePart) -> None:
    try:
        sink(part)
    except Exception:
        log.exception("the receiver of an answer that had waited for its turn failed")
