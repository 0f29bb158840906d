"""A model's spec: the narrow waist between the formats that read it and the core that serves it.

A format translates its whole file into a `ModelSpec` or refuses it; each key is used, passed on in
`parameters`, or reported in `reports`. Inside, time is seconds and sizes are bytes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from trivium.types.batch_shapes import BatchShapes
from trivium.types.datatype import DataType
from trivium.types.findings import Finding
from trivium.types.metrics import ModelMetrics
from trivium.types.resources import ResourceRequest
from trivium.types.schedules import Graph, Sequence
from trivium.types.warmups import Warmup

UNTOLD = "INVALID"
"""The datatype that clients are told of a tensor whose model file tells none: what other servers of the protocol have
for it (`TYPE_INVALID`), so that a client's table of datatypes finds nothing, instead of something wrong.
"""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output. `dims` excludes the batch dimension where the model has one; -1 is any size.

    `labels` name the classes of an output, in order of its last dimension. `inner` are the dims that the engine has for
    it, where they are others: as many elements, and as many dims of any size. A `ragged` input may have another shape
    in each request of a batch.

    Of an `open` one the model file tells a name alone: datatype and shape are those of the request, and those that
    stand here stand for any. A `many` input, which is open, stands for any number of tensors under any names.

    A `column` is one of a table's: [rows, 1] or [rows], and where it holds numbers, numbers of any datatype.
    """

    name: str
    datatype: DataType
    dims: tuple[int, ...]
    optional: bool = False
    labels: tuple[str, ...] = ()
    inner: tuple[int, ...] | None = None
    ragged: bool = False
    open: bool = False
    many: bool = False
    column: bool = False

    @property
    def wire(self) -> str:
        """Return the datatype that clients see."""
        return UNTOLD if self.open else self.datatype.wire

    def kind(self, is_batched: bool) -> str:
        """Return datatype and shape as clients send them, -1 for any size: `FP32[-1,3]`, where requests are batched."""
        if self.open:
            return "(any number of tensors)" if self.many else "(any datatype and shape)"
        dims = (-1, *self.dims) if is_batched else self.dims
        return f"{self.datatype.wire}[{','.join(map(str, dims))}]"


class Join(Enum):
    """Names how the tensors of several items become those of one execution."""

    ROWS = "rows"  # one behind the other, along the first dimension
    STACK = "stack"  # one upon the other, along a new first dimension; all have one shape
    PAD = "pad"  # like STACK, and shorter ones are filled up with zeros


@dataclass(frozen=True, slots=True)
class Batching:
    """Names how items share an execution.

    `batch_axis`: tensors carry a leading batch dimension. `max_rows`: rows in one execution, a client's own
    batch counted (without a batch axis: 1). `merge`: may the core put several items together? `join`: in what way the
    engine then does; with a new first dimension even a single item gets it, and answers lose it.
    """

    batch_axis: bool = False
    max_rows: int = 1
    merge: bool = False
    join: Join = Join.ROWS


