"""A client without a socket: it makes frames, and reads what a server sends, by the rules of RFC 9113.

It checks what it reads: windows and frame sizes are kept, streams begin and end once.
"""

from dataclasses import dataclass, field
from urllib.parse import unquote

from hpack import Decoder, Encoder

from trivium.frontends.h2 import frames
from trivium.frontends.h2.responses import PREFIX

USUAL = (
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "localhost"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
)
GREETING = frames.PREFACE + frames.settings([])


def prefixed(message: bytes, packed: int = 0) -> bytes:
    """With the five bytes before it."""
    return PREFIX.pack(packed, len(message)) + message


def data(stream: int, payload: bytes, ends: bool = False) -> bytes:
    """One DATA frame."""
    return frames.head(len(payload), frames.DATA, int(ends), stream) + payload


@dataclass
class Heard:
    """What came on one stream."""

    window: int
    headers: list[dict[str, str]] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    has_ended: bool = False
    reset: int | None = None

    @property
    def messages(self) -> list[bytes]:
        found, position = [], 0
        while position < len(self.data):
            _, size = PREFIX.unpack_from(self.data, position)
            position += PREFIX.size
            found.append(bytes(self.data[position : position + size]))
            position += size
        return found

    @property
    def status(self) -> int | None:
        return int(self.headers[-1]["grpc-status"]) if self.has_ended else None

    @property
    def details(self) -> str:
        return unquote(self.headers[-1].get("grpc-message", ""))


class Peer:
    """`initial`: the window of streams; `frame`: the largest frame that it takes."""

    def __init__(self, initial: int = frames.DEFAULT_WINDOW, frame: int = frames.LEAST_FRAME_SIZE) -> None:
        self.encoder = Encoder()
        self.decoder = Decoder()
        self.initial = initial
        self.frame = frame
        self.window = frames.DEFAULT_WINDOW
        self.streams: dict[int, Heard] = {}
        self.pings: list[bytes] = []
        self.pongs: list[bytes] = []
        self.goaways: list[tuple[int, int, str]] = []
        self.granted: dict[int, int] = {}
        self.settings: dict[int, int] = {}
        self._rest = bytearray()

    def greeting(self) -> bytes:
        pairs = [(frames.INITIAL_WINDOW_SIZE, self.initial), (frames.MAX_FRAME_SIZE, self.frame)]
        return frames.PREFACE + frames.settings(pairs)

    def open(self, stream: int, path: str, *more: tuple[str, str], ends: bool = False) -> bytes:
        self.streams[stream] = Heard(self.initial)
        is_short = (
            sum(len(value) for _, value in more) < 10_000
        )  # the library's own code takes 80 ms for long ones
        block = self.encoder.encode([*USUAL[:2], (":path", path), *USUAL[2:], *more], huffman=is_short)
        return frames.headers(stream, block, ends)

    def call(self, stream: int, path: str, *messages: bytes, more: tuple[tuple[str, str], ...] = ()) -> bytes:
        payload = b"".join(map(prefixed, messages))
        return self.open(stream, path, *more) + data(stream, payload, ends=True)

    def grow(self, stream: int, size: int) -> bytes:
        if stream:
            self.streams[stream].window += size
        else:
            self.window += size
        return frames.window_update(stream, size)

    def hear(self, sent: bytes) -> None:
        self._rest += sent
        while len(self._rest) >= frames.HEAD_BYTES:
            high, low, kind, flags, stream = frames.HEAD.unpack_from(self._rest)
            size = high << 8 | low
            if len(self._rest) < frames.HEAD_BYTES + size:
                return
            payload = bytes(self._rest[frames.HEAD_BYTES : frames.HEAD_BYTES + size])
            del self._rest[: frames.HEAD_BYTES + size]
            assert self.settings or kind == frames.SETTINGS, "the first frame is not SETTINGS"
            self._hear_frame(kind, flags, stream, payload)

    def _hear_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == frames.SETTINGS and not flags:
            self.settings = dict(frames.read_settings(payload))
        elif kind == frames.WINDOW_UPDATE:
            self.granted[stream] = self.granted.get(stream, 0) + frames.read_number("WINDOW_UPDATE", payload)
        elif kind == frames.PING:
            (self.pongs if flags else self.pings).append(payload)
        elif kind == frames.GOAWAY:
            last, code = (int.from_bytes(payload[at : at + 4], "big") for at in (0, 4))
            self.goaways.append((last, code, payload[8:].decode()))
        elif kind == frames.RST_STREAM:
            heard = self.streams[stream]
            assert heard.reset is None, "reset twice"
            heard.reset = frames.read_number("RST_STREAM", payload)
        elif kind in (frames.HEADERS, frames.DATA):
            self._hear_stream(self.streams[stream], kind, flags, payload)

    def _hear_stream(self, heard: Heard, kind: int, flags: int, payload: bytes) -> None:
        assert not heard.has_ended, "something behind the end"
        assert heard.reset is None, "something behind a reset"
        assert len(payload) <= self.frame, "a frame too large"
        if kind == frames.HEADERS:
            heard.headers.append(dict(self.decoder.decode(payload)))
        else:
            assert heard.headers, "DATA before HEADERS"
            self.window -= len(payload)
            heard.window -= len(payload)
            assert self.window >= 0, "the connection's window is exceeded"
            assert heard.window >= 0, "a stream's window is exceeded"
            heard.data += payload
        heard.has_ended = bool(flags & frames.END_STREAM)
