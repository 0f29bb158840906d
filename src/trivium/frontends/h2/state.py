"""Holds what all calls of one gRPC front end share: the core and the protocol, the limits and what has been used of
them, the calls in work.

Decides whether there is room for a message, counts what was answered and what a drain cut off, and says what it means
that a client resets its call.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from trivium.codecs.credentials import AUTHORIZATION
from trivium.config.options import ServerConfig
from trivium.core.unread_answers import UnreadAnswers
from trivium.frontends.access_log import AnswerLog
from trivium.frontends.causes import CauseLog
from trivium.frontends.shares import Addresses, AddressUse, has_room
from trivium.types import reasons
from trivium.types.access import AccessScope
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import ALLOW_ALL, Authorizer, InferenceCore, RpcProtocol
from trivium.types.listeners import Role
from trivium.types.observing import RequestFacts
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind

_log = logging.getLogger(__name__)

RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, UNAUTHENTICATED = 8, 12, 13, 14, 16
PERMISSION_DENIED = 7
DEADLINE_EXCEEDED = 4
_DENIED = {Code.UNAUTHENTICATED: UNAUTHENTICATED, Code.FORBIDDEN: PERMISSION_DENIED}
LAST_RESORT = RpcAnswer(
    code=INTERNAL, details="The server failed at this call by a fault of its own; see its log."
)

GOING_DOWN = "The server is going down. Send the request elsewhere, or again later."

CANCELLED = ServeError(Code.CANCELLED, "The client cancelled the call, left, or stopped waiting for it.")
LATE = ServeError(Code.EXPIRED, "The client's deadline passed before its answer.")
ANSWERED = ServeError(Code.CANCELLED, "The call has been answered; what follows cannot be sent.")

_SLACK, _ON_ITS_WAY = 0.1, 0.02
"""How much of its timeout, and how many seconds, a client's deadline may be ahead of ours."""


def why_reset(timeout: float | None, waited: float) -> ServeError:
    """Why a call ends that its client reset, or left, after `waited` of the `timeout` seconds that it gave (None: it
    waits for ever).

    A client resets its call at its own deadline, which it mostly reaches before us: our time begins when the head of
    the call is here, and grpc rounds a timeout of more than a second up, by as much as 1 % (measured with grpcio 1.85).
    That is late, and counts as such, whichever of both tells first.
    """
    if timeout is not None and waited >= (1 - _SLACK) * timeout - _ON_ITS_WAY:
        return LATE
    return CANCELLED


def reset_status(why: ServeError) -> int:
    """Return what the access log says of such a call: as it is counted, gRPC's DEADLINE_EXCEEDED or CANCELLED."""
    return 4 if why is LATE else 1


@dataclass(frozen=True, slots=True)
class GrpcLimits:
    """Limits of one gRPC front end. Sizes are bytes, times seconds.

    `message_bytes`: of one request message. `total_message_bytes`: request messages held at once, by all calls. A
    call's message must come within `message_seconds` plus its bytes so far / `slowest_rate`; a call whose client takes
    fewer than `slowest_rate` bytes of what it is sent in `write_seconds` is ended; a connection without a call is
    closed after `idle_seconds` (None: never). `unsent_bytes`: responses that one stream's client has not taken
    yet; more ends the stream. `stream_requests`: requests in work on one stream before no more are read from it. The
    rest is what gRPC calls keep-alive: the server pings a silent connection after `keepalive_seconds` and closes it
    `keepalive_timeout` later; a client may ping every `ping_seconds`, and with `pings_without_calls` also while it has
    no call; after `ping_strikes` pings too early it is cut off. Of the server's own pings `pings_without_data` may
    follow one another. A connection ends
    after `age_seconds`, its calls `grace_seconds` later (None: never). `compression` is that of responses: none, gzip
    or deflate.
    """

    calls: int = 4096
    message_bytes: int = 64 * 1024 * 1024
    total_message_bytes: int = 1024 * 1024 * 1024
    unsent_bytes: int = 8 * 1024 * 1024
    stream_requests: int = 1024
    keepalive_seconds: float = 7200.0
    keepalive_timeout: float = 20.0
    ping_seconds: float = 300.0
    pings_without_calls: bool = False
    pings_without_data: int = 2
    ping_strikes: int = 2
    age_seconds: float | None = None
    grace_seconds: float | None = None
    compression: str = "none"
    access_log: str | None = None
    logs_alike: bool = False
    message_seconds: float = 20.0
    write_seconds: float = 30.0
    slowest_rate: int = 16 * 1024
    idle_seconds: float | None = 300.0

    @property
    def look_seconds(self) -> float:
        """Return the seconds between two looks at whether messages come and responses are taken."""
        return min(self.message_seconds, self.write_seconds) / 2


def grpc_limits(config: ServerConfig, role: Role = Role.INFERENCE) -> GrpcLimits:
    """The limits that the configuration sets for a listener of this role."""
    age, grace = config.grpc.connection_age, config.grpc.connection_grace
    if role is Role.MANAGEMENT:
        own = config.management
        age = age if own.grpc_connection_age < 0 else own.grpc_connection_age
        grace = grace if own.grpc_connection_grace < 0 else own.grpc_connection_grace
    return GrpcLimits(
        calls=config.server.max_connections,
        message_bytes=config.grpc.message_bytes or config.server.max_body_bytes,
        total_message_bytes=config.server.max_buffered_bytes,
        keepalive_seconds=config.grpc.keepalive_time,
        keepalive_timeout=config.grpc.keepalive_timeout,
        ping_seconds=config.grpc.min_ping_interval,
        pings_without_calls=config.grpc.pings_without_calls,
        pings_without_data=config.grpc.pings_without_data,
        ping_strikes=config.grpc.ping_strikes,
        age_seconds=age or None,
        grace_seconds=grace or None,
        compression=config.grpc.compression,
        access_log=config.server.access_log or None,
        logs_alike=config.server.log_format == "json",
        message_seconds=config.grpc.message_timeout,
        write_seconds=config.http.write_timeout,
        slowest_rate=config.http.slowest_rate,
        idle_seconds=config.grpc.idle_timeout or None,
    )


