"""A server of models as an ASGI 3 application, for the server of another program: alone, or mounted in an application.

Decides when the models are loaded and closed: with the program's lifespan, or at the first request where nobody runs
that. Routes, translations and limits are those of the front end. Source: the ASGI specification 3.0.
"""

import asyncio
import atexit
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from trivium.commands.embedded import EmbeddedServer
from trivium.commands.life import ServerParts
from trivium.frontends.asgi.caller import Receive, Send
from trivium.frontends.asgi.frontend import AsgiFrontend
from trivium.types.errors import Code, ServeError, anew, said_by
from trivium.types.sources import Place
from trivium.types.statistics import MetricsReport

_ELSEWHERE = (
    "trivium.asgi runs on the loops of asyncio alone. Use a server, or a test client, that has one: uvicorn, hypercorn "
    "with its worker class asyncio, or the backend asyncio of a test client."
)


class AsgiApplication:
    """An ASGI 3 application that answers the HTTP routes of a Trivium server, each at the path below the application.

    The models are loaded in the lifespan of the program that runs it, by the `lifespan` events of its server or by the
    context of the same name, and are drained and closed with the last of these. Where nobody runs either, they are
    loaded at the first request, which waits for that, and closed at the program's end. Requests may come from any
    thread and any loop of asyncio.
    """

    def __init__(self, parts: ServerParts, paths: Sequence[Place]) -> None:
        """Nothing is read, opened or started yet."""
        self._parts = parts
        self._paths = tuple(paths)
        self._lock = threading.Lock()
        self._server: EmbeddedServer | None = None
        self._users = 0

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve a request, or a lifespan. Raises ServeError: LOAD_FAILED or NOT_FOUND where the models could not be
        loaded, CANCELLED where an answer breaks off that has begun; and what `receive` and `send` raise.
        """
        match scope["type"]:
            case "http":
                front = await self._front()
                await front.serve(scope, receive, send)
            case "lifespan":
                await self._live(receive, send)
            case "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1002})
            case other:
                raise ServeError(
                    Code.UNSUPPORTED,
                    f"The scope is of the type {other!r}; this application serves http and lifespan.",
                )

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Load the models, and drain and close them behind the block: for the `lifespan` of an application in which
        this one is mounted, since those run none but their own. Raises ServeError where nothing can be served.
        """
        await self._enter()
        try:
            yield
        finally:
            await self._leave()

    async def exchange(self, places: Sequence[Place]) -> None:
        """Serve what these places hold from now on, in place of those before, all of it or nothing; requests go on
        meanwhile. Raises ServeError as `Server.exchange`.
        """
        await asyncio.wrap_future((await self._loaded()).exchange(places))

    async def saturation(self) -> float:
        """Return how full the fullest model is: 1 where all its instances are at work and nobody waits. See
        `saturation_policy`.
        """
        report = (await asyncio.wrap_future((await self._loaded()).metrics())).answer
        assert isinstance(report, MetricsReport), "it was asked for"
        return max((version.saturation for version in report.versions), default=0.0)

    async def _loaded(self) -> EmbeddedServer:
        await self._front()
        assert self._server is not None, "it has started"
        return self._server

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._enter()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": said_by(error)})
            raise  # as Starlette does: its test client waits for that
        try:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        finally:
            await self._leave()
        await send({"type": "lifespan.shutdown.complete"})

    async def _enter(self) -> None:
        with self._lock:
            self._users += 1
        try:
            await self._front()
        except BaseException:
            await self._leave()
            raise

    async def _leave(self) -> None:
        """Have the models closed with the last who needs them."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            server, self._server = self._server, None
        if server is not None:
            atexit.unregister(server.stop_and_wait)
            server.stop()
            await asyncio.shield(asyncio.wrap_future(server.ended))

    async def _front(self) -> AsgiFrontend:
        """Return what takes requests, once the models are loaded."""
        try:
            asyncio.get_running_loop()
        except RuntimeError as error:
            raise ServeError(Code.UNSUPPORTED, _ELSEWHERE) from error
        server = self._server
        if server is None:
            with self._lock:
                server = self._server
                if server is None:
                    server = self._server = EmbeddedServer(self._parts, self._paths)
                    atexit.register(server.stop_and_wait)
        if server.started.done():
            fault = server.started.exception()
            if fault is not None:
                raise anew(fault)
            return server.started.result()
        return await asyncio.shield(asyncio.wrap_future(server.started))
