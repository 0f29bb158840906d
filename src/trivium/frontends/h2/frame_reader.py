"""Reads frames from the bytes of a connection: DATA in pieces as they come, header blocks and all else whole.

Source: RFC 9113, sections 3.4, 4 and 6.2 to 6.10: preface, sizes, padding, CONTINUATION. Decides where frames begin
and end and which sizes are too much; what they mean is for whoever `FrameReader` reports to. It is fed views that
are used again afterwards, so what is kept is copied: less than one frame.
"""

from typing import Protocol

from trivium.frontends.h2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FRAME_SIZE_ERROR,
    HAS_PRIORITY,
    HEAD,
    HEAD_BYTES,
    HEADERS,
    PADDED,
    PREFACE,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    ConnectionFault,
)

_MOST_CONTINUATIONS = 32
_PRIORITY_BYTES = 5


class NoHttp2(ConnectionFault):
    """The connection begins otherwise, with `began`."""

    def __init__(self, began: bytes) -> None:
        super().__init__(PROTOCOL_ERROR, "This is no HTTP/2: the connection does not begin with its preface.")
        self.began = began


class FrameListener(Protocol):
    """Whom a `FrameReader` reports to."""

    def on_data(self, stream: int, piece: memoryview, counted: int, ends: bool) -> None:
        """A piece of a DATA frame, without padding; `counted` bytes of the windows are used by it (at its first piece
        by the whole frame), and with `ends` it is the last one of its stream. Valid during the call only.
        """
        ...

    def on_long_block(self, size: int) -> None:
        """A header block of at least so many bytes is coming, more than usual; heard again as it grows."""
        ...

    def on_headers(self, stream: int, block: bytes, ends: bool) -> None:
        """A whole header block."""
        ...

    def on_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Any other frame."""
        ...


class FrameReader:
    """`feed` it; it raises ConnectionFault for what is no HTTP/2, and whatever `hears` raises. No `feed` follows."""

    def __init__(self, hears: FrameListener, most_frame: int, usual: int, most_block: int) -> None:
        """`most_frame` bytes of DATA in a frame, `most_block` of a header block; more than the `usual` bytes of one are
        told before they are kept, and no other frame may have more.
        """
        self._hears = hears
        self._most_frame = most_frame
        self._usual = usual
        self._most_block = most_block
        self._rest = bytearray()  # of the preface or of a frame whose end has not come
        self._greets = True  # the preface has not come
        self._stream = 0  # of the DATA frame that has begun
        self._left = 0  # bytes of it to come, padding excluded
        self._padding = 0  # and padding
        self._ends = False
        self._block: bytearray | None = None  # a header block to be continued
        self._block_stream = 0
        self._block_ends = False
        self._continuations = 0

    @property
    def is_greeted(self) -> bool:
        """Has the preface come?"""
        return not self._greets

    @property
    def data_to_come(self) -> int:
        """Return the bytes that are missing of a DATA frame that has begun: they cost nothing but a copy."""
        return self._left

    def feed(self, data: memoryview) -> None:
        """All that has come. Bytes may be abort anywhere."""
        position = 0
        if self._rest or self._left or self._padding or self._greets:
            position = self._resume(data)
        position = self._frames(data, position)
        if position < len(data):
            self._rest += data[position:]

    # -- frames that came in pieces --------------------------------------------------------------------

    def _resume(self, data: memoryview) -> int:
        """Go on with what has begun; where the next frame begins."""
        position = 0
        while position < len(data):
            if self._left or self._padding:
                position = self._go_on(data, position)
                continue
            if not (self._rest or self._greets):
                break
            missing = self._missing()
            piece = data[position : position + missing]
            self._rest += piece
            position += len(piece)
            if self._greets:
                self._greet()
            elif len(piece) == missing and not self._missing():
                whole, self._rest = self._rest, bytearray()
                self._frames(memoryview(whole), 0)
        return position

    def _greet(self) -> None:
        if not PREFACE.startswith(self._rest):
            raise NoHttp2(bytes(self._rest))
        if len(self._rest) == len(PREFACE):
            self._rest = bytearray()
            self._greets = False

    def _missing(self) -> int:
        """Bytes until what has begun can be read, or until it is known how many that are."""
        held = len(self._rest)
        if self._greets:
            return len(PREFACE) - held
        if held < HEAD_BYTES:
            return HEAD_BYTES - held
        high, low, kind, flags, _ = HEAD.unpack_from(self._rest)
        size: int = high << 8 | low
        if kind == DATA:
            return HEAD_BYTES + (1 if flags & PADDED and size else 0) - held
        self._check_size(kind, size)
        return HEAD_BYTES + size - held

    def _go_on(self, data: memoryview, position: int) -> int:
        """Read on with a DATA frame."""
        if self._left:
            piece = data[position : position + self._left]
            self._left -= len(piece)
            position += len(piece)
            self._hears.on_data(self._stream, piece, 0, self._ends and not self._left)
        skipped = 0 if self._left else min(self._padding, len(data) - position)
        self._padding -= skipped
        return position + skipped

    # -- whole frames ----------------------------------------------------------------------------------

    def _frames(self, data: memoryview, position: int) -> int:
        """All that are whole, and as much of a DATA frame as is there; where it stopped."""
        end = len(data)
        while end - position >= HEAD_BYTES:
            high, low, kind, flags, stream = HEAD.unpack_from(data, position)
            size = high << 8 | low
            start = position + HEAD_BYTES
            stream &= 0x7FFFFFFF
            if kind == DATA:
                if flags & PADDED and size and start == end:
                    break
                position = self._data(data, start, size, flags, stream)
                continue
            self._check_size(kind, size)
            if end - start < size:
                break
            position = start + size
            self._whole(kind, flags, stream, bytes(data[start:position]))
        return position

    def _data(self, data: memoryview, start: int, size: int, flags: int, stream: int) -> int:
        if size > self._most_frame:
            raise ConnectionFault(
                FRAME_SIZE_ERROR, f"A DATA frame of {size} bytes exceeds the limit of {self._most_frame}."
            )
        if self._block is not None or not stream:
            raise ConnectionFault(PROTOCOL_ERROR, "A DATA frame came where none may be.")
        left, padding = size, 0
        if flags & PADDED:
            padding = data[start] if size else 0
            if padding >= size:
                raise ConnectionFault(PROTOCOL_ERROR, "A DATA frame has more padding than bytes.")
            start += 1
            left = size - 1 - padding
        stop = start + left
        ends = bool(flags & END_STREAM)
        if stop <= len(data):
            skipped = min(padding, len(data) - stop)
            self._padding = padding - skipped
            self._hears.on_data(stream, data[start:stop], size, ends)
            return stop + skipped
        self._stream, self._ends, self._padding = stream, ends, padding
        self._left = stop - len(data)
        self._hears.on_data(stream, data[start:], size, False)
        return len(data)

    def _check_size(self, kind: int, size: int) -> None:
        is_block = kind in (HEADERS, CONTINUATION)
        if is_block and self._block is not None:
            size += len(self._block)
        if size <= self._usual:
            return
        if not is_block:
            raise ConnectionFault(
                FRAME_SIZE_ERROR, f"A frame of {size} bytes exceeds the limit of {self._usual}."
            )
        if size > self._most_block:
            raise ConnectionFault(
                ENHANCE_YOUR_CALM, f"A header block of {size} bytes exceeds the limit of {self._most_block}."
            )
        self._hears.on_long_block(size)

    def _whole(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == HEADERS:
            self._begin_block(flags, stream, payload)
        elif kind == CONTINUATION:
            self._continue_block(flags, stream, payload)
        elif self._block is not None:
            raise ConnectionFault(PROTOCOL_ERROR, "A header block is interrupted by another frame.")
        elif kind == PUSH_PROMISE:
            raise ConnectionFault(PROTOCOL_ERROR, "A client must not push.")
        else:
            self._hears.on_frame(kind, flags, stream, payload)

    def _begin_block(self, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None or not stream:
            raise ConnectionFault(PROTOCOL_ERROR, "A HEADERS frame came where none may be.")
        if flags & (PADDED | HAS_PRIORITY):
            payload = _unwrapped(flags, payload)
        ends = bool(flags & END_STREAM)
        if flags & END_HEADERS:
            self._hears.on_headers(stream, payload, ends)
            return
        self._block = bytearray(payload)
        self._block_stream, self._block_ends, self._continuations = stream, ends, 0

    def _continue_block(self, flags: int, stream: int, payload: bytes) -> None:
        if self._block is None or stream != self._block_stream:
            raise ConnectionFault(PROTOCOL_ERROR, "A CONTINUATION frame continues nothing.")
        self._block += payload
        self._continuations += 1
        if self._continuations > _MOST_CONTINUATIONS:
            raise ConnectionFault(
                ENHANCE_YOUR_CALM,
                f"A header block in {self._continuations + 1} frames exceeds the limit of {_MOST_CONTINUATIONS + 1}.",
            )
        if flags & END_HEADERS:
            block, self._block = bytes(self._block), None
            self._hears.on_headers(stream, block, self._block_ends)


def _unwrapped(flags: int, payload: bytes) -> bytes:
    """A header block without padding and priority."""
    start = 1 if flags & PADDED else 0
    padding = payload[0] if start and payload else 0
    start += _PRIORITY_BYTES if flags & HAS_PRIORITY else 0
    if start + padding > len(payload):
        raise ConnectionFault(PROTOCOL_ERROR, "A HEADERS frame is shorter than its padding and priority.")
    return payload[start : len(payload) - padding]
