"""Counts the answers of a protocol over HTTP by the first digit of their status.

In use where a server shows such counts, and nowhere else.
"""

from trivium.types.errors import ServeError
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.operations import Operation, ResponsePart
from trivium.types.wire import Body, CostlyAnswer, Head, HttpAnswer, Target, costly


class CountedProtocol:
    """Implements `WireProtocol` by another one, whose answers are counted in a list of ten. A stream counts once. Two
    threads may count at once where long answers are written: one of them may get lost then.
    """

    def __init__(self, protocol: WireProtocol, counts: list[int]) -> None:
        self._protocol = protocol
        self._counts = counts
        self.head = protocol.head
        self.is_costly = protocol.is_costly

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """See `WireProtocol`."""
        operation, encoder = self._protocol.decode(head, target, body)
        return operation, CountedEncoder(encoder, self._counts)

    def refuse(self, error: ServeError) -> HttpAnswer:
        """See `WireProtocol`."""
        answer = self._protocol.refuse(error)
        self._counts[answer.status // 100] += 1
        return answer


class CountedEncoder:
    """Implements `Encoder` by another one."""

    __slots__ = ("_counts", "_encoder", "_is_counted")

    def __init__(self, encoder: Encoder, counts: list[int]) -> None:
        self._encoder = encoder
        self._counts = counts
        self._is_counted = False

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """See `Encoder`."""
        answer = self._encoder.encode(part)
        if self._is_counted:
            return answer
        if type(answer) is CostlyAnswer:
            return costly(lambda: self._noted(answer.write()))
        return self._noted(answer)

    def _noted(self, answer: HttpAnswer) -> HttpAnswer:
        if answer.status and not self._is_counted:
            self._is_counted = True
            self._counts[answer.status // 100] += 1
        return answer
