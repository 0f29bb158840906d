"""One connection without its socket: frames in, calls on them, frames out.

Source: RFC 9113, sections 3.4, 5, 6 and 8; "gRPC over HTTP2". Decides which stream is what, which calls are let in and
when the connection has nothing left to do. Reads no clock: `now` is set by whoever feeds it. What concerns the
connection rather than a stream is in `housekeeping`.
"""

from collections.abc import Callable

from trivium.frontends.access_log import AccessLine, ServedLine
from trivium.frontends.h2 import frames
from trivium.frontends.h2.call import UnaryCall
from trivium.frontends.h2.channel import WINDOW, Channel
from trivium.frontends.h2.flow import Bytes, SendFlow
from trivium.frontends.h2.frame_reader import FrameReader
from trivium.frontends.h2.frames import ConnectionFault, StreamFault
from trivium.frontends.h2.guard import EARNED, RESET, SMALL, TINY
from trivium.frontends.h2.header_blocks import HeaderBlocks
from trivium.frontends.h2.housekeeping import Housekeeping
from trivium.frontends.h2.messages import MessageReader
from trivium.frontends.h2.responses import refusal
from trivium.frontends.h2.rpc_head import RpcHead
from trivium.frontends.h2.shared import Shared
from trivium.frontends.h2.state import ActiveCall, GrpcState
from trivium.frontends.h2.streaming import StreamingCall
from trivium.frontends.shares import AddressUse
from trivium.frontends.turns import Result
from trivium.types.errors import ServeError
from trivium.types.wire import RpcAnswer, RpcKind

MOST_LIST = 16 * 1024
"""Bytes of a call's header list, which clients are told; also of a frame that holds neither headers nor DATA."""

MOST_BLOCK = 256 * 1024
"""Bytes of a header block, and of a list, up to which its call alone is refused; beyond it the connection ends."""

_LONG = 256
"""Bytes of a list that is too long that cost as much as a frame of no use."""

MOST_FRAME = 2**20
_PUMPED = 256 * 1024
AnyCall = UnaryCall | StreamingCall


