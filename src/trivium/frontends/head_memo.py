"""The last request's head, byte for byte, so that a client which repeats it is not parsed again.

Clients of a model mostly send the same head over and over. The same bytes at the same place of the stream mean
the same head, and a protocol's `head` is pure: what was admitted once is admitted again. Saves about half
of what the front end costs per request. Decides nothing; whatever is in any way unusual goes to the parser.
"""

from trivium.frontends.exchange import Exchange

_LONGEST = 2048  # bytes kept per connection
_PATIENCE = 16  # requests that are not learned behind a head that never came back
_BLANK_LINE = b"\r\n\r\n"


class HeadMemo:
    """Of one connection. `scratch` is the buffer that requests are received into."""

    def __init__(self, scratch: memoryview) -> None:
        assert isinstance(scratch.obj, bytearray), "the scratch buffer is a bytearray"
        self._scratch = scratch
        self._bytes = scratch.obj  # compares in one go, which a memoryview does element by element
        self._head = b""
        self._size = -1  # of head and body together
        self._sample: Exchange | None = None
        self._skips = 0

    def recall(self, size: int) -> Exchange | None:
        """The exchange of a request that is whole in the first `size` bytes and has the head kept; else None.

        The caller knows that the stream is at the beginning of a request.
        """
        if size != self._size or not self._bytes.startswith(self._head) or self._sample is None:
            return None
        self._skips = 0
        return self._sample.repeated(bytes(self._scratch[len(self._head) : size]))

    def learn(self, size: int, exchange: Exchange) -> None:
        """The first `size` bytes were parsed as just this request, which was then complete."""
        if self._skips:
            self._skips -= 1
            return
        length = exchange.head.content_length
        if length is None or not exchange.is_repeatable() or size - length > _LONGEST:
            return
        head = bytes(self._scratch[: size - length])
        nothing_around_it = head.find(_BLANK_LINE) == len(head) - len(_BLANK_LINE)
        if nothing_around_it:
            self._head, self._size, self._sample = head, size, exchange.repeated(b"")
            self._skips = _PATIENCE

    def forget(self) -> None:
        """The connection is over."""
        self._size = -1
        self._sample = None
