"""The facts that a protocol is made from, and the entry by which a table lists it."""

import itertools
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trivium.types.access import AccessScope, Endpoint
from trivium.types.by_type import ByType
from trivium.types.interfaces import RegionViews, RpcProtocol, WireProtocol
from trivium.types.listeners import Role
from trivium.types.metrics import MetricFamily
from trivium.types.spec import ModelSpec
from trivium.types.statistics import MetricsReport

FindMetric = Callable[[str], MetricFamily | None]
"""Finds a metric that models make themselves, by its name."""

_LAST = 2**48 - 1
_BEGINNING = str(uuid.uuid4())[:24]
_COUNT = itertools.count(int.from_bytes(uuid.uuid4().bytes[:5], "big"))


def make_id() -> str:
    """Return a new id for a request that came without one: a UUID of this process, whose end counts. A random one for
    each costs more than reading the request.
    """
    return f"{_BEGINNING}{next(_COUNT) & _LAST:012x}"


def no_metric(name: str) -> MetricFamily | None:
    """Nobody makes any."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolContext:
    """Facts that the factory of a protocol may use. Name and version are those that clients see.

    `roles` are the purposes of the listener: what is for another is not there; `prefixes` are those of the routes that
    the protocol owns there (None: all that it can). `as_original`: answers have the texts and defaults of the
    protocol's original server. A probe of what is not ready gets the status `not_ready`, where the protocol has no
    other. `may_change`: clients may load and unload models and set the log. `regions`: clients' shared memory, which
    refuses by itself where it is off; `shares_memory`: it is on. Header fields or metadata whose whole name `forwards`
    matches become parameters. A body that comes compressed may have `max_unpacked_bytes`, all that are held at a time
    `max_total_unpacked_bytes`. `own` has the options of the protocol's own, by their class, and `states` what is one
    for all listeners of a server, `words` what servers hand over to it. Requests to generate may have fields that the
    protocol does not know; with `strict_requests` such a field is refused. `epoch` says
    the time in seconds of the Unix epoch, `now` that of a clock that only goes on. `restricted_apis` and
    `restricted_rpcs` are the operator's texts; the protocol reads them. `metric` finds one that models make themselves.
    `describe` makes the description of the listener, with these models, that programs read; over gRPC `services` are
    the names of those that it serves, `descriptors` the files that define them.
    The four that begin with `has` say which optional families of metrics are shown, and `own_metrics` makes further
    ones in the words of the server that is stood in for.
    """

    server_name: str = "trivium"
    server_version: str = ""
    roles: frozenset[Role] = frozenset(Role)
    prefixes: frozenset[str] | None = None
    as_original: bool = False
    not_ready: int = 400
    make_id: Callable[[], str] = make_id
    now: Callable[[], float] = lambda: 0.0
    host: str = ""
    may_change: bool = False
    regions: RegionViews | None = None
    shares_memory: bool = False
    forwards: re.Pattern[str] | None = None
    max_unpacked_bytes: int = 64 * 2**20
    max_total_unpacked_bytes: int = 2**30
    own: ByType = field(default_factory=ByType)
    states: ByType = field(default_factory=ByType)
    words: ByType = field(default_factory=ByType)
    strict_requests: bool = False
    restricted_apis: str = ""
    restricted_rpcs: str = ""
    metric: FindMetric = no_metric
    describe: Callable[[Sequence[ModelSpec]], bytes] = lambda specs: b"{}"
    services: Sequence[str] = ()
    descriptors: Sequence[bytes] = ()
    has_duration_metrics: bool = True
    has_quantiles: bool = False
    has_first_part_metrics: bool = False
    has_vllm_metrics: bool = False
    epoch: Callable[[], float] = lambda: 0.0
    own_metrics: Callable[[MetricsReport], tuple[MetricFamily, ...]] = lambda report: ()


class AnswerCounts:
    """Counts answers over HTTP by the first digit of their status, for all listeners of a server."""

    __slots__ = ("by_digit",)

    def __init__(self) -> None:
        self.by_digit = [0] * 10


class HttpProtocolEntry(Protocol):
    """A protocol over HTTP as a table lists it; a module with these names is one. `ROUTES` are the prefixes of the
    routes that it can own, by the role of the listener they are for; `ENDPOINTS` all that it answers.
    """

    ROUTES: Mapping[Role, Sequence[str]]
    ENDPOINTS: Sequence[Endpoint]

    def make(self, context: ProtocolContext) -> WireProtocol:
        """Make it for one listener. INVALID for an operator's text that cannot be read."""


class RpcProtocolEntry(Protocol):
    """A protocol over gRPC as a table lists it; a module with these names is one. `SERVICES` are full names,
    by the role of the listener they are for, `SCOPES` all methods that it answers, as whole paths.
    """

    SERVICES: Mapping[Role, Sequence[str]]
    SCOPES: Mapping[str, AccessScope]

    def make(self, context: ProtocolContext) -> RpcProtocol:
        """Make it for one listener. INVALID for an operator's text that cannot be read."""
