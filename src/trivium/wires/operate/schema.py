"""The documents of /api/v1, as values: what each answer holds. Times are seconds of the Unix epoch, durations seconds
(`_s`), sizes bytes.
"""

from collections.abc import Mapping

import msgspec


class InstanceTally(msgspec.Struct, frozen=True, gc=False):
    """Counts instances of a model by how they are."""

    ready: int
    starting: int
    failed: int


class ModelRow(msgspec.Struct, frozen=True, gc=False):
    """Tells how one model does, its versions together; `version` and `state` are those of the one that serves requests
    without a version, else of the greatest. `history`: requests in each of the last seconds, the oldest first.
    """

    name: str
    version: str
    state: str
    reason: str | None
    engine: str | None
    requests: int
    failures: int
    requests_per_s: float
    p50_s: float | None
    p99_s: float | None
    waiting: int
    running: int
    instances: InstanceTally
    history: tuple[float, ...]


class ServerRow(msgspec.Struct, frozen=True, gc=False):
    """Tells how the server does: a `sentence` where it is not ready, and what mends that."""

    name: str
    version: str
    profile: str
    started: float
    ready: bool
    sentence: str | None
    mend: str | None
    signed_in: bool = False


class Totals(msgspec.Struct, frozen=True, gc=False):
    """Sums over all models that serve, since each was loaded; `requests` have ended, `failures` of them not well."""

    requests: int
    failures: int
    waiting: int
    connections: int


class Overview(msgspec.Struct, frozen=True, gc=False):
    """The server and all its models."""

    server: ServerRow
    totals: Totals
    models: tuple[ModelRow, ...]


class VersionRow(msgspec.Struct, frozen=True, gc=False):
    """One version with its state, and why it is that."""

    version: str
    state: str
    reason: str | None


class TensorRow(msgspec.Struct, frozen=True, gc=False):
    """An input or output: its whole shape with the batch axis, -1 for any size."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    is_optional: bool


class TryIt(msgspec.Struct, frozen=True, gc=False):
    """A request to a model that works: which kinds of input it may have, the likeliest first, and an example of one."""

    kinds: tuple[str, ...]
    method: str
    path: str
    content_type: str
    example: object


class SettingRow(msgspec.Struct, frozen=True, gc=False):
    """A field of a model's configuration, or an option, and where it was set."""

    name: str = msgspec.field(name="key")
    value: str
    where: str | None


class OptionRow(msgspec.Struct, frozen=True, gc=False):
    """An option of the server, and where it was set."""

    name: str
    value: str
    where: str | None


class FindingRow(msgspec.Struct, frozen=True, gc=False):
    """Says what is wrong with a model's files, or worth knowing, and what mends it."""

    severity: str
    text: str
    where: str | None
    mend: str | None


class ModelPage(ModelRow, frozen=True, gc=False, kw_only=True):
    """All that is known of one model."""

    versions: tuple[VersionRow, ...]
    origin: str
    inputs: tuple[TensorRow, ...]
    outputs: tuple[TensorRow, ...]
    try_it: TryIt | None
    configuration: tuple[SettingRow, ...]
    findings: tuple[FindingRow, ...]


class DeathRow(msgspec.Struct, frozen=True, gc=False):
    """Tells how an instance was lost, and what it had printed last."""

    when: float
    cause: str
    last_lines: tuple[str, ...]


class InstanceRow(msgspec.Struct, frozen=True, gc=False):
    """One instance, or a place of one that is lost: its process, and how it died before."""

    name: str
    version: str
    device: str
    state: str
    pid: int | None = None
    resident_bytes: int | None = None
    started: float | None = None
    deaths: tuple[DeathRow, ...] = ()


class Instances(msgspec.Struct, frozen=True, gc=False):
    """The instances of a model."""

    instances: tuple[InstanceRow, ...]


class LogRow(msgspec.Struct, frozen=True, gc=False):
    """A line that an instance has printed."""

    when: float
    model: str
    version: str
    instance: str
    text: str


class Logs(msgspec.Struct, frozen=True, gc=False):
    """The last lines of a model's instances, the oldest first."""

    lines: tuple[LogRow, ...]


class TimelineRow(msgspec.Struct, frozen=True, gc=False):
    """Tells how one request went: `status` is "ok", or says which kind of error it is."""

    id: str
    model: str
    version: str
    received: float
    queue_s: float
    input_s: float
    compute_s: float
    output_s: float
    total_s: float
    batch_size: int
    batched_with: tuple[str, ...]
    status: str
    error: str | None


class Requests(msgspec.Struct, frozen=True, gc=False):
    """Requests that ended while somebody listened to the events, `since` when (None: nobody has)."""

    slowest: tuple[TimelineRow, ...]
    failed: tuple[TimelineRow, ...]
    sample: tuple[TimelineRow, ...]
    since: float | None


class ListenerRow(msgspec.Struct, frozen=True, gc=False):
    """Names a listener, and where it listens."""

    name: str
    address: str


class SettingsPage(msgspec.Struct, frozen=True, gc=False):
    """Tells what the server was started with, where it listens, and what it takes."""

    settings: tuple[OptionRow, ...]
    listeners: tuple[ListenerRow, ...]
    log_level: str
    memory: Mapping[str, int]
    connections: int


class StateEvent(msgspec.Struct, frozen=True, gc=False):
    """A version, or an `instance` of one, has come to another state."""

    when: float
    model: str
    version: str
    state: str
    reason: str | None = None
    instance: str | None = None


class DeathEvent(DeathRow, frozen=True, gc=False, kw_only=True):
    """An instance was lost."""

    model: str
    version: str
    instance: str


class LostEvent(msgspec.Struct, frozen=True, gc=False):
    """So many events were not sent, since they were read too slowly."""

    count: int
