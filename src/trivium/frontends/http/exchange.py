"""One request and its answer: from the head, through the protocol and the core, to what shall be sent.

Decides what a head, a body and a part mean for this request, and calls nothing of a socket: bytes go out
through the `Outlet`. Whatever escapes a protocol or the core here is our own fault: logged, answered with 500,
and the connection is closed.
"""

import logging
from typing import Protocol

from msgspec import Struct

from trivium.frontends.access_log import AccessLine, AccessLog
from trivium.frontends.http.request_body import RequestBody, take_in
from trivium.frontends.http.request_head import expects_continue
from trivium.frontends.http.state import Decoded, HttpState
from trivium.frontends.limits import SMALL_BODY
from trivium.frontends.refusals import LAST_RESORT, HttpRefusal, refusal_of
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Encoder, Ticket, WireProtocol
from trivium.types.operations import Operation, ResponsePart
from trivium.types.wire import Body, Head, HttpAnswer, Target

_log = logging.getLogger(__name__)
_NO_TARGET = Target("")
_CUT = ServeError(Code.CANCELLED, "the answer cannot be sent any further.")


class Outlet(Protocol):
    """Where an exchange's answer goes: its connection."""

    def send(self, exchange: "Exchange", answer: HttpAnswer) -> None:
        """Write the answer, or one part of it. After the final one the exchange is over."""
        ...

    def peer(self) -> str:
        """Who is answered, for people: address and port."""
        ...

    def break_off(self, exchange: "Exchange") -> None:
        """The rest of a begun answer cannot be had: the client must see that it was abort short."""
        ...


