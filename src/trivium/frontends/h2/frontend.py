"""The gRPC listener on our own HTTP/2: sockets, and the way down.

Decides when the front end listens, drains and ends. Everything about a connection is in `connection`, about a call in
`call` and `streaming`.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from trivium.frontends.access_log import AnswerLog, close_log, open_log
from trivium.frontends.entrance import EVERYBODY, Entrance
from trivium.frontends.h2.connection import H2Connection
from trivium.frontends.h2.shared import Shared
from trivium.frontends.h2.state import GrpcLimits, GrpcState
from trivium.frontends.http.ending import DrainReport
from trivium.frontends.thread_offload import ThreadOffload
from trivium.frontends.tls import TlsDoor
from trivium.types.interfaces import InferenceCore, RpcProtocol
from trivium.types.listeners import BindAddress

_BACKLOG = 1024
_FLUSH_SECONDS = 0.5
_CLOSING_SECONDS = 2.0
_HANDSHAKE_SECONDS = 10.0

logging.getLogger("hpack").setLevel(logging.INFO)  # at debug it logs every header, the keys among them


class H2Frontend:
    """Serves gRPC services to a core. `start`, then `drain`, then `close`, on one loop.

    `services` goes by their full names; `fallback` words the refusal of every other (without one the front end does).
    The entrance is asked about each call before a message of it is read.
    """

    def __init__(
        self,
        core: InferenceCore,
        services: Mapping[str, RpcProtocol],
        limits: GrpcLimits,
        fallback: RpcProtocol | None = None,
        entrance: Entrance = EVERYBODY,
        log: AnswerLog | None = None,
    ) -> None:
        """Log into `log`, which others may share and which stays open; else where the limits say."""
        self._shared_log = log
        self._tls = entrance.tls
        self._door: TlsDoor | None = None
        self._site = GrpcState(core, services, limits, entrance.authorizer, fallback)
        self._guests: set[H2Connection] = set()
        self._emptied = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._flusher: asyncio.TimerHandle | None = None
        self._offload = ThreadOffload("unpack")

    async def start(self, bind: BindAddress) -> BindAddress:
        """Listen, and return where: with the port that was bound, 0 having asked for any. OSError where port or log
        cannot be had.
        """
        site = self._site
        limits = site.limits
        loop = asyncio.get_running_loop()
        shared = Shared(site, loop.time, time.time, self._offload, self._emptied)
        site.log = self._shared_log or open_log(limits.access_log, limits.logs_alike)
        make: Callable[[], asyncio.BaseProtocol] = partial(H2Connection, shared, self._guests, loop)
        if self._tls is not None:
            self._door = TlsDoor(self._tls, "h2", _HANDSHAKE_SECONDS, make)
            self._door.bound(limits.calls, lambda: len(self._guests), site.addresses)
            make = self._door.protocol
        try:
            self._server = await loop.create_server(
                make, bind.host, bind.port, backlog=_BACKLOG, reuse_port=bind.is_shared or None
            )
        except OSError:
            await self.close()
            raise
        if site.log is not None:
            self._flush()
        return replace(bind, port=self._server.sockets[0].getsockname()[1])

    async def drain(self, grace: float) -> DrainReport:
        """Refuse new calls, let those in work finish for `grace` seconds, cut off the rest."""
        self._stop_accepting()
        site = self._site
        site.drain()
        for connection in tuple(self._guests):
            connection.leave()
        await self._until_empty(grace)
        now = asyncio.get_running_loop().time()
        unfinished = [
            f"gRPC {visit.method} from {visit.peer}, after {now - visit.began:.1f} s" for visit in site.visits
        ]
        told = {visit.peer for visit in site.visits}
        for guest in self._guests:
            if guest.unsent and guest.session.peer not in told:
                unfinished.append(
                    f"gRPC answers to {guest.session.peer}, which has not read {guest.unsent} bytes"
                )
        self._cut_all()
        return DrainReport(site.answered, tuple(unfinished))

    async def close(self) -> None:
        """End at once; returns when every call is gone."""
        self._stop_accepting()
        self._cut_all()
        if self._door is not None:
            await self._door.close()
        await self._until_empty(_CLOSING_SECONDS)
        await self._offload.close()
        if self._flusher is not None:
            self._flusher.cancel()
            self._flusher = None
        close_log(self._site.log, self._shared_log)
        self._site.log = None

    def _stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()

    def open_connections(self) -> int:
        """Count the connections that are open."""
        return len(self._guests)

    def _cut_all(self) -> None:
        if self._door is not None:
            self._door.cut()
        for connection in tuple(self._guests):
            connection.abort()

    async def _until_empty(self, seconds: float) -> None:
        """Until every call and connection is gone, for so many seconds at most."""
        site = self._site
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._guests:
                    self._emptied.clear()
                    await self._emptied.wait()
                while site.visits:
                    site.emptied.clear()
                    await site.emptied.wait()

    def _flush(self) -> None:
        if self._site.log is not None:
            self._site.log.flush()
        self._flusher = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self._flush)
