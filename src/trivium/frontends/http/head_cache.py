"""The last request's head, byte for byte, so that a client which repeats it is not parsed again.

Clients of a model mostly send the same head over and over. The same bytes at the same place of the stream mean
the same head, and a protocol's `head` is pure: what was admitted once is admitted again. Saves about half
of what the front end costs per request. Decides nothing; whatever is in any way unusual goes to the parser.
"""

from trivium.frontends.http.exchange import Exchange
from trivium.frontends.limits import SMALL_BODY

_LONGEST = 2048  # bytes kept per connection
_PATIENCE = 16  # requests that are not learned behind a head that never came back
_BLANK_LINE = b"\r\n\r\n"


class HeadCache:
    """Of one connection. `scratch` is the buffer that requests are received into."""

    def __init__(self, scratch: memoryview) -> None:
        assert isinstance(scratch.obj, bytearray), "the scratch buffer is a bytearray"
        self._scratch = scratch
        self._bytes = scratch.obj  # compares in one go, which a memoryview does element by element
        self._head = b""
        self._size = 0  # of head and body together
        self._sample: Exchange | None = None
        self._is_large = False
        self._expected = scratch
        self._skips = 0

    def get(self, size: int, is_first: bool) -> Exchange | None:
        """The exchange of a request that begins in the first `size` bytes with the head kept, and whose body is
        whole in them, or large and begun; else None.

        The caller knows that the stream is at the beginning of a request. Only where none waits before it
        (`is_first`) is there room at once for the rest of a large body. ServeError where there is none at all.
        """
        sample = self._sample
        if sample is None:
            return None
        if self._is_large and is_first and size == len(self._head) and bytes(self._expected) == self._head:
            self._skips = 0
            return sample.repeated(b"")
        if not self._bytes.startswith(self._head):
            return None  # behind `size` there may be what came before, even the rest of this head
        if not (is_first and size >= len(self._head)) if self._is_large else size != self._size:
            return None
        self._skips = 0
        return sample.repeated(bytes(self._scratch[len(self._head) : size]))

    def expected(self) -> memoryview:
        """Where the next request belongs. Behind one with a large body no more of it is read at first than that
        one's head: if it is the same again, all of the body can be received in place.
        """
        return self._expected

    def put(self, size: int, came: int, exchange: Exchange) -> None:
        """The first `size` bytes were parsed as just this request, with `came` bytes of its body."""
        if self._skips:
            self._skips -= 1
            return
        length = exchange.head.content_length
        if length is None or not _is_repeatable(exchange) or size - came > _LONGEST:
            return
        if came != length <= SMALL_BODY:
            return
        head = bytes(self._scratch[: size - came])
        nothing_around_it = head.find(_BLANK_LINE) == len(head) - len(_BLANK_LINE)
        if nothing_around_it:
            self._head, self._size, self._sample = head, len(head) + length, exchange.clone()
            self._is_large = length > SMALL_BODY
            self._expected = self._scratch[: len(head)] if self._is_large else self._scratch
            self._skips = _PATIENCE

    def forget(self) -> None:
        """The connection is over."""
        self._sample = None


def _is_repeatable(exchange: Exchange) -> bool:
    """Would the same head be admitted again, whatever the state of the server?"""
    return (
        exchange.refusal is None
        and exchange.keeps_alive
        and exchange.is_http11
        and not exchange.expects_continue
        and b"upgrade" not in exchange.head.headers
        and b"content-encoding" not in exchange.head.headers  # how long decoding takes is asked each time
    )
