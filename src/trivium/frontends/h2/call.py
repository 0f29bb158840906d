"""A call with one request and one response: its message becomes an operation, the operation's answer its response.

No task, future or timer belongs to a call: the core's sink writes the answer. Decides what an answer,
a cancellation and a missing message mean for this call; knows no frame.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from trivium.frontends.h2.channel import NO_REQUEST, Channel
from trivium.frontends.h2.rpc_head import RpcHead
from trivium.frontends.h2.state import ANSWERED, CANCELLED, ActiveCall, GrpcState, reset_status, why_reset
from trivium.frontends.held import submit
from trivium.frontends.shares import AddressUse
from trivium.frontends.turns import Result
from trivium.types.access import AccessScope
from trivium.types.buffers import Lease
from trivium.types.errors import ServeError, noted
from trivium.types.interfaces import ALLOW_ALL, RpcEncoder, RpcProtocol, Ticket
from trivium.types.operations import Infer, Operation, ResponsePart, changes_something
from trivium.types.wire import CostlyRpcAnswer, RpcAnswer, RpcCall

COSTLY_BYTES = 2**17
"""Bytes of a message up to which it is decoded at once, whatever is in it."""

NOTHING_SAID = RpcAnswer(final=False)

DecodedCall = tuple[Operation, RpcEncoder]


class CallConnection(Protocol):
    """Holds what a call knows of the connection that it came by. `now` is of the loop's clock, in seconds."""

    site: GrpcState
    use: AddressUse
    peer: str
    now: float

    def elsewhere(self, work: Callable[[], Result], done: Callable[[Result | Exception], None]) -> None:
        """Do it somewhere else than on the loop; `done` is called on it, with what became of it."""
        ...

    def leave(self, visit: ActiveCall, code: int, is_answered: bool) -> None:
        """The call is over: a line in the access log, and one call less."""
        ...


@dataclass(slots=True)
class _KeepsParts:
    """An encoder, for as long as an answer is written elsewhere: it keeps what comes meanwhile."""

    parts: list[ResponsePart]

    def encode(self, part: ResponsePart) -> RpcAnswer:
        self.parts.append(part)
        return NOTHING_SAID


