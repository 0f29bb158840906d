"""Adds to requests how they came: when, over which wire, and as a part of what trace of their client's.

In use where requests may be traced or are recorded, or a log wants their times exactly, and nowhere else. The header is
that of W3C Trace Context; what becomes of it the core decides.
"""

from time import monotonic, time

import msgspec

from trivium.core.observability.tracing_policy import is_context
from trivium.frontends.access_log import AccessLine, DetailedLine, ServedLine
from trivium.frontends.http.exchange import Exchange
from trivium.frontends.http.state import HttpState
from trivium.types.access import AccessScope
from trivium.types.errors import ServeError
from trivium.types.interfaces import Encoder, RpcEncoder, RpcProtocol
from trivium.types.observing import RequestFacts
from trivium.types.operations import Infer, InferLazily, Operation
from trivium.types.tracing import RequestOrigin, trace_id
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind

_PARENT, _STATE = b"traceparent", b"tracestate"


class TimedExchange(Exchange, eq=False):
    """An exchange that reads the clock for its line in the log. It is made when its head has come."""

    _arrived: float = 0.0

    def __post_init__(self) -> None:
        self._arrived = monotonic()

    def _line(self) -> AccessLine:
        request, log = self.request, self._site.log
        if log is None or not log.is_exact:
            return super()._line()
        head, version = request.head, "HTTP/1.1" if request.is_http11 else "HTTP/1.0"
        size, seconds = self._sent, monotonic() - self._arrived
        peer = self._peer or self._outlet.peer()
        return DetailedLine(
            time(), peer, request.method, head.path, self._status, size, seconds, head.query, version
        )


class TimestampedExchange(TimedExchange, eq=False):
    """One whose request may be traced. It is started when its body has come."""

    _whole: float = 0.0
    _facts: RequestFacts | None = None

    def start(self) -> None:
        """See `Exchange`."""
        self._whole = monotonic()
        super().start()

    def _submit(self, operation: Operation, encoder: Encoder) -> None:
        if isinstance(operation, Infer | InferLazily):
            headers, log = self.request.head.headers, self._site.log
            parent = headers.get(_PARENT, b"").decode("latin-1")
            state = headers.get(_STATE, b"").decode("latin-1") if parent else ""
            if log is not None and log.takes_facts:
                self._facts = _facts(operation, parent)
            origin = RequestOrigin("HTTP", self._arrived, self._whole, parent, state, self._facts)
            operation = _with_origin(operation, origin)
        super()._submit(operation, encoder)

    def _line(self) -> AccessLine:
        if self._facts is None:
            return super()._line()
        request, seconds = self.request, monotonic() - self._arrived
        peer, path = self._peer or self._outlet.peer(), request.head.path
        return ServedLine(
            time(), peer, request.method, path, self._status, self._sent, seconds, facts=self._facts
        )


def _facts(operation: Infer | InferLazily, parent: str) -> RequestFacts:
    """Return what is known of a request before it comes to its model."""
    infer = operation if isinstance(operation, Infer) else operation.infer
    return RequestFacts(infer.id, infer.model, infer.version, trace_id(parent) if is_context(parent) else "")


def _with_origin(operation: Infer | InferLazily, origin: RequestOrigin) -> Operation:
    if isinstance(operation, Infer):
        return msgspec.structs.replace(operation, origin=origin)
    return msgspec.structs.replace(operation, infer=msgspec.structs.replace(operation.infer, origin=origin))


def exchange_kind(site: HttpState) -> type[Exchange]:
    """Return the kind of exchange that requests to a front end become."""
    if site.limits.record_timestamps or (site.log is not None and site.log.takes_facts):
        return TimestampedExchange
    return TimedExchange if site.log is not None and site.log.is_exact else Exchange


class TimestampedRpcs:
    """A protocol over gRPC whose requests say how they came. When the first byte of a message came is not known: one
    that is there has just come, all of it.
    """

    def __init__(self, protocol: RpcProtocol, takes_facts: bool = False) -> None:
        """`takes_facts`: a log wants what can be collected about each of them."""
        self._protocol = protocol
        self._takes_facts = takes_facts

    def kind(self, method: str) -> RpcKind:
        """See `RpcProtocol`."""
        return self._protocol.kind(method)

    def scope(self, method: str) -> AccessScope:
        """See `RpcProtocol`."""
        return self._protocol.scope(method)

    def admit(self, call: RpcCall) -> None:
        """See `RpcProtocol`."""
        self._protocol.admit(call)

    def is_costly(self, call: RpcCall, message: bytes) -> bool:
        """See `RpcProtocol`."""
        return self._protocol.is_costly(call, message)

    def decode(self, call: RpcCall, message: bytes) -> tuple[Operation, RpcEncoder]:
        """See `RpcProtocol`."""
        now = monotonic()
        operation, encoder = self._protocol.decode(call, message)
        if isinstance(operation, Infer):
            parent = call.metadata.get("traceparent", "")
            state = call.metadata.get("tracestate", "") if parent else ""
            facts = _facts(operation, parent) if self._takes_facts else None
            origin = RequestOrigin("GRPC", now, now, parent, state, facts)
            operation = msgspec.structs.replace(operation, origin=origin)
        return operation, encoder

    def refuse(self, call: RpcCall, error: ServeError) -> RpcAnswer:
        """See `RpcProtocol`."""
        return self._protocol.refuse(call, error)
