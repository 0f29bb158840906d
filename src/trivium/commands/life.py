"""The life of a serving command: build, listen, add models, load, say what is up, wait, drain, close, exit.

Decides the order of these, what ends the process and its exit status, all as the record of a command says. Must not
know any server by name, nor to whom its lines go.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Generic, NoReturn, Protocol, TypeVar

from trivium import app
from trivium.app import Catalogue, Site
from trivium.commands.cannot_listen import CannotListen
from trivium.commands.collector import COLLECTIONS
from trivium.commands.listeners import Listeners
from trivium.commands.process import START, observer, run
from trivium.commands.stopping import CUT_OFF, StopSignals
from trivium.config.memory_share_policy import within_memory
from trivium.config.options import ServerConfig
from trivium.core.server import Server
from trivium.frontends.access_log import AnswerLog
from trivium.machine.allowance_policy import in_words
from trivium.machine.control_group import allowance
from trivium.machine.use import machine_bytes
from trivium.types.by_type import ByType
from trivium.types.errors import frameless
from trivium.types.interfaces import Authorizer, Format
from trivium.types.operations import Listing, VersionStatus
from trivium.types.recording import ServingRecorder
from trivium.types.spec import ModelSpec
from trivium.types.state import VersionState
from trivium_worker.wire import system

_log = logging.getLogger(START)

Line = TypeVar("Line")
"""What a command says at once: a record of its log, a text on its screen."""

Told = Callable[[VersionStatus], None]
"""Hears of each change of a version's state."""


class ListenMoment(Enum):
    """Says when a server opens its ports."""

    FIRST = "before it looks at any place of models"
    ADDED = "once every place of models is found, before any is read"
    KNOWN = "once every model is known, before any is loaded"
    LOADED = "once every model is loaded, or has failed"


class FatalFailure(Enum):
    """Says which models that fail at the start end the server."""

    NONE = "it goes on without them"
    ANY = "one is enough"
    ALL = "only if nothing else serves"


class Stop(Protocol):
    """Says when a server is asked to stop, and how long that may take."""

    @property
    def left(self) -> float:
        """Seconds that are left of the time of grace: all of it before it is asked, never less than none."""
        ...

    async def wait(self) -> None:
        """Return once it is asked to stop."""
        ...


@dataclass(frozen=True, slots=True)
class ExitStatuses:
    """Holds the exit status for each end but the clean one, whose status is 0."""

    cannot_listen: int = 1
    """A port cannot be had."""

    failed: int = 1
    """Models that failed at the start have ended it."""

    cut_off: int = CUT_OFF
    """Requests were not answered, or workers were killed."""

    given_up: int = 1
    """A model that served was given up, which ends this server."""


@dataclass(frozen=True, slots=True)
class StartReport:
    """Tells how a start went, once everything is loaded or has failed."""

    listing: Listing
    """Every version, with its state."""

    specs: Sequence[ModelSpec]
    """Those that serve."""

    listeners: Listeners
    """Where it listens, if it does already."""

    @property
    def failed(self) -> list[VersionStatus]:
        """List what did not load."""
        return [row for row in self.listing.versions if row.state is VersionState.FAILED]


@dataclass(frozen=True, slots=True)
class StopReport:
    """Tells how far a server that stops has got."""

    answered: int
    """Requests that were answered, of all listeners since they began."""

    unfinished: int
    """Requests that were cut off."""

    live: int
    """Versions that are loaded still."""

    left: float
    """Seconds that are left to stop."""


def nothing_said(*facts: object) -> tuple[()]:
    """Say nothing."""
    return ()


