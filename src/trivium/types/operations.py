"""What a client asks and what it is answered: one frozen, wire-encodable value per verb.

HTTP, gRPC, workers calling upwards and the library speak the same values. Times are relative seconds here,
since a pure protocol has no clock; the core turns them into points of its own clock on receipt.
"""

from collections.abc import Mapping
from typing import final

import msgspec

from trivium.types.errors import ServeError
from trivium.types.log_settings import NO_LOG_CHANGE, LogChange, LogSettings
from trivium.types.payload import Payload, PayloadKind, Scalar
from trivium.types.spec import ModelSpec
from trivium.types.state import ServerState, VersionState
from trivium.types.statistics import MetricsReport, StatisticsReport
from trivium.types.tracing import RequestOrigin, TraceChange, TraceSettings

PREDICT, EXPLAIN = "predict", "explain"


class WantedOutput(msgspec.Struct, frozen=True, gc=False):
    """An output that the client asked for by name; with `classification`, so many of its highest elements, each
    with index and label. How it wants it written is the encoder's business.
    """

    name: str
    classification: int = 0


class SequenceRef(msgspec.Struct, frozen=True, gc=False):
    """The sequence that an item belongs to."""

    id: int | str
    starts: bool = False
    ends: bool = False


class CallRef(msgspec.Struct, frozen=True, gc=False):
    """Of an upward call: the items on its chain and their models, outermost first; the last one makes it. `trace` is
    the item of whose trace it is a part, if that is traced; 0 for none.
    """

    items: tuple[int, ...]
    chain: tuple[str, ...]
    trace: int = 0


@final
class Infer(msgspec.Struct, frozen=True, gc=False):
    """Run one item. An empty `version` means the greatest ready one, an empty `model` the only one that there
    is; without `outputs` all are answered. `wants` is the kind of payload that the answer must have. `method` is what
    a handler shall do with it: predict or explain.

    `priority` 0 is the model's default level. `queue_timeout` and `deadline` are seconds from receipt: in
    the queue, and until the answer. `origin` is told where requests may be traced;
    `context` is that of its own trace, by which a model's code can make others a part of it.
    """

    model: str
    payload: Payload
    version: str = ""
    id: str = ""
    outputs: tuple[WantedOutput, ...] = ()
    parameters: Mapping[str, Scalar] = {}
    priority: int = 0
    queue_timeout: float | None = None
    deadline: float | None = None
    sequence: SequenceRef | None = None
    wants: PayloadKind | None = None
    parent: CallRef | None = None
    origin: RequestOrigin | None = None
    context: str = ""
    method: str = PREDICT


class Live(msgspec.Struct, frozen=True, gc=False):
    """Is the process answering? Answered with `Readiness`."""


class Ready(msgspec.Struct, frozen=True, gc=False):
    """Is the server (no model), the model, or that version ready? Answered with `Readiness`."""

    model: str = ""
    version: str = ""


class Describe(msgspec.Struct, frozen=True, gc=False):
    """Answered with `ServerDescription` (no model) or `ModelDescription`."""

    model: str = ""
    version: str = ""


class List(msgspec.Struct, frozen=True, gc=False):
    """Every known version with its state, or those alone that are `ready`. Answered with `Listing`."""

    ready: bool = False


class Statistics(msgspec.Struct, frozen=True, gc=False):
    """Of all ready versions (no model), of a model, of a version. Answered with `StatisticsReport`."""

    model: str = ""
    version: str = ""


class CollectMetrics(msgspec.Struct, frozen=True, gc=False):
    """Everything that can be measured, of this moment. Answered with `MetricsReport`."""


class Load(msgspec.Struct, frozen=True, gc=False):
    """Read the model's folder again and serve what its version policy wants. Answered with `Listing`.

    For this load alone, `config` is a text in the format's own words that takes the place of the configuration, and
    `files`, by paths within the model's folder, take the place of all else in it.
    """

    model: str
    config: str | None = None
    files: Mapping[str, bytes] = {}


