"""Traces: what is traced of requests and how much of it: settings, and the values that a finished trace consists of.

Times are seconds of the monotonic clock. How a trace is written, and in whose words, its exporter decides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import msgspec

from trivium.types.observing import RequestFacts
from trivium.types.payload import Tensor


class Detail(Enum):
    """Names what a trace holds."""

    TIMES = "times"
    TENSORS = "tensors"


class Moment(Enum):
    """Names what a time in a trace is the time of, in the order in which they come. Those of the wire are of requests
    that came over one, those of the computation of models that compute by themselves.
    """

    RECEIVING = "receiving"  # the head of the request has come
    RECEIVED = "received"  # and the rest
    STARTED = "started"  # it has come to its model
    QUEUED = "queued"  # and has been let in
    COMPUTING = "computing"
    INPUT_READY = "input ready"
    FIRST_TOKEN = "first token"  # of a text that was generated
    LAST_TOKEN = "last token"
    OUTPUT_BEGAN = "output began"
    COMPUTED = "computed"
    ANSWERED = "answered"  # a part of the answer is there, once for each
    ENDED = "ended"
    SENDING = "sending"  # it goes to the front end
    SENT = "sent"  # and has been handed to the connection


class TraceSettings(msgspec.Struct, frozen=True):
    """Says what is traced: nothing without `details`; one request in `every` (0: those alone that come with a trace
    context), `left` more of them (None: any number). `per_file` traces make a file of their own; 0 puts all into one.
    """

    details: frozenset[Detail] = frozenset()
    every: int = 1000
    left: int | None = None
    per_file: int = 0


class TraceChange(msgspec.Struct, frozen=True):
    """New settings, where they are set; None goes back to what holds outside: for a model the server's, for the server
    what it was started with. A `left` of -1 is any number.
    """

    details: frozenset[Detail] | msgspec.UnsetType | None = msgspec.UNSET
    every: int | msgspec.UnsetType | None = msgspec.UNSET
    left: int | msgspec.UnsetType | None = msgspec.UNSET
    per_file: int | msgspec.UnsetType | None = msgspec.UNSET


NO_CHANGE = TraceChange()


class RequestOrigin(msgspec.Struct, frozen=True, gc=False):
    """Says how a request came: over which wire, when its head was there and when all of it, and the trace that its
    client says it belongs to (`parent` and `state` as in W3C Trace Context; empty without one). `facts` are collected
    where a log wants them.
    """

    wire: str
    began: float
    whole: float
    parent: str = ""
    state: str = ""
    facts: RequestFacts | None = None


class Trace(msgspec.Struct, weakref=True):
    """Holds what has been seen of one request to one model. `parent` is the id of the trace that it is a part of, 0 if
    it is none's; `together` says how many requests were executed with it, itself among them (0: it was not). `context`
    is the `traceparent` by which others become a part of it, if they can; `mates` are those of other traced requests
    that were executed with it, a bounded number.
    """

    id: int
    parent: int
    model: str
    version: str
    request_id: str
    origin: RequestOrigin | None = None
    moments: list[tuple[Moment, float]] = []
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    together: int = 0
    error: str = ""
    context: str = ""
    mates: tuple[str, ...] = ()


Traces = Sequence[Trace]
"""A request's and, behind it, those of the requests that it led to."""


@dataclass(frozen=True, slots=True)
class MomentNames:
    """Maps the moments of a trace to the names that they have in one system: those of a model, and by wire ("HTTP",
    "GRPC") those of a front end. A moment without a name is left out.
    """

    model: Mapping[Moment, str]
    wires: Mapping[str, Mapping[Moment, str]]

    def of(self, trace: Trace) -> Iterator[tuple[str, int]]:
        """Yield names and nanoseconds of the monotonic clock, in order. When an answer is complete is a front end's
        to say: a request within another has no such moment.
        """
        wire = self.wires.get(trace.origin.wire, {}) if trace.origin is not None else {}
        for moment, seconds in sorted(trace.moments, key=lambda one: one[1]):
            name = wire.get(moment) or self.model.get(moment)
            if name is not None and (trace.origin is not None or moment is not Moment.ANSWERED):
                yield name, round(seconds * 1e9)


@dataclass(frozen=True, slots=True)
class SpanNames:
    """Names the spans of requests, models and executions, their events (`moments`) and their attributes (the rest)."""

    tracer: str
    request: str
    execution: str
    moments: MomentNames
    model: str
    version: str
    number: str
    parent: str
    request_id: str


def trace_id(context: str) -> str:
    """Return the id of the trace that a `traceparent` of W3C Trace Context names, in 32 hexadecimal digits; empty where
    it names none.
    """
    parts = context.split("-", 2)
    return parts[1] if len(parts) == 3 and len(parts[1]) == 32 else ""


class TraceExporter(Protocol):
    """Takes finished traces away. Called on the loop: it hands them to a thread of its own.

    `file` is where they are written, None for one that sends them elsewhere; `follows` says that it belongs to a system
    of traces, so that what comes with a trace context is always traced. `told` is what it tells of itself.
    """

    file: str | None
    follows: bool
    told: dict[str, str]

    def context(self, trace: Trace, above: str) -> str:
        """A trace context for a trace that begins, below the one with the context `above`, if that is not empty; empty
        where there are none.
        """
        ...

    def take(self, traces: Sequence[Traces], is_whole: bool) -> None:
        """Write them; as a file of their own if they are `is_whole`. Never raises, never blocks."""
        ...

    def close(self) -> None:
        """Write what is left. Blocking."""
        ...
