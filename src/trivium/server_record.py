"""A server that we are, or stand in for, as one record: what it speaks, and what is its own way in all that differs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from trivium.config.options import ServerConfig
from trivium.config.schema import OwnSection
from trivium.types.by_type import ByType
from trivium.types.metrics import MetricFamily
from trivium.types.protocol_context import ProtocolContext
from trivium.types.statistics import MetricsReport
from trivium.types.tracing import SpanNames

SCRAPED = "prometheus"
"""The protocol by which metrics are scraped, unless a server has its own."""

CONSOLE = "operate"
"""The protocol of the page that shows a server, which is no server's own."""

REFLECTION = "reflection"
"""The protocol by which services over gRPC describe themselves, which no other server has."""

OwnMetrics = Callable[[MetricsReport], tuple[MetricFamily, ...]]


@dataclass(frozen=True, slots=True)
class Switch:
    """Says whether a protocol of a server is on, by the configuration."""

    protocol: str
    is_on: Callable[[ServerConfig], bool]


def _nothing(config: ServerConfig) -> None:
    """Find nothing wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """Holds what a server is and how it differs from others. What a record leaves out is our own server's way."""

    name: str
    """As `--profile` calls it."""

    note: str = ""
    """What the help of `--profile` says of it, if its name does not say enough."""

    protocols: Sequence[str] | None = None
    """What it speaks, over HTTP and gRPC; the first to claim a route owns it. None: all that there is, in its order."""

    original: str = ""
    """The protocol that is spoken exactly as its original does, and words all refusals; empty for ours."""

    withheld: Collection[str] = ()
    """Paths that nobody owns."""

    presents: tuple[str, str] | None = None
    """Name and version that clients see, where they are another server's. Its listeners share no address."""

    not_ready: int | None = None
    """Status of a probe of what is not ready, in place of the protocol's own."""

    is_patient: bool = False
    """Requests wait for a model whose workers are being started."""

    binds_answers: bool = True
    """What user code answers otherwise than declared fails its request; else that is logged once for each output."""

    says_keep_alive: bool = False
    """Each answer says whether its connection stays open."""

    scrapes_apart: bool = False
    """Metrics are not served with inference once they have a listener of their own."""

    counts_answers: bool = False
    """Answers over HTTP are counted by status, since its metrics show that."""

    own_metrics: Callable[[ProtocolContext], OwnMetrics] | None = None
    """Makes its metrics by their own names, which stand beside ours."""

    scraped_by: Callable[[ByType], str] = lambda states: SCRAPED
    """Returns the protocol that serves its metrics, by what its listeners have in common."""

    switches: Sequence[Switch] = ()
    """Protocols that may be off."""

    sections: Mapping[str, OwnSection] = field(default_factory=dict)
    """Its own options, by the name of their table in the file."""

    check: Callable[[ServerConfig], None] = _nothing
    """Raises INVALID for an option of its own that has no effect, whichever profile is served."""

    has_console: bool = False
    """It shows its console without being asked to."""

    takes_any_host: bool = False
    """Web pages of any host are its clients, unless hosts are named."""

    trace_files_follow: bool = True
    """A trace file that is moved away is opened anew."""

    traces_nowhere: bool = False
    """Levels of traces may be given without a place for them."""

    span_names: SpanNames | None = None
    """Names of the spans that go to a collector, by ours."""

    @property
    def fallback(self) -> str:
        """Return the protocol that words the refusal of what nobody owns."""
        return self.original or "v2"
