"""A server that lives inside another program: on a loop and in a thread of its own, so that neither holds up the other.

Decides when it starts and ends. The program may have several loops, one after another or at once, as test clients do;
requests come from any of them.
"""

import asyncio
import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from time import monotonic

import uvloop

from trivium import app
from trivium.app import Site
from trivium.commands import life
from trivium.commands.life import FatalFailure, Life, LifeWords, ListenMoment, ServerParts, StartReport
from trivium.commands.listeners import Listeners
from trivium.commands.reload import FileFollower, files_of
from trivium.commands.stopping import EXTRA
from trivium.core.server import Server
from trivium.frontends.asgi.frontend import AsgiFrontend
from trivium.types.errors import Code, ServeError, frameless
from trivium.types.operations import CollectMetrics, ResponsePart
from trivium.types.sources import Place

_log = logging.getLogger(__name__)


class StopRequest:
    """Implements `Stop` for a server whose program asks it to stop; `grace` in seconds."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._began: float | None = None
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Begin the time of grace. Called on the server's loop."""
        if self._began is None:
            self._began = monotonic()
        self._asked.set()

    @property
    def left(self) -> float:
        """See `Stop`."""
        return self._grace if self._began is None else max(self._began + self._grace - monotonic(), 0.0)

    async def wait(self) -> None:
        """See `Stop`."""
        await self._asked.wait()


class EmbeddedServer:
    """One life of a server inside another program. `started` gets what takes requests, once everything is loaded, or
    why nothing is served; `ended` is done when all is closed. Nobody can cancel either.
    """

    def __init__(self, parts: ServerParts, paths: Sequence[Place]) -> None:
        self._parts = parts
        self._paths = paths
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: StopRequest | None = None
        self._is_stopped = threading.Event()
        self._failures: list[str] = []
        self._served: Server | None = None
        self.started: Future[AsgiFrontend] = Future()
        self.ended: Future[None] = Future()
        for each in (self.started, self.ended):
            each.set_running_or_notify_cancel()
        threading.Thread(target=self._run, name="trivium", daemon=True).start()

    def stop(self) -> None:
        """Have it drain, unload and end. From any thread; further calls have no effect."""
        self._is_stopped.set()
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and not self.ended.done():
            try:
                loop.call_soon_threadsafe(stop.ask)
            except RuntimeError:  # the loop is closed: it has ended
                return

    def stop_and_wait(self) -> None:
        """Have it end, and return when it has, or when its time is up."""
        self.stop()
        try:
            self.ended.result(self._parts.config.server.drain_timeout + EXTRA)
        except TimeoutError:
            _log.warning("The models of this program were not closed in time; it ends all the same.")

    def exchange(self, places: Sequence[Place]) -> Future[None]:
        """Have it serve what these places hold, as `Server.exchange`, once it has started. From any thread."""
        served, loop = self._up()
        return asyncio.run_coroutine_threadsafe(served.exchange(places), loop)

    def metrics(self) -> Future[ResponsePart]:
        """Have its metrics collected, once it has started; they are the answer. From any thread."""
        served, loop = self._up()
        return asyncio.run_coroutine_threadsafe(served.execute(CollectMetrics()), loop)

    def _up(self) -> tuple[Server, asyncio.AbstractEventLoop]:
        served, loop = self._served, self._loop
        if served is None or loop is None or self.ended.done():
            raise ServeError(Code.DRAINING, "The models of this program are not served.")
        return served, loop

    def _run(self) -> None:
        fault: BaseException | None = None
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._live())
        except BaseException as error:
            fault = frameless(error)
        if not self.started.done():
            self.started.set_exception(fault or self._why_not())
        elif fault is not None:
            _log.error("The models of this program are not served any more.", exc_info=fault)
        self.ended.set_result(None)

    async def _live(self) -> None:
        parts, config = self._parts, self._parts.config
        self._stop = stop = StopRequest(config.server.drain_timeout)
        self._loop = asyncio.get_running_loop()
        if self._is_stopped.is_set():
            stop.ask()
        async with app.build(parts.catalogue, config, formats=parts.formats, follows_files=True) as server:
            site = Site(parts.catalogue, config, server.regions, parts.states, server.metrics.find)
            only = [app.called_listener(parts.catalogue, config)]
            listeners = Listeners(server, site, only=only)
            await life.live_with(self._record(listeners), server, listeners, stop)

    def _record(self, listeners: Listeners) -> Life[str]:
        """Return how it lives: it is asked once everything is loaded, and goes on if anything serves."""
        reloads = self._parts.config.models.reload
        follower = FileFollower(files_of(self._paths))

        async def up(server: Server, report: StartReport) -> None:
            """Have requests handed over."""
            follower.begin()
            front = listeners.called
            assert front is not None, "what lives here is called"
            self._served = server
            self.started.set_result(front)

        return Life(
            parts=self._parts,
            words=LifeWords(loaded=self._loaded, cut_off=_cut_off),
            say=_log.warning,
            add=lambda server: app.add_all(server, self._paths),
            listens=ListenMoment.ADDED,
            fatal=FatalFailure.NONE if reloads else FatalFailure.ALL,
            up=up,
            beside=follower.beside if reloads else life.no_companion,
        )

    def _loaded(self, report: StartReport) -> Iterator[str]:
        """Say what did not load."""
        self._failures = [f"Model '{row.model}' did not load. {row.reason}" for row in report.failed]
        yield from self._failures

    def _why_not(self) -> ServeError:
        if self._is_stopped.is_set():
            return ServeError(Code.DRAINING, "The models were asked to stop before they were loaded.")
        reasons = " ".join(self._failures) or "There is no model in these places."
        return ServeError(Code.LOAD_FAILED, f"Nothing can be served. {reasons}")


def _cut_off(what: str) -> Iterator[str]:
    yield f"cut off: {what}"
