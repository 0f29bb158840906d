"""Content codings of HTTP bodies: gzip and deflate, in with a bound, out where that is worth it.

Source: RFC 9110, sections 8.4.1 and 12.5.3 (Accept-Encoding), RFC 1950 and 1952; spec sheet `triton`, section 4.8.
Knows no request: what is larger than allowed is refused before it is allocated.
"""

import itertools
import weakref
import zlib
from collections.abc import Iterator
from functools import lru_cache

from trivium.codecs.binary import Buffer
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError

CODINGS = ("gzip", "deflate")
"""In the order of our own preference."""

LEAST_BYTES = 1024
"""Smaller answers are not compressed: they fit into a packet or two as they are."""

MOST_BYTES = 256 * 2**10
"""Larger ones neither: it would hold up everybody else for longer than the network saves."""

_LEVEL = 1
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_STEP = 256 * 2**10


class _Inflated(bytearray):
    """A body whose end can be noticed, which a plain bytearray's cannot."""

    __slots__ = ("__weakref__",)


class Inflater:
    """Decompresses bodies. One body may have `most` bytes, all that are in use at the same time `most_together`.

    Used by several threads: each step on the books is atomic by itself, and two bodies that come at the same
    moment may exceed the sum by a step.
    """

    def __init__(self, most: int, most_together: int) -> None:
        self._most = most
        self._most_together = most_together
        self._numbers = itertools.count()
        self._held: dict[int, int] = {}

    @property
    def held(self) -> int:
        """Bytes of bodies that somebody still views."""
        return sum(list(self._held.values()))

    def inflate(self, data: Buffer, coding: str) -> memoryview:
        """The whole body, which is `coding` of `CODINGS`. INVALID for one that is not, or is cut short; TOO_LARGE;
        QUEUE_FULL where others hold too much at the moment.
        """
        body = _Inflated()
        number = next(self._numbers)
        weakref.finalize(body, self._held.pop, number, None).atexit = False
        for piece in _pieces(data, coding):
            size = len(body) + len(piece)
            if size > self._most:
                raise ServeError(
                    Code.TOO_LARGE,
                    f"The {coding} body of {len(data)} bytes unpacks to more than {self._most}, the limit.",
                    info=ErrorInfo.of(reasons.BODY_SIZE, most=self._most),
                )
            self._held[number] = size
            if self.held > self._most_together:
                raise ServeError(
                    Code.QUEUE_FULL,
                    f"Unpacked bodies would hold {self.held} bytes together; the limit is {self._most_together}. "
                    "Try again later, or send the body without compression.",
                    1.0,
                )
            body += piece
        return memoryview(body)


def deflate(buffers: tuple[Buffer, ...], coding: str) -> bytes:
    """These bytes one behind the other, as `coding` of `CODINGS`."""
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOWS[coding])
    return b"".join([*map(compressor.compress, buffers), compressor.flush()])


@lru_cache(maxsize=1024)
def accepted(field: bytes) -> str:
    """The coding that an Accept-Encoding field likes best, ours first where it likes several alike; empty for none.

    What cannot be read is left out.
    """
    likes = dict(_likes(field.decode("latin-1")))
    plain = likes.get("identity", 0.0)
    best = max(CODINGS, key=lambda coding: likes.get(coding, likes.get("*", 0.0)))
    quality = likes.get(best, likes.get("*", 0.0))
    return best if quality > 0 and quality >= plain else ""


def _likes(field: str) -> list[tuple[str, float]]:
    found = []
    for entry in field.split(","):
        name, _, rest = entry.partition(";")
        key, _, value = rest.partition("=")
        try:
            quality = float(value) if key.strip().lower() == "q" else 1.0
        except ValueError:
            continue
        if name.strip() and 0 <= quality <= 1:
            found.append((name.strip().lower().removeprefix("x-"), quality))
    return found


def _pieces(data: Buffer, coding: str) -> Iterator[bytes]:
    """Yield what a body unpacks to, at most `_STEP` bytes at a time. gzip may have several members."""
    rest: Buffer = data
    while True:
        unpacker = zlib.decompressobj(_WINDOWS[coding])
        while not unpacker.eof:
            try:
                piece = unpacker.decompress(rest, _STEP)
            except zlib.error as error:
                raise _broken(coding, str(error)) from error
            rest = unpacker.unconsumed_tail
            if not piece and not rest and not unpacker.eof:
                raise _broken(coding, "it ends too early")
            yield piece
        rest = unpacker.unused_data
        if not rest:
            return
        if coding != "gzip":
            raise _broken(coding, f"{len(rest)} bytes follow its end")


def _broken(coding: str, found: str) -> ServeError:
    return ServeError(
        Code.INVALID,
        f"The body is not what its Content-Encoding {coding} says: {found}. Send it whole, or without that header.",
    )
