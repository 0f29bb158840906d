"""Flow control, who may send how much: the peer's windows, of the connection and of each stream, and the order of
their use.

Source: RFC 9113, sections 5.2 and 6.9. Streams that have something to send take turns of one frame. Pure: makes lists
of bytes; knows no transport and nothing of gRPC.
"""

from collections import deque
from collections.abc import Iterable

from trivium.frontends.h2.frames import (
    DATA,
    DEFAULT_WINDOW,
    FLOW_CONTROL_ERROR,
    LEAST_FRAME_SIZE,
    MOST_WINDOW,
    ConnectionFault,
    StreamFault,
    head,
)

Bytes = bytes | bytearray | memoryview
_MOST_TURN = 64 * 1024
"""Bytes of a turn, however large the frames are that the peer takes."""


class Sender:
    """Holds what one stream has yet to send: `pieces` of DATA, and behind them `tail`, a frame that ends the stream
    and needs no window. `sent` and `unsent` are bytes of DATA. `on_sent` is called when all pieces have been sent.
    """

    __slots__ = ("is_ready", "number", "pieces", "sent", "tail", "unsent", "window")

    def __init__(self, number: int, window: int) -> None:
        self.number = number
        self.window = window
        self.pieces: deque[memoryview] = deque()
        self.unsent = 0
        self.sent = 0
        self.tail = b""
        self.is_ready = False

    def on_sent(self) -> None:
        """Nothing is unsent any more; with a tail, that has been sent, too."""


class SendFlow:
    """The sending side of one connection. `window` and a sender's `window` may be negative, never exceeded."""

    __slots__ = ("_ready", "frame_size", "initial", "unsent", "window")

    def __init__(self) -> None:
        self.window = DEFAULT_WINDOW
        self.initial = DEFAULT_WINDOW
        self.frame_size = LEAST_FRAME_SIZE
        self.unsent = 0
        self._ready: deque[Sender] = deque()  # they have pieces and, when last looked at, a window

    def put(self, sender: Sender, *pieces: Bytes) -> None:
        """Queue it to be sent in its turn, behind what this stream has unsent. The bytes are not copied."""
        for piece in pieces:
            if len(piece):
                sender.pieces.append(memoryview(piece))
                sender.unsent += len(piece)
                self.unsent += len(piece)
        self._make_ready(sender)

    def end(self, sender: Sender, tail: bytes) -> bool:
        """End the stream by `tail` behind what is unsent. True if nothing is, and it is the caller's to send."""
        if sender.unsent:
            sender.tail = tail
            return False
        return True

    def drop(self, sender: Sender) -> None:
        """It sends nothing more."""
        self.unsent -= sender.unsent
        sender.unsent = 0
        sender.pieces.clear()
        sender.tail = b""

    def send(self, out: list[Bytes], most: int) -> int:
        """Append to `out` what may be sent now, until `most` bytes of DATA are together; how many frames that are."""
        turns = 0
        while self._ready and most > 0:
            sender = self._ready.popleft()
            size = min(self.frame_size, _MOST_TURN, self.window, sender.window, sender.unsent)
            if size <= 0:
                if sender.unsent and sender.window > 0:  # the connection's window it is
                    self._ready.appendleft(sender)
                    break
                sender.is_ready = False
                continue
            self._turn(sender, size, out)
            most -= size
            turns += 1
        return turns

    def _turn(self, sender: Sender, size: int, out: list[Bytes]) -> None:
        out.append(head(size, DATA, 0, sender.number))
        self.window -= size
        self.unsent -= size
        sender.window -= size
        sender.unsent -= size
        sender.sent += size
        pieces = sender.pieces
        while size:
            piece = pieces[0]
            if len(piece) <= size:
                out.append(pieces.popleft())
                size -= len(piece)
            else:
                out.append(piece[:size])
                pieces[0] = piece[size:]
                size = 0
        if sender.unsent:
            self._ready.append(sender)
            return
        sender.is_ready = False
        if sender.tail:
            out.append(sender.tail)
        sender.on_sent()

    def grow(self, increment: int) -> None:
        """The peer takes so much more on the connection."""
        self.window += increment
        if self.window > MOST_WINDOW:
            raise ConnectionFault(FLOW_CONTROL_ERROR, f"The connection's window exceeds {MOST_WINDOW}.")

    def grow_stream(self, sender: Sender, increment: int) -> None:
        """The peer takes so much more on a stream."""
        sender.window += increment
        if sender.window > MOST_WINDOW:
            raise StreamFault(
                sender.number, FLOW_CONTROL_ERROR, f"The stream's window exceeds {MOST_WINDOW}."
            )
        self._make_ready(sender)

    def set_initial(self, size: int, senders: Iterable[Sender]) -> None:
        """The peer's INITIAL_WINDOW_SIZE, which moves the windows of open streams, too (RFC 9113 6.9.2)."""
        if size > MOST_WINDOW:
            raise ConnectionFault(FLOW_CONTROL_ERROR, f"An initial window of {size} exceeds {MOST_WINDOW}.")
        difference = size - self.initial
        self.initial = size
        for sender in senders:
            sender.window += difference
            if sender.window > MOST_WINDOW:
                raise ConnectionFault(FLOW_CONTROL_ERROR, f"A stream's window exceeds {MOST_WINDOW}.")
            self._make_ready(sender)

    def _make_ready(self, sender: Sender) -> None:
        if sender.unsent and sender.window > 0 and not sender.is_ready:
            sender.is_ready = True
            self._ready.append(sender)