class Session:
    """Implements `Hears`, `Line`, `Place` and `Desk`. `out` is what is to be written; `wake` is called when there may
    be something. `is_choked` is set while the transport has enough of it. `last_stream`: the last one let in.
    """

    def __init__(
        self, shared: Shared, peer: str, use: AddressUse, now: float, wake: Callable[[], None]
    ) -> None:
        self.site: GrpcState = shared.site
        self.use = use
        self.last_call = now  # when one ended last
        self.peer = peer
        self.now = now
        self.flow = SendFlow()
        self.is_choked = False
        self.out: list[Bytes] = []
        self.streams: dict[int, Channel] = {}
        self.last_stream = 0
        self._highest = 0  # of the streams that have come
        self._calls: dict[int, AnyCall] = {}
        self._unended: set[int] = set()  # answered in this turn, before the client has sent all
        self._shared = shared
        self._wake = wake
        self._has_greeted = False
        self._room = WINDOW
        self._owed = 0
        self._booked = 0  # bytes of a long header block
        self._blocks = HeaderBlocks(MOST_LIST, MOST_BLOCK, self._on_long_list)
        self._reader = FrameReader(self, MOST_FRAME, MOST_LIST, MOST_BLOCK)
        self.housekeeping = Housekeeping(self)

    @property
    def is_greeted(self) -> bool:
        """Has the client's preface come?"""
        return self._reader.is_greeted

    @property
    def has_calls(self) -> bool:
        """Is a stream open?"""
        return bool(self.streams)

    @property
    def data_to_come(self) -> int:
        """Return the bytes that are missing of a DATA frame that has begun."""
        return self._reader.data_to_come

    @property
    def is_finished(self) -> bool:
        """Has the client heard that it should go away, and been answered all that it asked before?"""
        return self.housekeeping.is_leaving and not self.streams

    def greet(self) -> None:
        """Our preface, once."""
        if self._has_greeted:
            return
        self._has_greeted = True
        pairs = [
            (frames.MAX_CONCURRENT_STREAMS, self._shared.streams),
            (frames.INITIAL_WINDOW_SIZE, WINDOW),
            (frames.MAX_FRAME_SIZE, MOST_FRAME),
            (frames.MAX_HEADER_LIST_SIZE, MOST_LIST),
        ]
        self.put(frames.settings(pairs), frames.window_update(0, WINDOW - frames.DEFAULT_WINDOW))

    def feed(self, data: memoryview) -> None:
        """Take in what has come; raises ConnectionFault. StreamFaults end their streams alone."""
        self._reader.feed(data)

    # -- written by channels and calls -----------------------------------------------------------------

    def put(self, *buffers: Bytes) -> None:
        """Write, at the end of this turn."""
        self.out.extend(buffers)
        self._wake()

    def wake(self) -> None:
        """There may be something to send by the flow."""
        self._wake()

    def elsewhere(self, work: Callable[[], Result], done: Callable[[Result | Exception], None]) -> None:
        """Run it in a thread."""
        self._shared.offload(work, done)

    def spare(self) -> None:
        """Finish a turn: whoever has been answered need not send the rest (RFC 9113 8.1)."""
        while self._unended:
            self.put(frames.reset(self._unended.pop(), frames.NO_ERROR))

    def pump(self) -> None:
        """Move to `out` what the windows let through, a measure at most."""
        turns = self.flow.send(self.out, _PUMPED)
        if turns:
            self.housekeeping.note_served(EARNED * turns)

    def answered(self, channel: Channel) -> None:
        """Its last frame has been put: forget it."""
        if not channel.is_half_closed:
            self._unended.add(channel.number)
        self._forget(channel)
        self.housekeeping.note_served(EARNED)

    def leave(self, visit: ActiveCall, code: int, is_answered: bool) -> None:
        """A call is over."""
        self.site.leave(visit, is_answered)
        log = self.site.log
        if log is not None:
            epoch, seconds = self._shared.epoch(), self._shared.monotonic() - visit.began
            told = epoch, self.peer, "gRPC", visit.method, code, visit.sent, seconds
            log.add(AccessLine(*told) if visit.facts is None else ServedLine(*told, facts=visit.facts))

    # -- heard by the reader ---------------------------------------------------------------------------

    def on_long_block(self, size: int) -> None:
        """Book it, as a message is booked: many connections might begin such blocks and never end them."""
        more = size - self._booked
        if more <= 0:
            return
        try:
            self.site.reserve(more, self.use)
        except ServeError as error:
            raise ConnectionFault(frames.ENHANCE_YOUR_CALM, error.message) from None
        self._booked = size

    def on_headers(self, stream: int, block: bytes, ends: bool) -> None:
        self.housekeeping.check_greeting(None)
        if self._booked:
            self._unbook()
        channel = self.streams.get(stream)
        if channel is not None:  # trailers, of which gRPC's clients have none
            self._blocks.skip(block)
            if ends and not channel.is_half_closed:
                channel.half_close()
            else:
                self._break(channel, frames.PROTOCOL_ERROR)
            return
        if not stream & 1:
            raise ConnectionFault(frames.PROTOCOL_ERROR, f"Stream {stream} is not a client's to open.")
        if stream <= self._highest:
            self._blocks.skip(block)
            self._unended.discard(stream)
            self.housekeeping.spend(RESET)
            return
        self._highest = stream
        head = self._blocks.head(block)
        if self.housekeeping.is_leaving:
            self.put(frames.reset(stream, frames.REFUSED_STREAM))
            return
        self.last_stream = stream
        if head.malformed:
            self.housekeeping.spend(RESET)
            self.put(frames.reset(stream, frames.PROTOCOL_ERROR))
            return
        self._open(stream, head, ends)

    def on_data(self, stream: int, piece: memoryview, counted: int, ends: bool) -> None:
        if counted:
            self._count(counted)
            if len(piece) < TINY and not ends:
                self.housekeeping.spend(SMALL)
        elif not ends and not piece:
            self.housekeeping.spend(SMALL)
        channel = self.streams.get(stream)
        if channel is not None:
            try:
                channel.take(piece, counted, ends)
            except StreamFault as fault:
                self._break(channel, fault.code)
        elif ends and stream in self._unended:
            self._unended.remove(stream)
        elif stream > self._highest or not stream & 1:
            raise ConnectionFault(frames.PROTOCOL_ERROR, f"DATA came on stream {stream}, which is not open.")

    def on_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        house = self.housekeeping
        house.check_greeting(kind)
        if kind == frames.WINDOW_UPDATE:
            self._on_window_update(stream, frames.read_number("WINDOW_UPDATE", payload))
        elif kind == frames.RST_STREAM:
            frames.read_number("RST_STREAM", payload)
            self._on_reset(stream)
        elif kind == frames.SETTINGS:
            house.on_settings(flags, stream, payload, self.streams.values())
        else:
            house.on_other(kind, flags, stream, payload)

    # -- the client, or all of it, is gone -------------------------------------------------------------

    def lose(self) -> None:
        """The connection is gone: everything is cancelled."""
        if self._booked:
            self._unbook()
        for channel in list(self.streams.values()):
            self._cancel(channel)

    def forget(self) -> None:
        """The connection is gone, and nothing is asked of this any more: this breaks the cycles with its parts."""
        self._wake = _nothing
        del self._reader, self._blocks, self.housekeeping

    def abort(self, answer: RpcAnswer) -> None:
        """End every call by this status."""
        for call in list(self._calls.values()):
            call.abort(answer)

    def cut_short(self) -> None:
        """Send the ends of calls that have been ended now, and drop what their clients' windows hold up before them."""
        for channel in list(self.streams.values()):
            channel.cut_short()

    def end_late(self, now: float) -> None:
        """End the calls whose messages do not come, and those whose responses are not taken."""
        limits = self.site.limits
        for channel in list(self.streams.values()):
            channel.end_if_late(now, limits.message_seconds, limits.slowest_rate)
            channel.end_if_unread(now, limits.write_seconds, limits.slowest_rate)

    # -- details ---------------------------------------------------------------------------------------

    def _on_long_list(self, size: int) -> None:
        self.housekeeping.spend(RESET + size // _LONG)

    def _unbook(self) -> None:
        booked, self._booked = self._booked, 0
        self.site.unreserve(booked, self.use)

    def _open(self, stream: int, head: RpcHead, ends: bool) -> None:
        shared = self._shared
        if len(self.streams) >= shared.streams:  # RFC 9113 5.1.2; it was announced
            self.housekeeping.spend(SMALL)
            self.put(frames.reset(stream, frames.REFUSED_STREAM))
            return
        said = shared.why_not(head, self.flow.unsent, self.use)
        if said is not None:
            self.put(frames.headers(stream, refusal(said.code, said.details, head.http), True))
            if not ends:
                self._unended.add(stream)
            return
        coding = shared.coding if shared.coding in head.accepts else ""
        method = shared.methods[head.method]
        requests = MessageReader(self.site, self.use, head.coding, shared.inflater)
        channel = Channel(self, stream, requests, coding, method.kind is not RpcKind.STREAM)
        self.streams[stream] = channel
        self.use.calls += 1
        call: AnyCall
        if method.kind is RpcKind.UNARY:
            call = UnaryCall(self, channel, head, method.protocol)
        else:
            call = StreamingCall(self, channel, head, method)
        channel.receiver = self._calls[stream] = call
        if ends:
            channel.half_close()

    def _count(self, size: int) -> None:
        """The connection's window is given back at once: what is kept is booked with the site."""
        self._room -= size
        self._owed += size
        if self._room < 0:
            raise ConnectionFault(frames.FLOW_CONTROL_ERROR, "DATA came beyond the connection's window.")
        if self._owed >= WINDOW // 2:
            self.put(frames.window_update(0, self._owed))
            self._room += self._owed
            self._owed = 0

    def _on_window_update(self, stream: int, increment: int) -> None:
        self.housekeeping.spend(SMALL)
        if not stream:
            if not increment:
                raise ConnectionFault(frames.PROTOCOL_ERROR, "A WINDOW_UPDATE adds nothing.")
            self.flow.grow(increment)
            self.wake()
            return
        channel = self.streams.get(stream)
        if channel is None:
            self._check_opened(stream)
        elif not increment:
            self._break(channel, frames.PROTOCOL_ERROR)
        else:
            try:
                self.flow.grow_stream(channel, increment)
            except StreamFault as fault:
                self._break(channel, fault.code)
            self.wake()

    def _on_reset(self, stream: int) -> None:
        channel = self.streams.get(stream)
        if channel is None:
            self._check_opened(stream)
            self._unended.discard(stream)
            self.housekeeping.spend(SMALL)
            return
        self.housekeeping.spend(RESET)
        self._cancel(channel)

    def _check_opened(self, stream: int) -> None:
        if not stream or stream > self._highest or not stream & 1:
            raise ConnectionFault(
                frames.PROTOCOL_ERROR, f"A frame came on stream {stream}, which is not open."
            )

    def _break(self, channel: Channel, code: int) -> None:
        self.put(frames.reset(channel.number, code))
        self.housekeeping.spend(RESET)
        self._cancel(channel)

    def _cancel(self, channel: Channel) -> None:
        receiver = channel.receiver
        self._forget(channel)
        if receiver is not None:
            receiver.on_reset()

    def _forget(self, channel: Channel) -> None:
        del self.streams[channel.number]
        self.use.calls -= 1
        self.last_call = self.now
        self._calls.pop(channel.number, None)
        channel.close()


def _nothing() -> None:
    """There is nobody to wake."""
