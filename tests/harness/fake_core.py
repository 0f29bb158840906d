"""Stand-ins for a protocol and a core, at once or on the test's word."""

from dataclasses import dataclass, field

from trivium.types.buffers import Lease
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Sink
from trivium.types.operations import Infer, Operation, ResponsePart
from trivium.types.payload import Raw, RawPart
from trivium.types.wire import Body, Head, HttpAnswer, Target, costly

STATUS = {
    Code.UNAUTHENTICATED: 401,
    Code.INVALID: 400,
    Code.NOT_FOUND: 404,
    Code.TOO_LARGE: 413,
    Code.QUEUE_FULL: 503,
    Code.EXPIRED: 504,
}


class EchoProtocol:
    """Routes `/echo/<verb>`; POST takes a body, and the answer is the request's body, or the verb."""

    def head(self, head: Head) -> Target:
        segments = head.path.split("/")
        verb = segments[2] if len(segments) > 2 else ""
        if verb == "missing":
            raise ServeError(Code.NOT_FOUND, "no such verb")
        if verb == "unspeakable":
            raise ServeError(Code.INVALID, "unspeakable")
        if verb == "crash-head":
            raise RuntimeError("a fault in head")
        return Target(verb, verb, takes_body=head.method == "POST")

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        return head.path.endswith("/costly")

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, "EchoEncoder"]:
        if target.verb == "bad":
            raise ServeError(Code.INVALID, "bad body")
        if target.verb == "crash-decode":
            raise RuntimeError("a fault in decode")
        payload = Raw((RawPart(bytes(body.data) or target.verb.encode()),), lease=body.lease)
        return Infer(target.verb, payload), EchoEncoder(target.verb)

    def refuse(self, error: ServeError) -> HttpAnswer:
        if error.message == "unspeakable":
            raise RuntimeError("a fault in refuse")
        text = error.message.encode()
        wait = b"" if error.retry_after is None else b"Retry-After: %d\r\n" % error.retry_after
        return HttpAnswer(STATUS.get(error.code, 500), wait, (text,), len(text))


class EchoEncoder:
    """The parts of a payload, one after another."""

    def __init__(self, verb: str) -> None:
        self._verb = verb

    def encode(self, part: ResponsePart) -> HttpAnswer:
        if self._verb == "crash-encode":
            raise RuntimeError("a fault in encode")
        if self._verb == "crash-send":
            return HttpAnswer(200, b"", ("text",), 4)  # type: ignore[arg-type]
        if part.error is not None:
            return EchoProtocol().refuse(part.error)
        data = tuple(raw.data for raw in part.payload.parts) if isinstance(part.payload, Raw) else ()
        answer = HttpAnswer(200, b"X-Echo: 1\r\n", data, sum(map(len, data)), part.final)
        return costly(lambda: answer) if data[:1] == (b"slowly",) else answer


@dataclass(eq=False)
class FakeTicket:
    """One submission, answered at once or by the test."""

    operation: Infer
    sink: Sink
    cancelled: ServeError | None = None
    is_over: bool = False
    is_held: bool = False

    def hold(self) -> None:
        self.is_held = True

    def resume(self) -> None:
        self.is_held = False

    def cancel(self, why: ServeError) -> None:
        self.cancelled = why
        if not self.is_over:
            self.answer(ResponsePart(error=why))

    def echo(self) -> None:
        self.answer(ResponsePart(payload=self.operation.payload))

    def say(self, data: bytes, final: bool = False) -> None:
        self.answer(ResponsePart(payload=Raw((RawPart(data),)), final=final))

    def answer(self, part: ResponsePart) -> None:
        self.is_over = part.final
        lease = self.operation.payload.lease
        if part.final and lease is not None:
            lease.release()
        self.sink(part)


@dataclass
class FakeCore:
    """Holds leases as the real one does, from submission until the final part."""

    is_prompt: bool = True
    tickets: list[FakeTicket] = field(default_factory=list)
    lent: int = 0

    def lend(self, model: str, version: str, size: int, lead: int = 0) -> Lease:
        if model == "unlendable":
            raise ServeError(Code.QUEUE_FULL, "no buffers")
        self.lent += 1
        return Lease(memoryview(bytearray(size + 16)), self._take_back)

    def _take_back(self, lease: Lease) -> None:
        assert not any(lease.view[-16:]), "written beyond what was asked for"
        self.lent -= 1

    def submit(self, operation: Operation, sink: Sink) -> FakeTicket:
        assert isinstance(operation, Infer)
        if operation.model == "crash-submit":
            raise RuntimeError("a fault in submit")
        if operation.payload.lease is not None:
            operation.payload.lease.hold()
        ticket = FakeTicket(operation, sink)
        self.tickets.append(ticket)
        if self.is_prompt and operation.model != "never":
            ticket.echo()
        return ticket
