"""A front end without a socket: another program's server hands requests over, by the ASGI specification.

Decides when requests are taken. Everything about a request is in `connection`, about its caller in `caller`.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from trivium.frontends.access_log import AnswerLog, close_log, open_log
from trivium.frontends.asgi.caller import AsgiCaller, Receive, Send
from trivium.frontends.asgi.connection import AsgiConnection
from trivium.frontends.asgi.scope import request_of
from trivium.frontends.entrance import EVERYBODY, Entrance
from trivium.frontends.http.ending import DrainReport, cut_all, drained, until_empty
from trivium.frontends.http.state import HttpDebugState, HttpState, Sweeper
from trivium.frontends.limits import HttpLimits
from trivium.frontends.thread_offload import ThreadOffload
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Core, WireProtocol
from trivium.types.listeners import BindAddress


class AsgiFrontend:
    """Serves wire protocols to a core, for requests that are handed over. `start`, then `drain`, then `close`, on one
    loop; `serve` from any other loop meanwhile. With `is_guarded` nobody is served who comes from another machine.
    """

    def __init__(
        self,
        core: Core,
        routes: tuple[Mapping[str, WireProtocol], WireProtocol],
        limits: HttpLimits,
        entrance: Entrance = EVERYBODY,
        log: AnswerLog | None = None,
        *,
        is_guarded: bool = True,
    ) -> None:
        """`routes` are those by the first segment of the path, and what refuses all else. See `HttpFrontend`."""
        self._offload = ThreadOffload("decode")
        self._site = HttpState(core, *routes, limits, self._offload, entrance.authorizer, entrance.pages)
        self._is_guarded = is_guarded
        self._shared_log = log
        self._sweeper: Sweeper | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self, bind: BindAddress) -> BindAddress:
        """Take requests; the address is none. OSError where the log cannot be had."""
        site = self._site
        site.log = self._shared_log or open_log(site.limits.access_log)
        self._loop = asyncio.get_running_loop()
        self._sweeper = Sweeper(site, self._loop)
        return bind

    async def serve(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request, on the loop of whoever calls; returns once its answer was sent, or its client has left.
        Raises the error by which an answer that has begun breaks off, and what `receive` and `send` raise.
        """
        site, asked = self._site, request_of(scope)
        caller = AsgiCaller(self._post)
        connection = AsgiConnection(site, caller, asked, self._is_guarded)
        await caller.run(connection, receive, send, asked.lacks_size, site.limits.body_seconds)

    def _post(self, work: Callable[..., None], *facts: object) -> None:
        """Have this done on the loop of the front end. ServeError where that has ended."""
        loop = self._loop
        try:
            if loop is None:
                raise RuntimeError
            loop.call_soon_threadsafe(work, *facts)
        except RuntimeError as error:
            text = "These models are not served any more: the application was shut down. Start it again."
            raise ServeError(Code.DRAINING, text) from error

    def debug_state(self) -> HttpDebugState:
        """Copy what the front end holds at this moment, for a developer who debugs."""
        return self._site.debug_state()

    def open_connections(self) -> int:
        """Count the requests that are in work."""
        return len(self._site.connections)

    async def drain(self, grace: float) -> DrainReport:
        """Let requests in work finish for `grace` seconds, and cut off the rest; new ones are refused."""
        report = await drained(self._site, grace)
        cut_all(self._site)
        return report

    async def close(self) -> None:
        """End at once; returns when every request, task and thread is gone."""
        cut_all(self._site)
        await until_empty(self._site, None)
        if self._sweeper is not None:
            self._sweeper.close()
        await self._offload.close()
        close_log(self._site.log, self._shared_log)
