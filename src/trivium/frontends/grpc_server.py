"""The gRPC listener on grpcio's asyncio server: the only place that imports grpc.

Decides when the front end listens, drains and ends, and turns grpcio's contexts into calls of `grpc_unary` and
`grpc_stream`. Messages pass as bytes: grpcio knows neither their types nor their names.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from trivium.frontends.access_log import AccessLine, AccessLog
from trivium.frontends.grpc_site import GrpcLimits, GrpcSite, Visit
from trivium.frontends.grpc_stream import Stream
from trivium.frontends.grpc_unary import answer, reset_status, why_reset
from trivium.frontends.http import DrainReport
from trivium.tls import Tls
from trivium.types.errors import ServeError
from trivium.types.interfaces import RpcProtocol, Submits
from trivium.types.wire import Call, RpcAnswer, RpcKind

_FLUSH_SECONDS = 0.5
_COMPRESSION = {
    "none": None,
    "gzip": grpc.Compression.Gzip,
    "deflate": grpc.Compression.Deflate,
}
_STATUS = {status.value[0]: status for status in grpc.StatusCode}

Context = Any
"""A `grpc.aio.ServicerContext`; grpcio has no types."""


class GrpcFrontend(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Serves one protocol to a core, over TLS if that is given. `start`, then `drain`, then `close`, on one loop."""

    def __init__(
        self, core: Submits, protocol: RpcProtocol, limits: GrpcLimits, tls: Tls | None = None
    ) -> None:
        self._tls = tls
        self._site = GrpcSite(core, protocol, limits)
        self._server: Any = None
        self._drain_ends = float("inf")
        self._cut: list[str] = []
        self._flusher: asyncio.Task[None] | None = None
        self._handlers: dict[str, Any] = {}

    async def start(self, host: str, port: int) -> int:
        """Listen; the port that was bound, 0 having asked for any. OSError where port or log cannot be had."""
        limits = self._site.limits
        if limits.access_log is not None:
            self._site.log = AccessLog(limits.access_log)
            self._flusher = asyncio.create_task(self._flush_for_ever(), name="grpc access log")
        logging.getLogger(_GRPCIO_LOG).addFilter(is_worth_a_line)  # adding it twice is adding it once
        self._server = grpc.aio.server(
            options=_options(limits),
            maximum_concurrent_rpcs=limits.calls,
            compression=_COMPRESSION[limits.compression],
        )
        self._server.add_generic_rpc_handlers((self,))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            bound = self._bind(address)
        except RuntimeError as error:
            await self.close()
            raise OSError(f"gRPC cannot have {address}") from error
        await self._server.start()
        return bound

    def _bind(self, address: str) -> int:
        tls = self._tls
        bound: int
        if tls is None:
            bound = self._server.add_insecure_port(address)
        else:
            needs_client = tls.client_authorities is not None
            pair = [(tls.key, tls.certificate)]
            credentials = grpc.ssl_server_credentials(pair, tls.client_authorities, needs_client)
            bound = self._server.add_secure_port(address, credentials)
        return bound

    async def drain(self, grace: float) -> DrainReport:
        """Refuse new calls, let those in work finish for `grace` seconds, cut off the rest."""
        site = self._site
        self._drain_ends = asyncio.get_running_loop().time() + grace
        site.drain()
        if self._server is not None:
            await self._server.stop(grace)
        await self._until_empty()
        return DrainReport(site.finished, tuple(self._cut))

    async def close(self) -> None:
        """End at once; returns when every call is gone."""
        if self._server is not None:
            await self._server.stop(None)
            await self._until_empty()
        if self._flusher is not None:
            self._flusher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._flusher
            self._flusher = None
        if self._site.log is not None:
            self._site.log.close()
            self._site.log = None

    def service(self, details: Any) -> Any:
        """The handler of a method, as grpcio asks for it at each call."""
        method: str = details.method
        handler = self._handlers.get(method)
        if handler is not None:
            return handler
        try:
            kind = self._site.protocol.kind(method)
        except ServeError as error:
            return grpc.stream_stream_rpc_method_handler(self._refusing(method, error))
        if kind is RpcKind.UNARY:
            handler = grpc.unary_unary_rpc_method_handler(self._unary(method))
        else:
            handler = grpc.stream_stream_rpc_method_handler(self._stream(method))
        self._handlers[method] = handler  # only those that the protocol knows, so there are few
        return handler

    def _unary(self, method: str) -> Callable[[bytes, Context], Awaitable[bytes]]:
        async def serve(message: bytes, context: Context) -> bytes:
            visit = Visit(method, context.peer(), asyncio.get_running_loop().time())

            async def work() -> RpcAnswer:
                said = await answer(self._site, _call(method, context), message)
                visit.sent = len(said.message or b"")
                return said

            said = await self._during(visit, work, context)
            if said.code:
                await context.abort(_STATUS[said.code], said.details)
            return said.message or b""

        return serve

    def _stream(self, method: str) -> Callable[[Any, Context], Awaitable[None]]:
        async def serve(_: Any, context: Context) -> None:
            async def read() -> bytes | None:
                message = await context.read()
                return None if message is grpc.aio.EOF else message

            stream = Stream(self._site, lambda: _call(method, context), read, context.write, context.peer())
            said = await self._during(stream, stream.run, context)
            if said.code:
                await context.abort(_STATUS[said.code], said.details)

        return serve

    def _refusing(self, method: str, error: ServeError) -> Callable[[Any, Context], Awaitable[None]]:
        async def serve(_: Any, context: Context) -> None:
            said = self._site.refuse(Call(method), error)
            await context.abort(_STATUS[said.code], said.details)

        return serve

    async def _during(
        self, visit: Visit, work: Callable[[], Awaitable[RpcAnswer]], context: Context
    ) -> RpcAnswer:
        site = self._site
        site.enter(visit)
        said: RpcAnswer | None = None
        try:
            said = await work()
            return said
        except asyncio.CancelledError:
            now = asyncio.get_running_loop().time()
            if now >= self._drain_ends - _CLOSE_CALL:
                self._cut.append(f"gRPC {visit.method} from {visit.peer}, after {now - visit.began:.1f} s")
            raise
        finally:
            site.leave(visit, said is not None)
            if site.log is not None:
                seconds = asyncio.get_running_loop().time() - visit.began
                left = context.time_remaining()
                why = why_reset(None if left is None else seconds + left, seconds)
                code = reset_status(why) if said is None else said.code
                line = AccessLine(time.time(), visit.peer, "gRPC", visit.method, code, visit.sent, seconds)
                site.log.add(line)

    async def _until_empty(self) -> None:
        """grpcio has let go of its calls; their tasks end in the next turns."""
        site = self._site
        if site.visits:
            site.emptied.clear()
            await site.emptied.wait()

    async def _flush_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            if self._site.log is not None:
                self._site.log.flush()


