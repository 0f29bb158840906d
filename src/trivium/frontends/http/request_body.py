"""The body of one request, from the first piece to the last: in one bytes object, or in place in a lease.

Decides whether there is room for it. Owns the lease and the reserved bytes until `release`. Small declared
bodies are not counted: they are bounded by the number of connections.
"""

from msgspec import Struct

from trivium.frontends.http.state import HttpState
from trivium.frontends.limits import SMALL_BODY
from trivium.frontends.refusals import HttpRefusal
from trivium.types import reasons
from trivium.types.buffers import Lease
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code
from trivium.types.wire import Body, Target

SPARE = 1
"""Bytes behind a large body that may be received with it: whoever asks for more than there is need not ask again to
know that there is no more.
"""


class RequestBody(Struct, eq=False):
    """Of a target that takes a body, made by `take_in`. `size` is what the head declares, None for chunks. A `Struct`,
    as is an `Exchange`.
    """

    _site: HttpState
    _target: Target
    _size: int | None
    _reserved: int = 0
    lease: Lease | None = None
    _collected: bytes | bytearray = b""

    def add(self, piece: bytes) -> None:
        """Take a piece in. Raises ServeError as above when chunks have grown too far."""
        if self._size is None:
            self._grow(len(piece))
        if not self._collected:
            self._collected = piece  # mostly the only one
        elif isinstance(self._collected, bytearray):
            self._collected += piece
        else:
            self._collected = bytearray(self._collected) + piece

    def _grow(self, more: int) -> None:
        limit = self._site.limits.body_bytes
        if self._reserved + more > limit:
            raise _too_large(f"is more than {limit} bytes", limit)
        self._site.reserve(more)
        self._reserved += more

    @property
    def came(self) -> int:
        """Bytes collected so far."""
        return len(self._collected)

    def borrow(self) -> memoryview | None:
        """Where the rest of a large body belongs, and `SPARE` bytes; None for one that is not worth a lease. What has
        come has been moved there. Raises the ServeError of `lend`.
        """
        size = self._size
        if size is None or size <= SMALL_BODY:
            return None
        size += SPARE
        self.lease = lease = self._site.lend(self._target, size)
        assert len(lease.view) >= size, "a lease is shorter than was asked for"
        came = len(self._collected)
        if came:
            lease.view[:came] = self._collected
            self._collected = b""
        elif len(lease.view) == size:
            return lease.view
        return lease.view[came:size]

    def body(self) -> Body:
        """All of it."""
        if self.lease is not None:
            return Body(self.lease.view[: self._size], self.lease)
        collected = self._collected
        return Body(collected if isinstance(collected, bytes) else memoryview(collected))

    def release(self) -> None:
        """It is needed no more. Further calls have no effect."""
        lease, self.lease = self.lease, None
        reserved, self._reserved = self._reserved, 0
        self._site.unreserve(reserved)
        if lease is not None:
            lease.release()


def take_in(site: HttpState, target: Target, size: int | None) -> RequestBody:
    """Raises ServeError: 413 beyond the limit for one body, 503 where all together leave no room."""
    limit = site.limits.body_bytes
    if size is not None and size > limit:
        raise _too_large(f"is {size} bytes", limit)
    if size is None or size <= SMALL_BODY:
        return RequestBody(site, target, size)
    site.reserve(size)
    return RequestBody(site, target, size, size)


def _too_large(found: str, limit: int) -> HttpRefusal:
    text = f"the body {found}; the limit here is {limit} bytes. Send less."
    return HttpRefusal(413, Code.TOO_LARGE, text, info=ErrorInfo.of(reasons.BODY_SIZE, most=limit))