class OnExpiry(Enum):
    """Names what becomes of an item whose time in the queue is up."""

    REJECT = "reject"  # answered with EXPIRED
    DEMOTE = "demote"  # moved behind all others of its level, without a deadline


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Rules of one priority level. `timeout` seconds in the queue (None: any); `may_shorten`: a request may
    ask for less, never for more. `max_items` bounds the level (None: the model's bound alone).
    """

    on_expiry: OnExpiry = OnExpiry.REJECT
    timeout: float | None = None
    may_shorten: bool = False
    max_items: int | None = None


@dataclass(frozen=True, slots=True)
class Dynamic:
    """The dynamic scheduler: priorities 1 (first) to `levels`; a batch waits at most `max_delay` seconds to
    reach a preferred number of rows. Without delay whatever waits when a credit comes back goes as one batch.
    """

    max_delay: float = 0.0
    preferred_rows: tuple[int, ...] = ()
    levels: int = 1
    default_level: int = 1
    default_policy: QueuePolicy = QueuePolicy()
    level_policies: Mapping[int, QueuePolicy] = field(default_factory=dict)


class Device(Enum):
    """Names where an instance computes."""

    CPU = "cpu"
    GPU = "gpu"


class Isolation(Enum):
    """Names where a runner runs. INLINE, on the loop, is for built-in work of microseconds only."""

    INLINE = "inline"
    THREAD = "thread"
    PROCESS = "process"


MOST_INSTANCES = 1024
"""Instances of a group that a configuration may ask for: more is a slip of the pen, and would end the machine."""


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """Alike instances: `minimum` are always up, up to `maximum` while there is work for them; one beyond the
    minimum that idles for `idle_seconds` is closed. `device_ids` spreads instances over GPUs; without
    `isolation` the engine's own default holds. `claim` is what each of them needs while it runs, where that is counted.
    A fixed group has exactly its minimum, whatever its maximum says.

    An instance takes `span` of the device ids together. Of `ranks` above 1 it is a gang of so many processes: they find
    one another by what their environment says, the first one answers, and where the others `are_passive` it alone gets
    requests.
    """

    name: str
    minimum: int = 1
    maximum: int = 1
    idle_seconds: float = 60.0
    device: Device = Device.CPU
    device_ids: tuple[int, ...] = ()
    isolation: Isolation | None = None
    claim: ResourceRequest = field(default_factory=ResourceRequest)
    is_fixed: bool = False
    span: int = 1
    ranks: int = 1
    are_passive: bool = False

    @property
    def floor(self) -> int:
        """Instances that are always open."""
        return self.minimum

    @property
    def ceiling(self) -> int:
        """Instances that may be open."""
        return self.minimum if self.is_fixed else self.maximum


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Memory for which a load is refused where it is not free, in bytes, on each device of a kind that the model runs
    on: `required` by the model, and `reserved` for others.
    """

    device: Device
    required: int = 0
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one model. Items beyond `queue_items` are refused with QUEUE_FULL; deadlines in seconds. If the queue
    `fills_early`, its last place is for a time when an instance is free, or another may be opened. With `needs_free` an
    item is refused in the same way unless an instance is free for it now.

    A model whose instances died or did not open more than `restarts` times in a row is given up, and one of which more
    than `deaths` died in all, whatever they did before (None: any number). With `retry_seconds` no number counts: it is
    given up by the first failure so long after the one that began the row. Behind the first of a row the first of
    `retry_steps` passes before the next try, and so on, the last one behind all further ones. An item is ended
    `item_deadline` seconds after its receipt, wherever it is, and whatever longer time it asks for. One whose answer,
    or a part of it, is a body of more than `answer_bytes` fails. What a version that is unloaded has still in work
    `drain_seconds` later is ended; None lets all of it finish. A worker process is replaced after `recycle_items`
    items, or when its memory has grown by `recycle_bytes`, and killed when it has more than `most_bytes`. Whatever
    stands in `memory` is free before anything of the model is started; the CPU's entry counts for the load of every
    device.
    """

    queue_items: int = 1000
    run_deadline: float | None = None
    startup_deadline: float = 300.0
    restarts: int = 10
    deaths: int | None = None
    retry_seconds: float | None = None
    retry_steps: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
    item_deadline: float | None = None
    answer_bytes: int | None = None
    drain_seconds: float | None = None
    fills_early: bool = False
    needs_free: bool = False
    recycle_items: int | None = None
    recycle_bytes: int | None = None
    most_bytes: int | None = None
    memory: tuple[MemoryNeed, ...] = ()


@dataclass(frozen=True, slots=True)
class Latest:
    """Serve the `count` numerically greatest versions."""

    count: int = 1


@dataclass(frozen=True, slots=True)
class All:
    """Serve every version there is."""


@dataclass(frozen=True, slots=True)
class Specific:
    """Serve exactly these versions."""

    versions: frozenset[str]


VersionPolicy = Latest | All | Specific


def version_order(version: str) -> tuple[int, str]:
    """Return the key that sorts versions: numerically, then as text."""
    return (int(version) if version.isdecimal() else 0, version)


@dataclass(frozen=True, slots=True)
class OwnEnvironment:
    """Asks for an environment of a handler's own, which is made once per load: on top of what its interpreter has, with
    the packages that the file `requirements` names, from the folder `wheels` first and, if `is_offline`, from nowhere
    else. Both lie in the handler's directory; empty for none.

    `is_private`: no other model shares it, and the model is not loaded without it. `needs_packages`: nor is it without
    all that its requirements name. `parent` is where it is made; None for the server's scratch folder.
    """

    requirements: str = ""
    wheels: str = ""
    is_offline: bool = False
    is_private: bool = False
    parent: Path | None = None
    needs_packages: bool = False


@dataclass(frozen=True, slots=True)
class Handler:
    """User code in Python, for a worker process. `python` is the interpreter (empty: the server's own),
    `function` what to call, where the dialect lets it be chosen; `path` comes in front of `sys.path`.
    `settings` are JSON values for the dialect's adapter in `trivium_worker`: a manifest, a configuration. `completes`:
    it is asked, before any instance is opened, what of the configuration it wants otherwise. `own` is the environment
    that is made for it; None where it runs in that of its interpreter. With `takes_json` what was called a form and is
    JSON by its looks comes as JSON; else as the form that it was called.
    """

    python: str = ""
    function: str = ""
    path: tuple[Path, ...] = ()
    directory: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    completes: bool = False
    own: OwnEnvironment | None = None
    takes_json: bool = False


@dataclass(frozen=True, slots=True)
class TranslatorSpec:
    """Names the translator between the form that clients have and the tensors of a model, and its arguments, by name:
    JSON values. `code` is the class of a translator that lies beside the model, as "module:Class", and `path` comes in
    front of `sys.path` for it; else empty. What a request or an argument names by URL is fetched from `places` alone,
    `most_bytes` of it. Of a request that holds many inputs `most_rows` run at once, or as many as the model's batches
    have. `inputs` are those of the model file, where clients send others as tensors, too: the translator makes the
    first of the second. Empty where tensors pass it by.
    """

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    code: str = ""
    path: tuple[Path, ...] = ()
    places: str = ""
    most_bytes: int = 2**25
    most_rows: int = 32
    inputs: tuple[TensorSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Says where a field of a spec comes from: a file's key and line, or a rule that filled it in."""

    file: str
    key: str
    line: int | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place} ({self.key})" if self.key else place


@dataclass(frozen=True, slots=True)
class Foreign:
    """The foreign document as read. Only its own dialect and format look inside, to describe it back to a client, or to
    name what a graph brings with it; it never chooses behaviour.
    """

    dialect: str
    document: object


@dataclass(frozen=True, slots=True)
class StandingCall:
    """A call of a named function of user code that every instance makes before it serves; `topic` is its name. The
    function gets a body without parts. `undo` is called where a graph has had its model make the call, and goes.
    """

    topic: str
    function: str
    properties: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[tuple[str, str], ...] = ()
    undo: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One version of one model, whole. `entry` is the file (or module:function) that `engine` opens.

    `shown_root` is how people know `root`, where that was unpacked from an archive.

    Without `is_versioned` the version was filled in by a rule. `in_turns`: the ready versions take turns at requests
    that name none. `in_order`: answers leave in the order in which their requests came; `caches`: what was answered to
    the same inputs may be answered again. `functions` are those of user code that may be called by name, `standing` the
    calls that each instance makes before it serves, from the start; of a graph those that its steps need of their
    models. `details` are what is known of the model beside its tensors, for people: its architecture, its memory. With
    a `translator` clients may send what that takes, beside the model's own tensors. Requests may call the model by one
    of its `aliases`, too; `context` is how many tokens a prompt and its answer may have (0: not known, or no language
    model). Its code calls the models of `calls`, which are loaded before it. `origin` maps a field's name
    (`inputs[0].dims`, `batching.max_rows`) to where its value was found.
    """

    name: str
    version: str
    root: Path
    engine: str
    entry: str
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    batching: Batching = Batching()
    scheduling: Dynamic | Sequence | Graph = Dynamic()
    groups: tuple[InstanceGroup, ...] = ()
    limits: Limits = Limits()
    streams: bool = False  # it may answer a request with several parts, or with none
    in_order: bool = False
    caches: bool = False
    warmups: tuple[Warmup, ...] = ()
    version_policy: VersionPolicy = Latest()
    parameters: Mapping[str, str] = field(default_factory=dict)
    handler: Handler | None = None
    foreign: Foreign | None = None
    metrics: ModelMetrics = field(default_factory=ModelMetrics)
    origin: Mapping[str, Origin] = field(default_factory=dict)
    reports: tuple[Finding, ...] = ()
    batch_shapes: BatchShapes = field(default_factory=BatchShapes)
    is_versioned: bool = True
    in_turns: bool = False
    functions: tuple[str, ...] = ()
    standing: tuple[StandingCall, ...] = ()
    shown_root: Path | None = None
    translator: TranslatorSpec | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    context: int = 0
    calls: tuple[str, ...] = ()

    @property
    def dynamic(self) -> Dynamic:
        """The rules for levels and delay: as written for the dynamic scheduler, the defaults for any other."""
        return self.scheduling if isinstance(self.scheduling, Dynamic) else Dynamic()


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Holds what the model file itself says, gathered by its engine in a probe process; JSON-encodable.

    Dims here are whole, as the file declares them, -1 for a symbolic one. `batchable`: every input and
    output has a first dimension of any size. `notes` are sentences for operators about what they wrote, `remarks` about
    what the file lets be known, for `trivium check`. `document` is the whole
    configuration as a handler completed it, a text in its dialect's own words; empty for all others. `details` are
    those of a spec, each with the place or rule that it comes from; so is `context`.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    batchable: bool
    notes: tuple[str, ...] = ()
    document: str = ""
    details: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    context: int = 0


FindElsewhere = Callable[[str, bool], Path | None]
"""Returns where weights are that a model's files name by URI, with its code where that may run; None where they are not
here. Raises ServeError with why they cannot be.
"""


def found_nowhere(uri: str, with_code: bool) -> Path | None:
    """Have nothing that lies elsewhere."""
    return None


@dataclass(frozen=True, slots=True)
class Defaults:
    """Holds what a format may fall back on. `scratch` is a private folder, removed when the server ends, in which
    archives are unpacked; None where none may be. `completes`: a format may fill in what a configuration leaves out. Of
    a model's configurations `config_name` is preferred. `installs`: packages that a model names may be installed.
    `places` is where requests may have something fetched from: the entries of the server's list, split by commas.
    `engine_parameters` are those of models that have no configuration, by "engine.name". `elsewhere` finds weights that
    a model's files name, and that are no files of its own. `text_engine` is the engine that generates text, where the
    operator named one; `has_vllm`: is vLLM installed?
    """

    queue_items: int = 1000
    run_deadline: float | None = None
    startup_deadline: float = 300.0
    max_rows: int = 4
    gpus: int = 0
    cpus: int = 1
    scratch: Path | None = None
    completes: bool = True
    config_name: str = ""
    installs: bool = False
    places: str = ""
    engine_parameters: Mapping[str, str] = field(default_factory=dict)
    elsewhere: FindElsewhere = field(default=found_nowhere, compare=False)
    text_engine: str = ""
    has_vllm: bool = False

    def parameters_of(self, engine: str) -> dict[str, str]:
        """Return the parameters of one engine, by its own names."""
        prefix, asked = f"{engine}.", self.engine_parameters.items()
        return {name.removeprefix(prefix): value for name, value in asked if name.startswith(prefix)}


@dataclass(frozen=True, slots=True)
class InvalidModel:
    """A model that was found and cannot be served as written; its neighbours load all the same."""

    name: str
    root: Path
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Lists what a format made of a path: a spec per version found, and what it could not read."""

    specs: tuple[ModelSpec, ...]
    unreadable: tuple[InvalidModel, ...] = ()