def is_worth_a_line(record: logging.LogRecord) -> bool:
    """Whether what grpcio logs is news to an operator.

    An answer to a client that has just left is not. grpcio says nothing when it already knows that the client left,
    and an error with a traceback in the moment between the client's leaving and its own knowing.
    """
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not issubclass(kind, grpc.aio.InternalError)


_GRPCIO_LOG = "grpc._cython.cygrpc"
_CLOSE_CALL = 0.01
"""Seconds: what is cancelled as the time of a drain runs out is cancelled by it."""


def _call(method: str, context: Context) -> Call:
    metadata = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
    return Call(method, metadata, context.time_remaining())


def _options(limits: GrpcLimits) -> list[tuple[str, int]]:
    ages = (("age", limits.age_seconds), ("age_grace", limits.grace_seconds))
    return [
        # Unless it is wished for, a second server on the same port would take half of the calls.
        ("grpc.so_reuseport", int(limits.shares_port)),
        ("grpc.http2.max_pings_without_data", limits.pings_without_data),
        ("grpc.http2.max_ping_strikes", limits.ping_strikes),
        *((f"grpc.max_connection_{name}_ms", round(s * 1000)) for name, s in ages if s is not None),
        ("grpc.max_receive_message_length", limits.message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.keepalive_time_ms", round(limits.keepalive_seconds * 1000)),
        ("grpc.keepalive_timeout_ms", round(limits.keepalive_timeout * 1000)),
        ("grpc.keepalive_permit_without_calls", int(limits.pings_without_calls)),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", round(limits.ping_seconds * 1000)),
    ]