class Exchange(Struct, eq=False):
    """Receiving, complete, started, over: in this order, each reached once at most. A `refusal` replaces
    decoding; `keeps_alive` False closes the connection behind the answer. A `Struct`, since that is made in a fifth
    of the time.
    """

    _site: HttpState
    _outlet: Outlet
    head: Head
    began: float
    protocol: WireProtocol
    target: Target = _NO_TARGET
    is_head: bool = False
    """Asked by HEAD: the body of the answer stays here."""
    body: bytes = b""
    """Of a request without an intake."""
    is_complete: bool = False
    refusal: ServeError | None = None
    intake: RequestBody | None = None
    is_http11: bool = True
    keeps_alive: bool = True
    expects_continue: bool = False
    is_opened: bool = False
    """The connection has made room for the rest of the body."""
    is_started: bool = False
    is_streaming: bool = False
    """The head of an answer in parts has been sent."""
    is_over: bool = False
    """Answered, or nobody waits any more."""
    ticket: Ticket | None = None
    """Of what is in work for it."""
    _is_cut: bool = False  # over before the core has said its last part
    _is_decoding: bool = False  # in a thread, which reads the body
    _encoder: Encoder | None = None
    _status: int = 0
    _sent: int = 0

    # -- the request -----------------------------------------------------------------------------------

    def admit(self) -> None:
        """Route the head and see whether its body is wanted. A refusal is kept, and the body (if it is small
        and surely comes) is read and thrown away; ServeError where it is not worth reading.
        """
        head = self.head
        try:
            self.protocol = protocol = self._site.protocol_of(head.path)
            self.target = protocol.head(head)
            if head.content_length != 0 or b"expect" in head.headers:
                self._admit_body(head.content_length)
        except ServeError as error:
            self.refusal = error
        except Exception:
            self.refusal = self._own_fault("head")
        if self.refusal is not None and (
            self.refusal.code is Code.TOO_LARGE or not self._is_small_and_comes()
        ):
            raise self.refusal

    def _admit_body(self, size: int | None) -> None:
        self.expects_continue = self.is_http11 and expects_continue(self.head)
        if self.target.takes_body:
            self.intake = take_in(self._site, self.target, size)
        elif size is None or size > SMALL_BODY:
            raise HttpRefusal(413, Code.TOO_LARGE, "nothing here takes a body; send the request without.")

    def _is_small_and_comes(self) -> bool:
        size = self.head.content_length
        return size is not None and size <= SMALL_BODY and (size == 0 or b"expect" not in self.head.headers)

    def add(self, piece: bytes) -> None:
        """Take in a piece of the body, or throw it away if nobody wants it. ServeError when it is too much."""
        if self.refusal is None and self.intake is not None:
            self.intake.add(piece)

    def borrow(self) -> memoryview | None:
        """Where the rest of the body belongs, if that is worth receiving in place. Raises ServeError."""
        try:
            return self.intake.borrow() if self.refusal is None and self.intake is not None else None
        except ServeError:
            raise
        except Exception as error:
            raise self._own_fault("lend") from error

    def wants_continue(self) -> bool:
        """Does the client wait to be told that it may send the body?"""
        return self.expects_continue and self.intake is not None and not self.intake.came

    def clone(self) -> "Exchange":
        """Another request with the same head, and nothing of its body yet."""
        site = self._site
        return type(self)(site, self._outlet, self.head, site.now, self.protocol, self.target, self.is_head)

    def repeated(self, body: bytes) -> "Exchange":
        """Another request with the same head: whole with this body, or large and begun with it. ServeError where
        there is no room for a large one.
        """
        site, head, target = self._site, self.head, self.target
        size = head.content_length or 0
        if size > SMALL_BODY:
            other = type(self)(site, self._outlet, head, site.now, self.protocol, target, self.is_head)
            other.intake = take_in(site, target, size)
            if body:
                other.intake.add(body)
            return other
        kept = body if target.takes_body else b""
        return type(self)(site, self._outlet, head, site.now, self.protocol, target, self.is_head, kept, True)

    # -- the answer, and the end ---------------------------------------------------------------------------

    def start(self) -> None:
        """The request is complete and it is its turn: decode and submit it, or answer the refusal."""
        self.is_started = True
        if self.refusal is not None:
            self.refuse(self.refusal)
            return
        body = Body(self.body) if self.intake is None else self.intake.body()
        try:
            if self.intake is not None and self.protocol.is_costly(self.head, len(body.data)):
                self._decode_elsewhere(body)
            else:
                operation, encoder = self.protocol.decode(self.head, self.target, body)
                self._submit(operation, encoder)
        except ServeError as error:
            self.refuse(error)
        except Exception:
            self.refuse(self._own_fault("decode or submit"))

    def _decode_elsewhere(self, body: Body) -> None:
        self._is_decoding = True
        self._site.offload(lambda: self.protocol.decode(self.head, self.target, body), self._decoded)

    def _decoded(self, result: Decoded | Exception) -> None:
        self._is_decoding = False
        if self.is_over:
            self.release()  # the client left meanwhile; until now the thread was reading the body
        elif isinstance(result, ServeError):
            self.refuse(result)
        elif isinstance(result, Exception):
            self.refuse(self._own_fault("decode", result))
        else:
            try:
                self._submit(*result)
            except Exception:
                self.refuse(self._own_fault("submit"))

    def _submit(self, operation: Operation, encoder: Encoder) -> None:
        self._encoder = encoder
        ticket = self._site.core.submit(operation, self._take)
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
            self.refuse(self._own_fault("encode"))
            self._cut(ticket, _CUT)
            return
        if answer.status:  # else the encoder keeps the part, to write it with a later one
            self._send(answer)
        if answer.final and not part.final:  # what follows is for nobody
            self._cut(ticket, _CUT)

    def refuse(self, error: ServeError) -> None:
        """Answer with the error in the protocol's form; in the middle of an answer, abort that short."""
        if self.is_over:
            return
        if self.is_streaming:
            self._outlet.break_off(self)
            return
        answer = refusal_of(error, self.protocol)
        self.keeps_alive &= answer is not LAST_RESORT
        self._send(answer)

    def _send(self, answer: HttpAnswer) -> None:
        if self._site.log is not None:
            self._note(self._site.log, answer)
        if answer.closes:
            self.keeps_alive = False
            if self.is_streaming and answer.status >= 400:  # the client must see that the rest is missing
                self._outlet.break_off(self)
                return
        if answer.final:
            self.is_over = True
            self.ticket = self._encoder = None
        try:
            self._outlet.send(self, answer)
        except Exception:  # an answer that is none, such as text where bytes belong
            self._own_fault("send")
            self._outlet.break_off(self)

    def _note(self, log: AccessLog, answer: HttpAnswer) -> None:
        self._sent += answer.size
        if not self.is_streaming:
            self._status = answer.status  # of the first part; those that follow cannot change it
        if answer.final:
            method = "HEAD" if self.is_head else self.head.method
            now, epoch = self._site.now, self._site.epoch
            path, peer = self.head.path, self._outlet.peer()
            log.add(AccessLine(epoch, peer, method, path, self._status, self._sent, now - self.began))

    def _own_fault(self, where: str, error: Exception | None = None) -> ServeError:
        _log.error("%s %s: %s raised", self.head.method, self.head.path, where, exc_info=error or True)
        self.keeps_alive = False
        return ServeError(
            Code.INTERNAL, "the server failed at this request by a fault of its own; see its log."
        )

    def cancel(self, why: ServeError) -> None:
        """Nobody waits for the answer: cancel what runs."""
        self.is_over = True
        ticket, self.ticket, self._encoder = self.ticket, None, None
        self._cut(ticket, why)

    def _cut(self, ticket: Ticket | None, why: ServeError) -> None:
        self._is_cut = True
        if ticket is not None:
            ticket.cancel(why)

    def release(self) -> None:
        """The body is needed no more, as soon as no thread reads it."""
        if self.intake is not None and not self._is_decoding:
            self.intake.release()
