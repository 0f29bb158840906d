"""Holds what one version of a model is given from outside when it is opened: shared books, services and callbacks."""

from collections.abc import Callable
from dataclasses import dataclass, field

from trivium.core.instances.rate_limiter import RateLimiter
from trivium.core.models.preparations import PreparedLoad
from trivium.core.observability.news import NO_NEWS, ServerNews
from trivium.core.observability.tracing import NOTHING_TRACED, Tracing
from trivium.core.queueing.call_graph import CallGraph
from trivium.core.queueing.response_cache import Section
from trivium.core.streams.spool import StreamStore
from trivium.core.workers.arena import Arena
from trivium.types.errors import ServeError
from trivium.types.interfaces import NO_OBSERVER, RunObserver
from trivium.types.metrics import Measurements
from trivium.types.operations import Infer
from trivium.types.payload import PayloadKind
from trivium.types.recording import ServingRecorder
from trivium.types.spec import ModelSpec

ONLY_TENSORS = frozenset({PayloadKind.TENSORS})


Offload = Callable[[Callable[[], Infer | ServeError], Callable[[Infer | ServeError], None]], None]
"""Has something done in a thread, and calls back on the loop with what came of it."""


def at_once(work: Callable[[], Infer | ServeError], done: Callable[[Infer | ServeError], None]) -> None:
    """Do it here and now."""
    done(work())


@dataclass(frozen=True, slots=True)
class ModelContext:
    """Holds what a served model is given from outside: the payload kinds that its engine takes, the memory that its
    workers share with the server, the graph of upward calls, what is measured, where its answers are cached, who bounds
    what runs, who traces its requests, who observes its runs and who records its requests, how long bodies are read
    where nobody waits, what was prepared for it, where what its receivers leave unread is kept, and who is told that it
    was given up. While it `is_patient`, what waits though instances do not open waits until then. With `binds_answers`
    an answer of user code that is not as declared fails its request; else that is logged. `news` go to who listens.
    """

    takes: frozenset[PayloadKind] = ONLY_TENSORS
    arena: Arena | None = None
    calls: CallGraph = field(default_factory=CallGraph)
    measures: Measurements = field(default_factory=Measurements)
    cache: Section | None = None
    limiter: RateLimiter | None = None
    tracing: Tracing = NOTHING_TRACED
    observer: RunObserver = NO_OBSERVER
    recorder: ServingRecorder | None = None
    offload: Offload = at_once
    prepared: PreparedLoad | None = None
    store: StreamStore = field(default_factory=StreamStore.in_memory)
    given_up: Callable[[ModelSpec, ServeError], None] = lambda spec, why: None
    is_patient: Callable[[], bool] = lambda: False
    binds_answers: bool = True
    news: ServerNews = NO_NEWS


PLAIN = ModelContext()