@dataclass(frozen=True, slots=True)
class RpcMethod:
    """A method of a service: its kind, the right that it needs, and the protocol that understands its messages."""

    kind: RpcKind
    scope: AccessScope
    protocol: RpcProtocol


class ActiveCall:
    """A call in work, as a drain sees it."""

    def __init__(self, method: str, peer: str, began: float) -> None:
        self.method = method
        self.peer = peer
        self.began = began
        self.sent = 0  # bytes of responses
        self.facts: RequestFacts | None = None  # that a log wants
        self.code = 0

    def begin_drain(self) -> None:
        """No more requests are expected; what is in work may finish."""


@dataclass(slots=True, eq=False)
class GrpcState:
    """Used on the loop only."""

    core: InferenceCore
    services: Mapping[str, RpcProtocol]
    limits: GrpcLimits
    authorizer: Authorizer = ALLOW_ALL
    fallback: RpcProtocol | None = None
    log: AnswerLog | None = None
    causes: CauseLog = field(default_factory=CauseLog)
    addresses: Addresses = field(default_factory=Addresses)
    unread: UnreadAnswers = field(init=False)
    held_bytes: int = 0
    is_draining: bool = False
    answered: int = 0  # calls, of all connections
    visits: set[ActiveCall] = field(default_factory=set)
    emptied: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.unread = UnreadAnswers(self.limits.total_message_bytes)

    def enter(self, visit: ActiveCall) -> None:
        """A call has begun."""
        self.visits.add(visit)
        if self.is_draining:
            visit.begin_drain()

    def leave(self, visit: ActiveCall, is_answered: bool) -> None:
        """It is over; `is_answered`: not because its client left, or the server abort it off."""
        self.visits.discard(visit)
        self.answered += is_answered
        if not self.visits:
            self.emptied.set()

    def drain(self) -> None:
        """Streams that have nothing in work end; calls end with their answers."""
        self.is_draining = True
        for visit in tuple(self.visits):
            visit.begin_drain()

    def reserve(self, size: int, use: AddressUse) -> None:
        """Room for a request message, to be given back by `unreserve`; ServeError where its address gets none."""
        limits = self.limits
        if not has_room(
            limits.total_message_bytes, self.held_bytes, use.held_bytes, size, limits.message_bytes
        ):
            raise ServeError(
                Code.TOO_LARGE,
                f"Request messages of {self.held_bytes} bytes are held, {use.held_bytes} of them for this address, and "
                f"{size} more would exceed the limit of {limits.total_message_bytes}, or its share of that. Try again "
                "later.",
            )
        self.held_bytes += size
        use.held_bytes += size

    def unreserve(self, size: int, use: AddressUse) -> None:
        """The bytes are needed no more."""
        self.held_bytes -= size
        use.held_bytes -= size
        assert self.held_bytes >= 0, "more bytes of messages were given back than reserved"
        if not use.connections:
            self.addresses.settle(use)

    def protocol_of(self, method: str) -> RpcProtocol:
        """The protocol that serves the method of this path, "/package.Service/Method", else the fallback, which refuses
        it. NO_SERVICE without either.
        """
        protocol = self.services.get(method[1:].rpartition("/")[0], self.fallback)
        if protocol is None:
            found, services = method[1:].rpartition("/")[0][:200], ", ".join(sorted(self.services))
            raise ServeError(
                Code.UNSUPPORTED,
                f"There is no service {found!r} here; there are: {services}.",
                info=ErrorInfo.of(reasons.NO_SERVICE),
            )
        return protocol

    def denied(self, scope: AccessScope, call: RpcCall) -> RpcAnswer | None:
        """Return the refusal of a call whose client has not that right; None where it has."""
        try:
            self.authorizer.authorize(scope, call)
        except ServeError as error:
            return RpcAnswer(code=_DENIED.get(error.code, INTERNAL), details=error.message)
        return None

    def without_key(self, metadata: Mapping[str, str]) -> Mapping[str, str]:
        """Return what a protocol may see of a call's metadata: who runs a model has no business with keys."""
        if self.authorizer is ALLOW_ALL or AUTHORIZATION not in metadata:
            return metadata
        return {name: value for name, value in metadata.items() if name != AUTHORIZATION}

    def note_cause(self, call: RpcCall, error: ServeError, answer: RpcAnswer) -> None:
        """Log why a request has failed, if its answer does not say so."""
        self.causes.ended(error, self.protocol_of(call.method).scope(call.method), answer)

    def refuse(self, call: RpcCall, error: Exception) -> RpcAnswer:
        """An error in the protocol's form. What is no ServeError is our own fault: logged, and INTERNAL."""
        if not isinstance(error, ServeError):
            _log.error("%s raised", call.method, exc_info=error)
            return LAST_RESORT
        if error.reason == reasons.NO_SERVICE:
            return RpcAnswer(code=UNIMPLEMENTED, details=error.message)
        try:
            answer = self.protocol_of(call.method).refuse(call, error)
            self.note_cause(call, error, answer)
            return answer
        except Exception:
            _log.exception("refusing a call raised")
            return LAST_RESORT
