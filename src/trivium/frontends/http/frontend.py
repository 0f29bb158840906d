"""The HTTP/1.1 listener: sockets, the decoding threads, and the way down.

Decides when the front end listens, drains and ends. Everything about a connection is in `connection`, about a
request in `exchange`; the clock is read by the sweeper in `state`.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from trivium.frontends.access_log import AnswerLog, close_log, open_log
from trivium.frontends.entrance import EVERYBODY, Entrance
from trivium.frontends.http.connection import HttpConnection
from trivium.frontends.http.ending import DrainReport, cut_all, drained, until_empty
from trivium.frontends.http.state import HttpDebugState, HttpState, Sweeper
from trivium.frontends.limits import HttpLimits
from trivium.frontends.thread_offload import ThreadOffload
from trivium.frontends.tls import TlsDoor
from trivium.types.interfaces import Core, WireProtocol
from trivium.types.listeners import BindAddress

_BACKLOG = 1024


class HttpFrontend:
    """Serves wire protocols to a core. `start`, then `stop_accepting` and `drain`, then `close`, on one loop.

    `routes` goes by the first segment of the path; `fallback` words the refusals of all else. The entrance
    is asked about each head.
    """

    def __init__(
        self,
        core: Core,
        routes: Mapping[str, WireProtocol],
        fallback: WireProtocol,
        limits: HttpLimits,
        entrance: Entrance = EVERYBODY,
        log: AnswerLog | None = None,
    ) -> None:
        """Log into `log`, which others may share and which stays open; else where the limits say."""
        self._offload = ThreadOffload("decode")
        self._site = HttpState(
            core, routes, fallback, limits, self._offload, entrance.authorizer, entrance.pages
        )
        self._shared_log = log
        self._tls = entrance.tls
        self._door: TlsDoor | None = None
        self._server: asyncio.Server | None = None
        self._socket: Path | None = None
        self._sweeper: Sweeper | None = None

    async def start(self, bind: BindAddress) -> BindAddress:
        """Listen, and return where: with the port that was bound, 0 having asked for any. OSError where address or log
        cannot be had.
        """
        site = self._site
        loop = asyncio.get_running_loop()
        make: Callable[[], asyncio.BaseProtocol] = partial(HttpConnection, site)
        if self._tls is not None:
            self._door = TlsDoor(self._tls, "http/1.1", site.limits.header_seconds, make)
            self._door.bound(site.limits.connections, lambda: len(site.connections), site.addresses)
            make = self._door.protocol
        if bind.path:
            await _check_free(bind.path)
            self._server = await loop.create_unix_server(make, bind.path, backlog=_BACKLOG)
            self._socket = Path(bind.path)
        else:
            self._server = await loop.create_server(
                make, bind.host, bind.port, backlog=_BACKLOG, reuse_port=bind.is_shared or None
            )
        try:
            site.log = self._shared_log or open_log(site.limits.access_log, site.limits.logs_alike)
        except OSError:
            self.stop_accepting()
            raise
        self._sweeper = Sweeper(site, loop)
        return bind if bind.path else replace(bind, port=self._server.sockets[0].getsockname()[1])

    def debug_state(self) -> HttpDebugState:
        """Copy what the front end holds at this moment, for a developer who debugs."""
        return self._site.debug_state()

    def open_connections(self) -> int:
        """Count the connections that are open."""
        return len(self._site.connections)

    def stop_accepting(self) -> None:
        """New connections are refused by the kernel; those that are open go on."""
        if self._server is not None:
            self._server.close()
        if self._socket is not None:
            self._socket.unlink(missing_ok=True)
            self._socket = None

    async def drain(self, grace: float) -> DrainReport:
        """Close idle connections, let requests in work finish for `grace` seconds, tell the rest that their time
        is up.
        """
        self.stop_accepting()
        report = await drained(self._site, grace)
        self._cut_all()
        return report

    async def close(self) -> None:
        """End at once; returns when every connection, task and thread is gone."""
        self.stop_accepting()
        self._cut_all()
        if self._door is not None:
            await self._door.close()
        await until_empty(self._site, None)
        if self._sweeper is not None:
            self._sweeper.close()
        await self._offload.close()
        close_log(self._site.log, self._shared_log)

    def _cut_all(self) -> None:
        if self._door is not None:
            self._door.cut()
        cut_all(self._site)


async def _check_free(path: str) -> None:
    """Raise OSError where somebody listens on this Unix socket; one that was left behind may be replaced."""
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except OSError:
        return
    writer.close()
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
