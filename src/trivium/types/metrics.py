"""Measurements apart from the counters of a version: the machine, custom metrics, distributions.

Values only, neutral: times are seconds, sizes bytes, shares 0 to 1. Which text they become is a protocol's business.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

Buckets = tuple[tuple[float, int], ...]
"""Of a histogram, ascending: an upper bound, and how many lie above the bound before and not above this one. The
last bound is infinite.
"""


class Exemplar(msgspec.Struct, frozen=True, gc=False):
    """Names the trace of one observation that a histogram has counted: its `value`, and when that was, in seconds of
    the Unix epoch.
    """

    trace: str
    value: float
    when: float


@dataclass(frozen=True, slots=True)
class Measurements:
    """Says what a server measures because it was asked to. `quantiles` of the durations of the last minute;
    `first_parts`: how long models take to the first part of an answer; `requests`: what a log says of each request.
    `interval`: seconds for which what was read of the machine is good; `cpu` and `gpu`: is it read at all?
    """

    quantiles: tuple[float, ...] = ()
    first_parts: bool = False
    requests: bool = False
    interval: float = 2.0
    cpu: bool = True
    gpu: bool = True


@dataclass(frozen=True, slots=True)
class ModelMetrics:
    """Describes a model's own metrics: labels that all of them carry, and the upper bounds in seconds of the histogram
    of first parts (empty: the server's own). `log_every`: after so many requests, quantiles of how long they took are
    written to the log (0: never).
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    first_part_bounds: tuple[float, ...] = ()
    log_every: int = 0


class MetricSeries(msgspec.Struct, frozen=True, gc=False):
    """A custom metric under one set of labels, sorted by name. Of a histogram `value` is the sum of what was
    observed, `count` how often; both are 0 and empty for other kinds.
    """

    labels: tuple[tuple[str, str], ...]
    value: float
    count: int = 0
    buckets: Buckets = ()


class MetricFamily(msgspec.Struct, frozen=True, gc=False):
    """A custom metric; `kind` is counter, gauge or histogram."""

    name: str
    kind: str
    help: str
    series: tuple[MetricSeries, ...]


class DiskUse(msgspec.Struct, frozen=True, gc=False):
    """The file system that holds `/`: bytes in use, and those that are free for anybody."""

    used: int
    free: int


class MachineUse(msgspec.Struct, frozen=True, gc=False):
    """The whole machine: the share of its processors' time that was used since the last reading, memory, and the disk,
    where that can be read.
    """

    cpu: float
    memory_total: int
    memory_used: int
    disk: DiskUse | None = None


class CacheUse(msgspec.Struct, frozen=True, gc=False):
    """The cache of responses, over all models; sizes are bytes, times seconds."""

    limit: int
    used: int
    entries: int
    hits: int
    misses: int
    evictions: int
    lookup_seconds: float
    insertion_seconds: float


class LoopUse(msgspec.Struct, frozen=True, gc=False):
    """Tells how well the event loop keeps its time: stalls so far, the longest one in seconds, and the longest that
    its own thread computed while other work was due. `delays`: how late it was, in seconds, at looks that are taken all
    the time, and the sum of that.
    """

    stalls: int
    longest: float
    longest_turn: float = 0.0
    delays: Buckets = ()
    delayed: float = 0.0


class GpuUse(msgspec.Struct, frozen=True, gc=False):
    """One GPU, by its index; watts and joules. None where the driver does not tell."""

    index: int
    uuid: str
    utilization: float | None = None
    memory_total: int | None = None
    memory_used: int | None = None
    power: float | None = None
    power_limit: float | None = None
    energy: float | None = None
