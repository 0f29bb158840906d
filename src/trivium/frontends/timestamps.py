"""Adds to requests how they came: when, over which wire, and as a part of what trace of their client's.

In use where requests may be traced, and nowhere else. The header is that of W3C Trace Context; what becomes of it the
core decides.
"""

from time import monotonic

import msgspec

from trivium.frontends.http.exchange import Exchange
from trivium.types.access import AccessScope
from trivium.types.errors import ServeError
from trivium.types.interfaces import Encoder, RpcEncoder, RpcProtocol
from trivium.types.operations import Infer, Operation
from trivium.types.tracing import RequestOrigin
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind

_PARENT, _STATE = b"traceparent", b"tracestate"


class TimestampedExchange(Exchange, eq=False):
    """It is made when its head has come, and started when its body has."""

    _arrived: float = 0.0
    _whole: float = 0.0

    def __post_init__(self) -> None:
        self._arrived = monotonic()

    def start(self) -> None:
        """See `Exchange`."""
        self._whole = monotonic()
        super().start()

    def _submit(self, operation: Operation, encoder: Encoder) -> None:
        if isinstance(operation, Infer):
            headers = self.request.head.headers
            parent = headers.get(_PARENT, b"").decode("latin-1")
            state = headers.get(_STATE, b"").decode("latin-1") if parent else ""
            origin = RequestOrigin("HTTP", self._arrived, self._whole, parent, state)
            operation = msgspec.structs.replace(operation, origin=origin)
        super()._submit(operation, encoder)


class TimestampedRpcs:
    """A protocol over gRPC whose requests say how they came. When the first byte of a message came is not known: one
    that is there has just come, all of it.
    """

    def __init__(self, protocol: RpcProtocol) -> None:
        self._protocol = protocol

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
            origin = RequestOrigin("GRPC", now, now, parent, state)
            operation = msgspec.structs.replace(operation, origin=origin)
        return operation, encoder

    def refuse(self, call: RpcCall, error: ServeError) -> RpcAnswer:
        """See `RpcProtocol`."""
        return self._protocol.refuse(call, error)
