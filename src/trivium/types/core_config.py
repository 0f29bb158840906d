"""Settings of the core, as the composition root hands them over: one frozen value, made once."""

from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from trivium.types.metrics import Measurements
from trivium.types.resources import ResourceLimits
from trivium.types.spec import Defaults
from trivium.types.tracing import TraceSettings


class ModelControlMode(Enum):
    """Says who changes what is served while the server runs."""

    EXPLICIT = "explicit"  # clients do
    POLL = "poll"  # the folders do, as they change
    NONE = "none"  # nobody does


@dataclass(frozen=True, slots=True)
class WorkerBounds:
    """Bounds of every worker process: so many open files and processors at most (0: as many as the server), and no
    network where it `is_offline`.
    """

    files: int = 0
    processors: int = 0
    is_offline: bool = False


@dataclass(frozen=True, slots=True)
class DeferredLimits:
    """Bounds of answers that are kept until they are fetched: so many, so many bytes together, so many seconds each."""

    count: int = 10_000
    size: int = 256 * 2**20
    age: float = 3600.0


@dataclass(frozen=True, slots=True)
class UnreadLimits:
    """Bounds of streamed answers that are kept for receivers which are slower than the model, while other requests wait
    for that: so many bytes of all together in `memory`, and so many more on `disk`, in the scratch folder.
    """

    memory: int = 64 * 2**20
    disk: int = 2**30


@dataclass(frozen=True, slots=True)
class CoreConfig:
    """Holds every setting of the core that is no model's own.

    `loads_at_once` models are opened at a time, a version that fails `load_retries` times more; with `unique_names` all
    models of a name that comes twice are refused, not only the second one; `is_lenient`: models that failed do not keep
    the server from being ready. With `is_patient` requests to a model that is being loaded wait until it serves, and
    those to one whose instances do not open wait until it is given up. With `binds_answers` an answer of user code that
    is not as declared fails its request; else that is logged once. Folders are looked at every `poll_seconds` with
    POLL, and with `follows_files` whenever it is asked for, whoever else changes what is served. Cached answers take
    `cache_bytes` at most (0: none is cached); instances run within `resources`, unless that is None. A worker process
    is replaced after `recycle_items` items, or growth by `recycle_bytes`, where its model sets no bound of its own; one
    that has more than `worker_bytes` of memory is killed, and all are kept within `worker_bounds`. With
    `client_shared_memory` clients pass tensors in shared memory, by keys that begin with none of `reserved_regions`. Of
    buffers for request bodies `kept_buffer_bytes` at most are kept while nobody uses them, of answers that are fetched
    later as many as `deferred` allows, of streams that are not read in time as much as `unread` does. With
    `watches_loop` what holds up the event loop is logged with its stack; one server of a process can have that.
    `follows_lines`: lines of workers say which requests they had in hand.
    `installs_registered`: what `defaults` say of installing packages holds for models that clients register, too.
    """

    version: str = "0"
    defaults: Defaults = field(default_factory=Defaults)
    loads_at_once: int = 4
    load_retries: int = 0
    unique_names: bool = False
    is_lenient: bool = False
    is_patient: bool = False
    binds_answers: bool = True
    control: ModelControlMode = ModelControlMode.EXPLICIT
    poll_seconds: float = 15.0
    follows_files: bool = False
    cache_bytes: int = 0
    resources: ResourceLimits | None = None
    recycle_items: int | None = None
    recycle_bytes: int | None = None
    worker_bytes: int | None = None
    worker_bounds: WorkerBounds = WorkerBounds()
    measures: Measurements = field(default_factory=Measurements)
    traces: TraceSettings = field(default_factory=TraceSettings)
    client_shared_memory: bool = False
    reserved_regions: tuple[str, ...] = ()
    kept_buffer_bytes: int = 2**28
    deferred: DeferredLimits = DeferredLimits()
    unread: UnreadLimits = UnreadLimits()
    watches_loop: bool = False
    follows_lines: bool = False
    installs_registered: bool = False

    def in_folder(self, scratch: Path) -> "CoreConfig":
        """Return it with this scratch folder."""
        return replace(self, defaults=replace(self.defaults, scratch=scratch))