def no_words(error: CannotListen) -> None:
    """Leave it to the sentence of the listener."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeWords(Generic[Line]):
    """Holds what a server says at each step, as functions from facts to lines. One that raises ends the command."""

    opening: Iterable[Line] = ()
    """Before anything is built."""

    listens: Callable[[Listeners], Iterable[Line]] = nothing_said
    """Its ports are open."""

    cannot_listen: Callable[[CannotListen], Iterable[Line] | None] = no_words
    """A port, or an access log, cannot be had; None: the command ends with the sentence of the listener."""

    loaded: Callable[[StartReport], Iterable[Line]] = nothing_said
    """Everything is loaded or has failed, some of it perhaps fatally."""

    failed: Callable[[], Iterable[Line]] = nothing_said
    """The last words where models that failed have ended it."""

    stopping: Callable[[float], Iterable[Line]] = nothing_said
    """It has been asked to stop, and has so many seconds."""

    cut_off: Callable[[str], Iterable[Line]] = nothing_said
    """This request was not answered, or this worker had to be killed."""

    drained: Callable[[StopReport], Iterable[Line]] = nothing_said
    """No request is in work any more, and no port is open."""

    stopped: Callable[[StopReport], Iterable[Line]] = nothing_said
    """Nothing is loaded any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """Holds what a server and its listeners are built of."""

    catalogue: Catalogue
    """All that there is to build from."""

    config: ServerConfig
    """The options of ours that the command line comes to."""

    form: Format | None = None
    """The format that goes before all others, in place of the catalogue's of its class."""

    recorder: ServingRecorder | None = None
    """Records what is served, for metrics in a server's own words."""

    states: ByType = field(default_factory=ByType)
    """What its protocols keep together."""

    authorizers: Mapping[str, Authorizer] = field(default_factory=dict)
    """Who decides at these listeners, in place of the file of keys."""

    log: AnswerLog | None = None
    """Hears of all that is asked."""

    @property
    def formats(self) -> Sequence[Format]:
        """The formats that read its models, in the order in which they are asked."""
        form, known = self.form, self.catalogue.formats
        return (
            known if form is None else (form, *(each for each in known if not isinstance(each, type(form))))
        )


def nothing(*facts: object) -> None:
    """Do nothing."""


async def no_step(*facts: object) -> None:
    """Do nothing."""


def no_progress(server: Server) -> AbstractContextManager[Told]:
    """Let nobody hear of changes."""
    return nullcontext(nothing)


def no_companion(server: Server) -> AbstractAsyncContextManager[None]:
    """Run nothing with what is served."""
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Life(Generic[Line]):
    """Says how one serving command lives: what it is built of, in which order it does what, and what it says."""

    parts: ServerParts
    """What is built."""

    words: LifeWords[Line]
    """What is said at each step."""

    say: Callable[[Line], None]
    """Says one line, on a screen or in a log."""

    add: Callable[[Server], None]
    """Adds the places of the models that it starts with."""

    only: Sequence[str] | None = None
    """The models that are loaded at the start; None for all."""

    listens: ListenMoment
    """When it opens its ports."""

    fatal: FatalFailure = FatalFailure.NONE
    """What becomes of it if models fail at the start."""

    last_answers: float = 0.0
    """Seconds for which a server that models have ended still answers, if it listens."""

    drains_failed: bool = False
    """Whether a server that models have ended drains and unloads, with the words for that."""

    statuses: ExitStatuses = ExitStatuses()
    """How the process exits."""

    given_up: asyncio.Event | None = None
    """Set for a model that served and will not again by itself, where that ends the server."""

    signalled: Callable[[int], None] | None = None
    """Called, as a signal handler, with the number of each signal to stop."""

    hurries: bool = True
    """Whether a second signal to stop ends the process at once."""

    progress: Callable[[Server], AbstractContextManager[Told]] = no_progress
    """Makes what hears of each change of a version's state; it is left once everything is loaded."""

    known: Callable[[], None] = nothing
    """Called once every model is known, before any is loaded."""

    up: Callable[[Server, StartReport], Awaitable[None]] = no_step
    """Awaited once it is loaded, listens and goes on."""

    beside: Callable[[Server], AbstractAsyncContextManager[None]] = no_companion
    """Runs while it is loading and serving, until it is asked to stop."""

    draining: Callable[[float], Awaitable[None]] = no_step
    """Awaited before requests are waited for; it is given the seconds that are left."""

    closed: Callable[[], None] = nothing
    """Called once everything is closed, before the last words."""

    def tell(self, lines: Iterable[Line]) -> None:
        """Say these lines."""
        for line in lines:
            self.say(line)


def is_fatal(fatal: FatalFailure, report: StartReport) -> bool:
    """Tell whether a start that went so ends the server."""
    match fatal:
        case FatalFailure.NONE:
            return False
        case FatalFailure.ANY:
            return bool(report.failed)
        case FatalFailure.ALL:
            return not report.specs


def exit_status(statuses: ExitStatuses, is_cut: bool, has_given_up: bool) -> int:
    """Return the status of a server that has gone down: whether it cut anything off, whether it gave a model up."""
    if has_given_up:
        return statuses.given_up
    return statuses.cut_off if is_cut else 0


def serve(life: Life[Line]) -> NoReturn:
    """Live in this process, and leave it with the exit status, unless something raises."""
    run(live(life), is_debuggable=life.parts.config.security.debuggable)