class Unload(msgspec.Struct, frozen=True, gc=False):
    """Stop serving a model, and of a graph with `with_dependents` the models of its steps; items in flight finish.
    Answered with `Listing`.
    """

    model: str
    with_dependents: bool = False


class SharedRegion(msgspec.Struct, frozen=True, gc=False):
    """A piece of a client's shared memory: `size` bytes from `offset` of what the system knows as `key`."""

    name: str
    key: str
    offset: int
    size: int


class RegisterRegion(msgspec.Struct, frozen=True, gc=False):
    """Open a client's shared memory under a name. Answered with `RegionListing`."""

    region: SharedRegion


class UnregisterRegion(msgspec.Struct, frozen=True, gc=False):
    """Forget a region, or all of them (no name); whoever still views it goes on. Answered with `RegionListing`."""

    name: str = ""


class ListRegions(msgspec.Struct, frozen=True, gc=False):
    """One region, or all of them. Answered with `RegionListing`."""

    name: str = ""


class LogControl(msgspec.Struct, frozen=True, gc=False):
    """How much the server logs, and in which form. Answered with `LogReport`."""

    change: LogChange = NO_LOG_CHANGE


class TraceControl(msgspec.Struct, frozen=True):
    """What is traced, of the server (no model) or of a model; `change` sets it. Answered with `TraceReport`."""

    model: str = ""
    change: TraceChange | None = None


RegionOperation = RegisterRegion | UnregisterRegion | ListRegions
Operation = (
    Infer
    | Live
    | Ready
    | Describe
    | List
    | Statistics
    | CollectMetrics
    | Load
    | Unload
    | RegionOperation
    | LogControl
    | TraceControl
)


class Readiness(msgspec.Struct, frozen=True, gc=False):
    """`reason` says why not."""

    ready: bool
    reason: str = ""


class ServerDescription(msgspec.Struct, frozen=True, gc=False):
    """The server itself."""

    name: str
    version: str
    state: ServerState


class ModelDescription(msgspec.Struct, frozen=True, gc=False):
    """The spec that serves the version asked for, every ready version, ascending, and the post-mortems of the
    last instances that died.
    """

    spec: ModelSpec
    versions: tuple[str, ...]
    deaths: tuple[str, ...] = ()


class VersionStatus(msgspec.Struct, frozen=True, gc=False):
    """One row of a listing; `reason` of a failure or an unload."""

    model: str
    version: str
    state: VersionState
    reason: str = ""


class Listing(msgspec.Struct, frozen=True, gc=False):
    """Sorted by model, then version number."""

    versions: tuple[VersionStatus, ...]


class RegionListing(msgspec.Struct, frozen=True, gc=False):
    """Sorted by name."""

    regions: tuple[SharedRegion, ...]


class LogReport(msgspec.Struct, frozen=True, gc=False):
    """What is logged."""

    settings: LogSettings


class TraceReport(msgspec.Struct, frozen=True):
    """The settings that hold, and where traces are written: to a `file` (empty: nowhere), or (None) elsewhere; `told`
    is what that place tells of itself.
    """

    settings: TraceSettings
    file: str | None
    told: Mapping[str, str] = {}


Answer = (
    Readiness
    | ServerDescription
    | ModelDescription
    | Listing
    | StatisticsReport
    | MetricsReport
    | RegionListing
    | LogReport
    | TraceReport
)


class ResponsePart(msgspec.Struct, frozen=True, gc=False):
    """One part of an answer to an operation; the last one is `final`, and an error always is.

    Exactly one of `payload`, `answer` and `error` is set, but for an empty final part. `model` and `version`
    name what served it.
    """

    payload: Payload | None = None
    answer: Answer | None = None
    error: ServeError | None = None
    final: bool = True
    parameters: Mapping[str, Scalar] = {}
    model: str = ""
    version: str = ""
