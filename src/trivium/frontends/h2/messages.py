"""Makes the messages of a call from pieces of DATA, each with its prefix of five bytes, packed or not.

Source: "gRPC over HTTP2", Length-Prefixed-Message. Decides what is too large before it is taken, and books every byte
that is kept with the site. Knows no frame.
"""

from typing import cast

from trivium.codecs.compression import Inflater
from trivium.frontends.h2.responses import PREFIX
from trivium.frontends.h2.state import INTERNAL, RESOURCE_EXHAUSTED, GrpcState
from trivium.frontends.shares import AddressUse
from trivium.types.errors import Code, ServeError
from trivium.types.wire import RpcAnswer

_PREFIX_BYTES = PREFIX.size
_AT_ONCE = 4096
"""Bytes of a packed message that cannot hold up the loop: 4 MiB at most are in it."""


class CallRefused(Exception):
    """The call cannot go on: `answer` is its end."""

    def __init__(self, answer: RpcAnswer) -> None:
        super().__init__(answer.details)
        self.answer = answer


class MessageReader:
    """One call's requests. `held` bytes are booked with the site; giving them back is for the owner."""

    __slots__ = (
        "_coding",
        "_inflater",
        "_message",
        "_packed",
        "_prefix",
        "_site",
        "_size",
        "_use",
        "begun",
        "held",
    )

    def __init__(self, site: GrpcState, use: AddressUse, coding: str, inflater: Inflater) -> None:
        self._site = site
        self._use = use
        self.begun = 0  # messages
        self._coding = coding
        self._inflater = inflater
        self._prefix = b""  # the first bytes of a message, where not all five have come
        self._message: bytearray | None = None  # one that has begun
        self._size = 0  # what it will have
        self._packed = 0
        self.held = 0

    @property
    def came(self) -> int:
        """Return the bytes that have come of a message that is not whole."""
        return len(self._prefix) if self._message is None else _PREFIX_BYTES + len(self._message)

    @property
    def is_between_messages(self) -> bool:
        """Would an end abort nothing short?"""
        return self._message is None and not self._prefix

    def feed(self, piece: memoryview) -> "list[bytes | Packed]":
        """The messages that are whole by now; `piece` is copied. Raises CallRefused, and what `reserve` raises."""
        if self._message is None and not self._prefix and len(piece) >= _PREFIX_BYTES:
            packed, size = PREFIX.unpack_from(piece)
            if size == len(piece) - _PREFIX_BYTES:  # one message in one frame, as most are
                self._begin(packed, size)
                self.book(size)
                return [self._finish(bytes(piece[_PREFIX_BYTES:]))]
        return self._feed(piece)

    def _feed(self, piece: memoryview) -> "list[bytes | Packed]":
        whole: list[bytes | Packed] = []
        position = 0
        end = len(piece)
        while position < end or self._is_whole():
            if self._message is None:
                missing = _PREFIX_BYTES - len(self._prefix)
                self._prefix += piece[position : position + missing]
                position += missing
                if len(self._prefix) == _PREFIX_BYTES:
                    packed, size = PREFIX.unpack(self._prefix)
                    self._prefix = b""
                    self._begin(packed, size)
                    self._message = bytearray()
                continue
            if not self._is_whole():
                more = piece[position : position + self._size - len(self._message)]
                self.book(len(more))
                self._message += more
                position += len(more)
            if self._is_whole():
                message, self._message = self._message, None
                whole.append(self._finish(message))
        return whole

    def _is_whole(self) -> bool:
        return self._message is not None and len(self._message) == self._size

    def _begin(self, packed: int, size: int) -> None:
        limit = self._site.limits.message_bytes
        if size > limit:
            text = f"SERVER: Received message larger than max ({size} vs. {limit})"  # grpcio's words
            raise CallRefused(RpcAnswer(code=RESOURCE_EXHAUSTED, details=text))
        if packed and (packed > 1 or self._coding == "identity"):
            text = f"A message begins with {packed}, and grpc-encoding is {self._coding!r}; 0 says that it is not."
            raise CallRefused(RpcAnswer(code=INTERNAL, details=text))
        self._packed, self._size = packed, size
        self.begun += 1

    def book(self, size: int) -> None:
        """So many bytes of a message are kept. Raises what `reserve` raises."""
        self._site.reserve(size, self._use)
        self.held += size

    def _finish(self, message: bytes | bytearray) -> "bytes | Packed":
        if not self._packed:
            # One that came in pieces stays a bytearray: nobody changes it, and protobuf reads it as it is.
            return cast(bytes, message)
        packed = Packed(message, self._coding, self._inflater)
        if len(message) > _AT_ONCE:
            return packed
        unpacked = packed.unpack()
        self._site.unreserve(len(message), self._use)
        self.held -= len(message)
        self.book(len(unpacked))
        return unpacked


class Packed:
    """A message to be unpacked elsewhere: it may become a thousand times as long."""

    __slots__ = ("_coding", "_inflater", "message")

    def __init__(self, message: bytes | bytearray, coding: str, inflater: Inflater) -> None:
        self.message = message
        self._coding = coding
        self._inflater = inflater

    def unpack(self) -> bytes:
        """Unpack it, in any thread. Raises CallRefused, and QUEUE_FULL where others hold too much."""
        if not self.message:
            return b""
        try:
            return bytes(self._inflater.inflate(memoryview(self.message), self._coding))
        except ServeError as error:
            if error.code is Code.TOO_LARGE:
                answer = RpcAnswer(code=RESOURCE_EXHAUSTED, details="Decompressed message larger than max")
            elif error.code is Code.INVALID:
                text = f"The message is not packed by {self._coding} as it says."
                answer = RpcAnswer(code=INTERNAL, details=text)
            else:
                raise
            raise CallRefused(answer) from error