async def live(life: Life[Line]) -> int:
    """Take the process's signals, build the server and its listeners, and live; returns the exit status."""
    life = replace(life, parts=_within_group(life.parts))
    parts, config = life.parts, life.parts.config
    stop = StopSignals(config.server.drain_timeout, life.signalled, hurries=life.hurries)
    life.tell(life.words.opening)
    seen = observer(config.workers.shares_processor)
    async with app.build(parts.catalogue, config, seen, parts.formats, parts.recorder) as server:
        site = Site(parts.catalogue, config, server.regions, parts.states, server.metrics.find)
        return await live_with(life, server, Listeners(server, site, parts.authorizers, parts.log), stop)


def _within_group(parts: ServerParts) -> ServerParts:
    """Return them with a configuration that fits into what the control groups of this process allow; log that."""
    allowed = allowance()
    words = in_words(allowed, machine_bytes(), len(system.processors()))
    if words:
        _log.info("%s", words)
    return replace(parts, config=within_memory(parts.config, allowed.memory))


async def live_with(life: Life[Line], server: Server, listeners: Listeners, stop: Stop) -> int:
    """Live with a server that is built; returns the exit status."""
    course = _Course(life, server, listeners, stop)
    try:
        return await course.run()
    except CannotListen as error:
        lines = life.words.cannot_listen(frameless(error))
        if lines is None:
            raise
        life.tell(lines)
        return life.statuses.cannot_listen


class _Course(Generic[Line]):
    """The one course of a life through its steps."""

    def __init__(self, life: Life[Line], server: Server, listeners: Listeners, stop: Stop) -> None:
        self._life = life
        self._words = life.words
        self._server = server
        self._listeners = listeners
        self._stop = stop

    async def run(self) -> int:
        """Go from the first step to the last; returns the exit status."""
        await self._reach(ListenMoment.FIRST)
        self._life.add(self._server)
        await self._reach(ListenMoment.ADDED)
        loading, ended = asyncio.ensure_future(self._load()), asyncio.ensure_future(self._end())
        try:
            async with self._life.beside(self._server):
                await asyncio.wait({loading, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not loading.done():
                    loading.cancel()
                    await asyncio.wait({loading})
                elif not await self._come_up(loading.result()):
                    return await self._fail(ended)
                await ended
        finally:
            ended.cancel()
        is_cut = await self._go_down()
        given_up = self._life.given_up
        return exit_status(self._life.statuses, is_cut, given_up is not None and given_up.is_set())

    async def _reach(self, moment: ListenMoment) -> None:
        """Listen, if this is the moment for it."""
        if self._life.listens is moment:
            await self._listeners.start()
            self._life.tell(self._words.listens(self._listeners))

    async def _load(self) -> Listing:
        async def known() -> None:
            await self._reach(ListenMoment.KNOWN)
            self._life.known()

        with self._life.progress(self._server) as told:
            return await self._server.start(told, self._life.only, known)

    async def _end(self) -> None:
        """Return at a signal to stop, or once a model is given up, where that ends the server."""
        waits = [self._stop.wait()] + ([self._life.given_up.wait()] if self._life.given_up else [])
        tasks = [asyncio.ensure_future(each) for each in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def _come_up(self, listing: Listing) -> bool:
        """Say what is loaded, and serve it; False where failures end the server."""
        report = StartReport(listing, self._server.specs(), self._listeners)
        self._life.tell(self._words.loaded(report))
        if is_fatal(self._life.fatal, report):
            return False
        await self._reach(ListenMoment.LOADED)
        await self._life.up(self._server, report)
        COLLECTIONS.settle()
        return True

    async def _fail(self, ended: asyncio.Future[None]) -> int:
        if self._life.drains_failed:
            await self._go_down()
        else:
            if self._listeners.places:
                await asyncio.wait({ended}, timeout=self._life.last_answers)
            await self._listeners.close()
        self._life.tell(self._words.failed())
        return self._life.statuses.failed

    async def _go_down(self) -> bool:
        """Drain, close and unload; True where something was cut off."""
        life, words, server, stop = self._life, self._words, self._server, self._stop
        server.begin_drain()
        life.tell(words.stopping(stop.left))
        await life.draining(stop.left)
        report = await self._listeners.drain(stop.left)
        await self._listeners.close()
        self._tell_cut(report.unfinished)
        reached = StopReport(report.answered, len(report.unfinished), len(server.specs()), stop.left)
        life.tell(words.drained(reached))
        killed = await server.close(stop.left)
        self._tell_cut(killed)
        life.closed()
        life.tell(words.stopped(replace(reached, live=len(server.specs()), left=stop.left)))
        return bool(report.unfinished or killed)

    def _tell_cut(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._life.tell(self._words.cut_off(line))
