"""One request and its answer: from the whole request, through the protocol and the core, to what shall be sent.

Decides what a part means for this request, and calls nothing of a socket: bytes go out
through the `Outlet`. Whatever escapes a protocol or the core here is our own fault: logged, answered with 500,
and the connection is closed.
"""

from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from trivium.frontends.access_log import AccessLine, AnswerLog
from trivium.frontends.held import submit
from trivium.frontends.http.request import Request
from trivium.frontends.http.state import Decoded, HttpState
from trivium.frontends.refusals import LAST_RESORT, refusal_of
from trivium.frontends.shares import AddressUse
from trivium.types.errors import Code, ServeError, frameless
from trivium.types.interfaces import Encoder, Ticket
from trivium.types.operations import Defer, Operation, ResponsePart
from trivium.types.wire import NOTHING_YET, Body, CostlyAnswer, HttpAnswer

_CUT = ServeError(Code.CANCELLED, "the answer cannot be sent any further.")


class Outlet(Protocol):
    """Takes an exchange's answer: its connection does."""

    use: AddressUse
    """Of the address that it comes from."""

    def send(self, exchange: "Exchange", answer: HttpAnswer) -> None:
        """Write the answer, or one part of it. After the final one the exchange is over."""
        ...

    def peer(self) -> str:
        """Return who is answered, for people: address and port."""
        ...

    def break_off(self, exchange: "Exchange") -> None:
        """The rest of a begun answer cannot be had: the client must see that it was cut short."""
        ...


class _Waiting(Struct):
    """Stands in for the encoder while a part is written elsewhere: `parts` are those that came since."""

    parts: list[ResponsePart]

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """Keep it."""
        self.parts.append(part)
        return NOTHING_YET