class UnaryCall(ActiveCall):
    """Implements `channel.Receives`. What comes behind the first message is ignored, as grpcio does."""

    def __init__(self, place: CallConnection, channel: Channel, head: RpcHead, protocol: RpcProtocol) -> None:
        super().__init__(head.method, place.peer, place.now)
        self._place = place
        self._site = place.site
        self._channel = channel
        self._protocol = protocol
        self._head = head
        self._ticket: Ticket | None = None
        self._call: RpcCall | None = None  # once the message has come
        self._encoder: RpcEncoder | None = None
        self._is_over = False
        self._is_early = False  # answered before the core's last part
        self._lease: Lease | None = None  # of a large message; the channel holds it
        self._site.enter(self)

    def on_message(self, message: bytes) -> None:
        if self._call is not None or self._is_over:
            self._channel.give_back(len(message))
            return
        head = self._head
        timeout = head.timeout
        if timeout is not None:
            timeout = max(timeout - (self._place.now - self.began), 0.0)
        site = self._site
        call = self._call = RpcCall(head.method, site.without_key(head.metadata), timeout)
        try:
            if len(message) > COSTLY_BYTES:
                self._lease = self._channel.lease = self._channel.lend(len(message))
                if self._protocol.is_costly(call, message):
                    self._elsewhere(lambda: self._protocol.decode(call, message), self._on_decoded)
                    return
            decoded = self._protocol.decode(call, message)
        except Exception as error:
            self._finish(self._site.refuse(call, noted(error)))
            return
        self._submit(call, decoded)

    def _elsewhere(self, work: Callable[[], Result], done: Callable[[Result | Exception], None]) -> None:
        """Have it done in a thread, which needs the message though the call may be over."""
        lease = self._lease
        if lease is None:
            self._place.elsewhere(work, done)
            return

        def release(result: Result | Exception) -> None:
            lease.release()
            done(result)

        lease.hold()
        self._place.elsewhere(work, release)

    def _on_decoded(self, result: DecodedCall | Exception) -> None:
        call = self._call
        assert call is not None
        if self._is_over:
            return
        if isinstance(result, Exception):
            self._finish(self._site.refuse(call, result))
        else:
            self._submit(call, result)

    def _submit(self, call: RpcCall, decoded: DecodedCall) -> None:
        operation, self._encoder = decoded
        site = self._site
        if site.log is not None and isinstance(operation, Infer) and operation.origin is not None:
            self.facts = operation.origin.facts
        try:
            if site.authorizer is not ALLOW_ALL and changes_something(operation):
                denied = site.denied(AccessScope.MANAGE, RpcCall(self._head.method, self._head.metadata))
                if denied is not None:
                    self._finish(denied)
                    return
            lease, core = self._lease, site.core
            ticket = (
                core.submit(operation, self._take)
                if lease is None
                else submit(core, operation, self._take, lease)
            )
        except Exception as error:
            self._finish(site.refuse(call, noted(error)))
            return
        if not self._is_over:
            self._ticket = ticket
        elif self._is_early:
            ticket.cancel(ANSWERED)

    def on_end(self) -> None:
        if self._call is None:
            self._finish(NO_REQUEST)

    def on_sent(self) -> None:
        pass

    def on_refused(self, answer: RpcAnswer) -> None:
        self._leave(answer.code, True)

    def on_reset(self) -> None:
        why = why_reset(self._head.timeout, self._place.now - self.began)
        self._leave(reset_status(why), False, why)

    def abort(self, answer: RpcAnswer) -> None:
        """The server cannot wait any longer."""
        if not self._is_over:
            self._channel.end(answer.code, answer.details)
            self._leave(answer.code, False)

    def _take(self, part: ResponsePart) -> None:
        """The sink."""
        if self._is_over:
            return
        assert self._encoder is not None
        assert self._call is not None
        try:
            said = self._encoder.encode(part)
        except Exception as error:
            said = self._site.refuse(self._call, noted(error))
        if part.error is not None:
            self._site.note_cause(self._call, part.error, said)
        if type(said) is CostlyRpcAnswer:
            self._write_elsewhere(self._call, self._encoder, said, part)
        else:
            self._say(said, part)

    def _write_elsewhere(
        self, call: RpcCall, encoder: RpcEncoder, said: CostlyRpcAnswer, part: ResponsePart
    ) -> None:
        self._encoder = behind = _KeepsParts([])

        def written(result: RpcAnswer | Exception) -> None:
            if self._is_over:
                return
            self._encoder = encoder
            self._say(self._site.refuse(call, result) if isinstance(result, Exception) else result, part)
            for later in behind.parts:
                self._take(later)

        self._elsewhere(said.write, written)

    def _say(self, said: RpcAnswer, part: ResponsePart) -> None:
        if not said.final:
            return
        ticket, self._ticket = self._ticket, None
        self._is_early = not part.final
        self._finish(said)
        if self._is_early and ticket is not None:
            ticket.cancel(ANSWERED)

    def _finish(self, said: RpcAnswer) -> None:
        if self._is_over:
            return
        self._is_over = True
        if said.code:
            self._channel.end(said.code, said.details)
        else:
            message = said.message or b""
            self.sent = len(message)
            self._channel.answer(message)
        self._place.leave(self, said.code, True)

    def _leave(self, code: int, is_answered: bool, why: ServeError = CANCELLED) -> None:
        """Not by an answer of the core: what runs is cancelled."""
        if self._is_over:
            return
        self._is_over = True
        ticket, self._ticket = self._ticket, None
        self._place.leave(self, code, is_answered)
        if ticket is not None:
            ticket.cancel(why)
