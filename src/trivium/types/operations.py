"""Operations that clients ask for, and their answers: one frozen, wire-encodable value per verb.

HTTP, gRPC, workers calling upwards and the library speak the same values. Times are relative seconds here,
since a pure protocol has no clock; the core turns them into points of its own clock on receipt.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import final

import msgspec

from trivium.types.errors import ServeError
from trivium.types.generation import Generate
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.log_settings import NO_LOG_CHANGE, LogChange, LogSettings
from trivium.types.observing import (
    InstanceDeath,
    InstanceOpened,
    LostNews,
    Timeline,
    Timelines,
    VersionLoad,
    WorkerSaid,
)
from trivium.types.payload import Payload, PayloadKind, Raw, RequestPayload, Scalar
from trivium.types.sources import ModelSource
from trivium.types.spec import Device, InstanceGroup, ModelSpec, StandingCall
from trivium.types.state import ServerState, VersionState
from trivium.types.statistics import MetricsReport, StatisticsReport
from trivium.types.tracing import RequestOrigin, TraceChange, TraceSettings

PREDICT, EXPLAIN, DESCRIBE = "predict", "explain", "describe"


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
    """Describes where an upward call comes from: the items on its chain and their models, outermost first; the last
    one makes it. `trace` is the item of whose trace it is a part, if that is traced; 0 for none.
    """

    items: tuple[int, ...]
    chain: tuple[str, ...]
    trace: int = 0


@final
class Infer(msgspec.Struct, frozen=True, gc=False):
    """Run one item. An empty `version` means the greatest ready one, an empty `model` the only one that the server was
    started with, or that there is; without `outputs` all are answered. `wants` is the kind of payload that the answer
    must have. `method` is what a handler shall do with it: predict, explain, describe itself, or the function of its
    own that it names. It needs the standing call `adapter`, if it names one. With `alone` no other item shares its run,
    and it waits for none to do so. Of a model that generates, `as_generate`
    reads a body in the protocol's own form, with the parameters of the model: it raises ServeError, and is called once,
    in any thread. Fields of a request to generate that have no effect are `ignored`, or else refused.

    `priority` 0 is the model's default level. `queue_timeout` and `deadline` are seconds from receipt: in
    the queue, and until the answer. `origin` is told where requests may be traced;
    `context` is that of its own trace, by which a model's code can make others a part of it.
    """

    model: str
    payload: RequestPayload
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
    adapter: str = ""
    alone: bool = False
    as_generate: Callable[[Raw, Mapping[str, str]], Generate] | None = None
    ignored: IgnoredFields | None = None


class InferLazily(msgspec.Struct, frozen=True):
    """Run one item of a model, which is registered from this source first, unless it is known. Its answer is that of
    `infer`.
    """

    infer: Infer
    source: ModelSource


class Defer(msgspec.Struct, frozen=True, gc=False):
    """Run one item behind the answer, which is a token: `Deferred`. What it answers is kept until it is fetched.

    `write` returns what is kept of a part, None for nothing. It never raises, and is called with all parts in their
    order; with a last one that was generated in any thread. `client` is who asks, as a front end knows it: whoever has
    many answers kept makes room by those.
    """

    infer: Infer
    write: Callable[["ResponsePart"], "ResponsePart | None"] | None = None
    client: str = ""


class Fetch(msgspec.Struct, frozen=True, gc=False):
    """Ask for parts of a deferred answer: those from the number `first` on, `most` of them at most (0: all that there
    are). Answered with `Fetched`. NOT_FOUND for a token whose answer is not kept.
    """

    token: str
    first: int = 0
    most: int = 0


class Live(msgspec.Struct, frozen=True, gc=False):
    """Is the process answering? Answered with `Readiness`."""


class Ready(msgspec.Struct, frozen=True, gc=False):
    """Is the server (no model), the model, or that version ready? Answered with `Readiness`."""

    model: str = ""
    version: str = ""


class Describe(msgspec.Struct, frozen=True, gc=False):
    """Describe the server (no model) or a version of a model; `in_full` with the state of all its versions and of every
    instance. Answered with `ServerDescription` or `ModelDescription`.
    """

    model: str = ""
    version: str = ""
    in_full: bool = False


class DescribeAll(msgspec.Struct, frozen=True):
    """Describe every version of a model in full, or one (`version`), whether it serves or not. An empty `model` means
    that of an `Infer`. With `asked` that item is run first, and its answer is a part of the description. Answered with
    `ModelDescriptions`.
    """

    model: str
    version: str = ""
    asked: Infer | None = None


class List(msgspec.Struct, frozen=True, gc=False):
    """List every known version with its state, or those alone that are `ready`: those of at most `limit` models (0: of
    all) that come behind the model `after`. Answered with `Listing`.
    """

    ready: bool = False
    limit: int = 0
    after: str = ""


class Statistics(msgspec.Struct, frozen=True, gc=False):
    """Ask for the statistics of all ready versions (no model), of a model or of a version. Answered with
    `StatisticsReport`.
    """

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


class Register(msgspec.Struct, frozen=True):
    """Serve what a source holds, in addition to what serves already. It fails as a whole: one that cannot be loaded
    leaves nothing. Without `wait` it is answered at once, and loads behind that: what fails then stays known as failed.
    With `keeps_default` requests without a version go on to what serves them now. Answered with `Listing`. CONFLICT
    where one of its versions is registered already, or any version, where nobody gave one.
    """

    source: ModelSource
    wait: bool = True
    keeps_default: bool = False


class Unregister(msgspec.Struct, frozen=True, gc=False):
    """Stop serving one version of a model, or all of them (no version), and forget it. Its neighbours are not touched,
    items in flight finish. With `spares_default` no version means the one that serves requests without a version, and
    that one is refused with CONFLICT while there are others. Answered with `Listing`.
    """

    model: str
    version: str = ""
    spares_default: bool = False


class Scale(msgspec.Struct, frozen=True, gc=False):
    """Give every instance group of a version (or those on one kind of device) new bounds, None leaving one as it is; of
    a graph those of all models that it runs. `wait` until they hold. At 0 to 0 the version is cold: accepted items
    finish, new ones are refused. Answered with `Listing`.
    """

    model: str
    minimum: int | None
    maximum: int | None
    version: str = ""
    device: str = ""
    wait: bool = True


class SetDefault(msgspec.Struct, frozen=True, gc=False):
    """Choose the version that serves requests without one; empty: the greatest that is ready. Answered with
    `Listing`.
    """

    model: str
    version: str = ""


class Remembered(Enum):
    """Says what becomes of a broadcast once every instance has carried it out."""

    NOT = "not"  # later instances know nothing of it
    ADDED = "added"  # later instances make the call, too, before they serve; there must be none of its topic
    REPLACED = "replaced"  # the same in place of the one that there must be
    FORGOTTEN = "forgotten"  # the one that there must be is made no more


class Broadcast(msgspec.Struct, frozen=True, gc=False):
    """Call a named function of user code on every instance of a version, and, if it is `remembered` under its `topic`,
    on each later one before it serves. Answered with the payload of one of them.

    If one fails it fails, and nothing of it is remembered: the others call `undo` with what was remembered before, or
    with this payload. Of what was remembered before, all that this payload does not say itself is added to it. Later
    instances call `later`, where that is another function. A body is not remembered: INVALID where there is one, and
    for a function that the model does not have called by name; CONFLICT or NOT_FOUND for a topic that is there already,
    or is not.
    """

    model: str
    function: str
    payload: Raw
    version: str = ""
    topic: str = ""
    remembered: Remembered = Remembered.NOT
    later: str = ""
    undo: str = ""


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
    """Ask how much the server logs, and in which form. Answered with `LogReport`."""

    change: LogChange = NO_LOG_CHANGE


class Observe(msgspec.Struct, frozen=True, gc=False):
    """Ask how the server does at this moment, and of a `model` all that is known of it. Answered with `Observation`."""

    model: str = ""
    version: str = ""


class ListServed(msgspec.Struct, frozen=True, gc=False):
    """Ask for what serves requests that name no version. Answered with `ServedModels`."""


class Listen(msgspec.Struct, frozen=True, gc=False):
    """Listen, until cancelled, to what the server does: a `Snapshot` at once and every second, and each
    `VersionStatus` that has changed, `InstanceDeath`, `InstanceOpened`, `WorkerSaid` and `Timeline` as it comes. Who
    reads too slowly hears how much it has missed (`LostNews`), and who reads nothing for too long is cut off. It ends
    by itself after some time, and when the server goes down. QUEUE_FULL where too many listen.
    """


class TraceControl(msgspec.Struct, frozen=True):
    """Ask what is traced, of the server (no model) or of a model; `change` sets it. Answered with `TraceReport`."""

    model: str = ""
    change: TraceChange | None = None


RegionOperation = RegisterRegion | UnregisterRegion | ListRegions
Operation = (
    Infer
    | InferLazily
    | Defer
    | Fetch
    | Live
    | Ready
    | Describe
    | DescribeAll
    | List
    | Statistics
    | CollectMetrics
    | Load
    | Unload
    | Register
    | Unregister
    | Scale
    | SetDefault
    | Broadcast
    | RegionOperation
    | LogControl
    | TraceControl
    | Observe
    | ListServed
    | Listen
)


_CHANGES = (
    InferLazily,
    Load,
    Unload,
    Register,
    Unregister,
    Scale,
    SetDefault,
    Broadcast,
    RegisterRegion,
    UnregisterRegion,
)


def changes_something(operation: Operation) -> bool:
    """Return whether it changes the server, by whatever route it came: models, shared memory or settings."""
    if isinstance(operation, LogControl):
        return operation.change != NO_LOG_CHANGE
    if isinstance(operation, TraceControl):
        return operation.change is not None
    return isinstance(operation, _CHANGES)


class Readiness(msgspec.Struct, frozen=True, gc=False):
    """`reason` says why not. `is_passing`: it will be ready by itself, or is going down."""

    ready: bool
    reason: str = ""
    is_passing: bool = False


class Deferred(msgspec.Struct, frozen=True, gc=False):
    """Names the token by which an answer is fetched."""

    token: str


class Fetched(msgspec.Struct, frozen=True, gc=False):
    """Holds parts of a deferred answer, none where no more have come yet; `following` is the number of the next one.
    `is_last`: there will be no more; `is_whole`: the whole answer has come.
    """

    parts: tuple["ResponsePart", ...]
    following: int
    is_last: bool
    is_whole: bool


class ServerDescription(msgspec.Struct, frozen=True, gc=False):
    """The server itself."""

    name: str
    version: str
    state: ServerState


class VersionStatus(msgspec.Struct, frozen=True):
    """One row of a listing; `reason` of a failure or an unload, `source` what asked for it, if anything is known of
    that. Without `is_versioned` its version was filled in by a rule. `at_start`: the server was started with its model.
    `is_member`: a graph has brought it. `is_loaded`: it was loaded, whatever became of it since; `least`: instances
    that it always has, or will have; `is_default`: it serves the requests that name no version. Of one that is loaded
    also the kinds of payload that it `takes`, what its spec says of its `aliases` and `context`, and, if it generates,
    its `adapters`.
    """

    model: str
    version: str
    state: VersionState
    reason: str = ""
    source: ModelSource | None = None
    is_versioned: bool = True
    at_start: bool = False
    is_member: bool = False
    is_loaded: bool = False
    least: int = 0
    is_default: bool = False
    takes: frozenset[PayloadKind] = frozenset()
    aliases: tuple[str, ...] = ()
    context: int = 0
    adapters: tuple[StandingCall, ...] = ()


class InstanceStatus(msgspec.Struct, frozen=True, gc=False):
    """One open instance: its number, its name, the seconds since it was opened and when that was (in seconds of the
    Unix epoch), whether it has items, its device. One in a process of its own has the number of that and its resident
    memory in bytes.
    """

    number: int
    name: str
    age: float
    is_busy: bool
    device: Device
    device_id: int
    process: int | None = None
    memory: int | None = None
    started: float = 0.0


class ModelDescription(msgspec.Struct, frozen=True, gc=False):
    """Describes the version asked for: its spec, every ready version of its model, ascending, and the post-mortems of
    the last instances that died. In full also: what serves requests without a version, the state of all versions, the
    source that registered it, its groups with the bounds that hold now, its open instances, how many are being opened,
    how many items wait, the calls that each later instance makes before it serves, and, of a graph that is described
    with all versions, the models that it runs, in full.
    """

    spec: ModelSpec
    versions: tuple[str, ...]
    deaths: tuple[str, ...] = ()
    default: str = ""
    statuses: tuple[VersionStatus, ...] = ()
    source: ModelSource | None = None
    groups: tuple[InstanceGroup, ...] = ()
    instances: tuple[InstanceStatus, ...] = ()
    opening: int = 0
    queued: int = 0
    standing: tuple[StandingCall, ...] = ()
    members: "ModelDescriptions | None" = None


class ModelDescriptions(msgspec.Struct, frozen=True, gc=False):
    """Describes versions of one model: the states of all that were asked for, and in full those that could be read.
    `default` is what serves requests without a version; `said` what an item answered that was run for this.
    """

    statuses: tuple[VersionStatus, ...]
    models: tuple[ModelDescription, ...]
    default: str = ""
    said: Payload | None = None


class Listing(msgspec.Struct, frozen=True, gc=False):
    """Rows sorted by model, then version number; `following` is the model to ask after for more, empty where there is
    none. While the server `is_starting` there may be models that it does not know yet.
    """

    versions: tuple[VersionStatus, ...]
    following: str = ""
    is_starting: bool = False


class RegionListing(msgspec.Struct, frozen=True, gc=False):
    """Sorted by name."""

    regions: tuple[SharedRegion, ...]


class LogReport(msgspec.Struct, frozen=True, gc=False):
    """Answers what is logged."""

    settings: LogSettings


class TraceReport(msgspec.Struct, frozen=True):
    """Answers the settings that hold, and where traces are written: to a `file` (empty: nowhere), or (None) elsewhere;
    `told` is what that place tells of itself.
    """

    settings: TraceSettings
    file: str | None
    told: Mapping[str, str] = {}


class Snapshot(msgspec.Struct, frozen=True):
    """Tells how a server does at the time `when` of the Unix epoch, `now` by the core's clock: whether it is ready,
    every version with its state, what those that serve have counted, and how their instances are.
    """

    when: float
    now: float
    started: float
    state: ServerState
    readiness: Readiness
    listing: Listing
    statistics: StatisticsReport
    loads: tuple[VersionLoad, ...]


class Observation(msgspec.Struct, frozen=True):
    """Holds a snapshot and what else is known at its moment: timelines, settings of the log, bytes of `memory`, by
    whose they are. Of a model that was asked for also its versions in full, its last deaths, and the last lines of its
    workers.
    """

    snapshot: Snapshot
    timelines: Timelines
    log: LogSettings
    memory: Mapping[str, int]
    described: ModelDescriptions | None = None
    deaths: tuple[InstanceDeath, ...] = ()
    lines: tuple[WorkerSaid, ...] = ()


class ServedModels(msgspec.Struct, frozen=True, gc=False):
    """Holds the spec of the version of each model that serves requests without a version, by the model's name. A spec
    is the same object as long as the same load serves.
    """

    specs: tuple[ModelSpec, ...]


Answer = (
    Readiness
    | Deferred
    | Fetched
    | ServerDescription
    | ModelDescription
    | ModelDescriptions
    | Listing
    | StatisticsReport
    | MetricsReport
    | RegionListing
    | LogReport
    | TraceReport
    | Observation
    | ServedModels
    | Snapshot
    | VersionStatus
    | InstanceDeath
    | InstanceOpened
    | WorkerSaid
    | Timeline
    | LostNews
)


class ResponsePart(msgspec.Struct, frozen=True):
    """One part of an answer to an operation; the last one is `final`, and an error always is.

    Exactly one of `payload`, `answer` and `error` is set, but for an empty final part. `model` and `version`
    name what served it. The garbage collector tracks it, since an error's frames may lead back to it.
    """

    payload: Payload | None = None
    answer: Answer | None = None
    error: ServeError | None = None
    final: bool = True
    parameters: Mapping[str, Scalar] = {}
    model: str = ""
    version: str = ""