class Exchange(Struct, eq=False):
    """A request and its answer: received, started, over, in this order, each reached once at most. A `Struct`, as is
    its `Request`.
    """

    _site: HttpState
    _outlet: Outlet
    request: Request
    is_started: bool = False
    is_streaming: bool = False
    """The head of an answer in parts has been sent."""
    is_over: bool = False
    """Answered, or nobody waits any more."""
    ticket: Ticket | None = None
    """Of what is in work for it."""
    _is_cut: bool = False  # over before the core has said its last part
    _is_elsewhere: bool = False  # in a thread, which reads the body
    _encoder: Encoder | None = None
    _status: int = 0
    _sent: int = 0
    _peer: str = ""  # of an answer in parts: when it breaks off, the connection knows it no more
    _is_noted: bool = False  # a log has its line

    def start(self) -> None:
        """The request is complete and it is its turn: decode and submit it, or answer the refusal."""
        self.is_started = True
        request = self.request
        if request.refusal is not None:
            self.refuse(request.refusal)
            return
        intake = request.intake
        body = Body(request.body) if intake is None else intake.body()
        try:
            if intake is not None and request.protocol.is_costly(request.head, body.data):
                self._decode_elsewhere(body)
            else:
                operation, encoder = request.protocol.decode(request.head, request.target, body)
                self._submit(operation, encoder)
        except ServeError as error:
            self.refuse(frameless(error))
        except Exception:
            self.refuse(request.own_fault("decode or submit"))

    def _decode_elsewhere(self, body: Body) -> None:
        self._is_elsewhere = True
        request = self.request
        self._site.offload(lambda: request.protocol.decode(request.head, request.target, body), self._decoded)

    def _decoded(self, result: Decoded | Exception) -> None:
        self._is_elsewhere = False
        if self.is_over:
            self.release()  # the client left meanwhile; until now the thread was reading the body
        elif isinstance(result, ServeError):
            self.refuse(result)
        elif isinstance(result, Exception):
            self.refuse(self.request.own_fault("decode", result))
        else:
            try:
                self._submit(*result)
            except Exception:
                self.refuse(self.request.own_fault("submit"))

    def _submit(self, operation: Operation, encoder: Encoder) -> None:
        self._encoder = encoder
        if operation.__class__ is Defer:
            operation = replace(operation, client=self._outlet.use.address)
        lease, core = self.request.kept(), self._site.core
        ticket = (
            core.submit(operation, self._take)
            if lease is None
            else submit(core, operation, self._take, lease)
        )
        if not self.is_over:
            self.ticket = ticket
        elif self._is_cut:
            ticket.cancel(_CUT)

    def _take(self, part: ResponsePart) -> None:
        """The sink. Parts that come after the client has left are counted by the core, not here."""
        encoder, ticket = self._encoder, self.ticket
        if encoder is None:  # it is over
            return
        try:
            answer = encoder.encode(part)
        except Exception:
            self.refuse(self.request.own_fault("encode"))
            self._cut(ticket, _CUT)
            return
        if answer.status >= 400 or part.error is not None:
            self._site.causes.answered(part, self.request.target, answer)
        if answer.status:  # else the encoder keeps the part, to write it with a later one
            self._send(answer)
        elif type(answer) is CostlyAnswer:
            self._write_elsewhere(encoder, answer)
        if answer.final and not part.final:  # what follows is for nobody
            self._cut(ticket, _CUT)

    def _write_elsewhere(self, encoder: Encoder, answer: CostlyAnswer) -> None:
        self._is_elsewhere = True
        self._encoder = behind = _Waiting([])

        def written(result: HttpAnswer | Exception) -> None:
            self._is_elsewhere = False
            if self.is_over:
                self.release()  # the client left meanwhile; until now the thread was reading what views the body
                return
            self._encoder = encoder
            if isinstance(result, Exception):
                self.refuse(self.request.own_fault("write", result))
                return
            self._send(result)
            for part in behind.parts:
                self._take(part)

        self._site.offload(answer.write, written)

    def refuse(self, error: ServeError) -> None:
        """Answer with the error in the protocol's form; in the middle of an answer, abort that short."""
        if self.is_over:
            return
        if self.is_streaming:
            self._outlet.break_off(self)
            return
        answer = refusal_of(error, self.request.protocol)
        self._site.causes.refused(error, self.request.target, answer)
        self.request.keeps_alive &= answer is not LAST_RESORT
        self._send(answer)

    def _send(self, answer: HttpAnswer) -> None:
        if self._site.log is not None:
            self._note(self._site.log, answer)
        if answer.closes:
            self.request.keeps_alive = False
            if self.is_streaming and answer.status >= 400:  # the client must see that the rest is missing
                self._outlet.break_off(self)
                return
        if answer.final:
            self.is_over = True
            self.ticket = self._encoder = None
        try:
            self._outlet.send(self, answer)
        except Exception:  # an answer that is none, such as text where bytes belong
            self.request.own_fault("send")
            self._outlet.break_off(self)

    def _note(self, log: AnswerLog, answer: HttpAnswer) -> None:
        self._sent += answer.size
        if not self.is_streaming:
            self._status = answer.status  # of the first part; those that follow cannot change it
        if answer.final:
            self._is_noted = True
            log.add(self._line())
        elif not self._peer:
            self._peer = self._outlet.peer()

    def _line(self) -> AccessLine:
        """Return what a log says of it."""
        site, request = self._site, self.request
        peer, path = self._peer or self._outlet.peer(), request.head.path
        seconds = site.now - request.began
        return AccessLine(site.epoch, peer, request.method, path, self._status, self._sent, seconds)

    def end(self, error: ServeError) -> None:
        """The core is waited for no longer: the last part is this error, as the protocol writes one, in the middle of
        an answer, too. What runs is cancelled. Without effect while a part is being written elsewhere.
        """
        ticket = self.ticket
        if self._encoder is None:
            self.refuse(error)
        else:
            self._take(ResponsePart(error=error))
        self._cut(ticket, error)

    def cancel(self, why: ServeError) -> None:
        """Nobody waits for the answer: cancel what runs. One that breaks off midway was begun, and is in the log."""
        log = self._site.log
        if log is not None and self.is_streaming and not self._is_noted:
            self._is_noted = True
            log.add(self._line())
        self.is_over = True
        ticket, self.ticket, self._encoder = self.ticket, None, None
        self._cut(ticket, why)

    def _cut(self, ticket: Ticket | None, why: ServeError) -> None:
        self._is_cut = True
        if ticket is not None:
            ticket.cancel(why)

    def release(self) -> None:
        """The body is needed no more, as soon as no thread reads it."""
        intake = self.request.intake
        if intake is not None and not self._is_elsewhere:
            intake.release()
