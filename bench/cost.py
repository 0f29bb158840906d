"""What a request costs: variants interleaved in one run, medians of seven rounds, ratios round by round."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from bench import compute, grpc_load, repository, requests, servers, tritonserver

ROUNDS = 7
SECONDS = 2.0
WARM_SECONDS = 4.0
"""Of a row's own load before it is measured: what a server does for a load depends on its last seconds (ADR 12)."""
LARGE, LARGE_FLOOR = 4.0, 1.5
"""How many times as long a large model's row takes, and each half of its floor: a second of compute alone differs from
the next by 2.5 % (one deviation, the same process), and a server's share of such a request is 5 to 20 %.
"""


@dataclass
class Row:
    """One variant: CPU-microseconds per request in each round, its floor's in the same, and the limit."""

    name: str
    floor: str
    limit: float | None
    cpu_us: list[float] = field(default_factory=list)
    latency_us: list[float] = field(default_factory=list)
    floor_us: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Median of the rounds' ratios to the floor."""
        return statistics.median(a / b for a, b in zip(self.cpu_us, self.floor_us, strict=True))

    def as_json(self) -> dict[str, object]:
        """Everything measured."""
        return {
            "variant": self.name,
            "floor": self.floor,
            "cpu_us": statistics.median(self.cpu_us),
            "floor_cpu_us": statistics.median(self.floor_us),
            "ratio": self.ratio,
            "limit": self.limit,
            "is_met": None if self.limit is None else self.ratio <= self.limit,
            "median_latency_us": statistics.median(self.latency_us),
            "rounds": {"cpu_us": self.cpu_us, "floor_cpu_us": self.floor_us},
        }


@dataclass(frozen=True)
class Variant:
    """One row of the table before it is measured; `wire` is http or grpc, `profile` the server's."""

    row: Row
    request: requests.AnyRequest
    connections: int
    wire: str = "http"
    profile: str = "native"

    def load(self, server: servers.Server, seconds: float) -> servers.Measured:
        """One round."""
        if self.wire == "grpc":
            assert isinstance(self.request, requests.Request)
            return grpc_load.load(server, self.request, self.connections, seconds)
        return server.load(self.request, self.connections, seconds)


@dataclass(frozen=True)
class Comparison:
    """Our cost beside that of the real tritonserver, round by round: of a request, or, `over_floor`, of what it costs
    above its floor.
    """

    name: str
    ours: Row
    theirs: Row
    limit: float
    over_floor: bool = False

    @property
    def ratio(self) -> float:
        """Median of the rounds' ratios."""
        return statistics.median(
            a / b for a, b in zip(self._of(self.ours), self._of(self.theirs), strict=True)
        )

    @property
    def is_met(self) -> bool:
        """Is it within the limit?"""
        return self.ratio <= self.limit

    def _of(self, row: Row) -> list[float]:
        floors = row.floor_us if self.over_floor else [0.0] * len(row.cpu_us)
        return [cost - floor for cost, floor in zip(row.cpu_us, floors, strict=True)]


COMPARED = (
    ("HTTP, handler echo, unbatched", "handler echo, unbatched", 0.45, False),
    ("HTTP, handler echo, batched", "handler echo, batched", 0.45, False),
    ("gRPC, handler echo, unbatched", "gRPC handler echo, unbatched", 1.5, False),
    ("handler mobilenet, 1 connection, above compute", "handler mobilenet, 1 connection", 0.5, True),
    ("handler mobilenet, 8 connections, above compute", "handler mobilenet, 8 connections", 0.5, True),
)
"""Name, how the rows begin, the limit, whether what lies under the floor is left out."""


DIALECTS = ("DJL", "TorchServe")
DIALECT_LIMIT = 1.3
"""How much dearer than the v2 echo, behind a handler as well, an echo of another dialect may be."""


def beside_v2(rows: list[Row]) -> list[Comparison]:
    """Pair the echoes of the other dialects with the v2 echo, each through a Python handler in a worker."""
    by_name = {row.name: row for row in rows}
    ending = "handler echo, unbatched, 16 connections"
    return [
        Comparison(f"{name} / v2, handler echo", by_name[f"{name} {ending}"], by_name[ending], DIALECT_LIMIT)
        for name in DIALECTS
    ]


def beside_tritonserver(rows: list[Row]) -> list[Comparison]:
    """Our rows with their twins."""

    def find(start: str) -> Row:
        return next(row for row in rows if row.name.startswith(start))

    return [
        Comparison(name, find(start), find(f"tritonserver: {start}"), limit, over_floor)
        for name, start, limit, over_floor in COMPARED
    ]


def variants() -> list[Variant]:
    """Every variant on our own server. F is the bare server, "compute" the same session in a process by itself."""
    echo, raw, json, picture = requests.echo, requests.raw_echo, requests.json_echo, requests.picture
    foreign = "handler echo, unbatched, 16 connections"
    return [
        Variant(Row("echo, unbatched, 16 connections", "F", 4.0), echo("echo"), 16),
        Variant(Row("echo, batched, 16 connections", "F", 3.2), echo("echo_batched"), 16),
        Variant(Row("JSON echo, unbatched, 16 connections", "F", None), json("echo"), 16),
        Variant(Row("JSON handler echo, unbatched, 16 connections", "F", None), json("python_echo"), 16),
        Variant(Row("ensemble of two echoes, 16 connections", "F", None), echo("ensemble"), 16),
        Variant(Row("handler echo, unbatched, 16 connections", "F", 6.0), echo("python_echo"), 16),
        Variant(Row("handler echo, batched, 16 connections", "F", 4.0), echo("python_echo_batched"), 16),
        Variant(
            Row("gRPC handler echo, unbatched, 16 at a time", "F", None), echo("python_echo"), 16, "grpc"
        ),
        Variant(Row(f"DJL {foreign}", "F", None), raw("djl_echo"), 16, profile="djl"),
        Variant(Row(f"TorchServe {foreign}", "F", None), raw("torchserve_echo"), 16, profile="torchserve"),
        Variant(Row("mobilenet, 1 connection", "compute", 1.08), picture(), 1),
        Variant(Row("mobilenet, 8 connections", "compute", 1.10), picture(), 8),
        Variant(Row("handler mobilenet, 1 connection", "compute", 1.10), picture("python_mobilenet"), 1),
        Variant(Row("handler mobilenet, 8 connections", "compute", 1.14), picture("python_mobilenet"), 8),
    ]


def triton_variants() -> list[Variant]:
    """The same handlers on the real tritonserver; there is no limit for those."""
    echo, picture = requests.echo, requests.picture
    return [
        Variant(Row("tritonserver: handler echo, unbatched", "F", None), echo("python_echo"), 16),
        Variant(Row("tritonserver: handler echo, batched", "F", None), echo("python_echo_batched"), 16),
        Variant(
            Row("tritonserver: gRPC handler echo, unbatched", "F", None), echo("python_echo"), 16, "grpc"
        ),
        Variant(
            Row("tritonserver: handler mobilenet, 1 connection", "compute", None),
            picture("python_mobilenet"),
            1,
        ),
        Variant(
            Row("tritonserver: handler mobilenet, 8 connections", "compute", None),
            picture("python_mobilenet"),
            8,
        ),
    ]


def measure(rounds: int = ROUNDS, seconds: float = SECONDS) -> list[Row]:
    """All variants. Every round starts its servers anew: where in memory a process lies makes it up to 3 % dearer than
    its twin, for as long as it lives.
    """
    ours, theirs = variants(), triton_variants()
    for _ in range(rounds):
        _measure_round(ours, theirs, seconds)
    return [variant.row for variant in ours + theirs]


def _measure_round(ours: list[Variant], theirs: list[Variant], seconds: float) -> None:
    """The bare server answers what the real one answers, byte for byte."""
    models, handlers = repository.make()
    foreign = repository.make_foreign()
    echo = ours[0].request
    with (
        servers.trivium(models, handlers) as native,
        servers.trivium(foreign["djl"], profile="djl") as djl,
        servers.trivium(foreign["torchserve"], profile="torchserve") as torchserve,
        servers.bare(native.answer(echo)) as bare,
        tritonserver.running(handlers) as triton,
    ):
        profiles = {"native": native, "djl": djl, "torchserve": torchserve}
        table = [(profiles[variant.profile], variant) for variant in ours] + [
            (triton, variant) for variant in theirs
        ]
        bare.load(echo, 16, 1.0)
        floors = {
            "F": lambda: bare.load(echo, 16, seconds / 2).cpu_us,
            "compute": lambda: compute.measure(
                models / "mobilenet" / "1" / "model.onnx", seconds * LARGE_FLOOR
            ),
        }
        for place, variant in sorted(table, key=_twins_together):
            _measure_row(variant, place, floors[variant.row.floor], seconds)


def _twins_together(entry: tuple[servers.Server, Variant]) -> tuple[int, str]:
    """What is compared is measured one behind the other: by the floor, then by the name that both share."""
    name = entry[1].row.name
    for prefix in ("tritonserver: ", *(f"{dialect} " for dialect in DIALECTS)):
        name = name.removeprefix(prefix)
    return entry[1].row.floor == "compute", name


def _measure_row(variant: Variant, place: servers.Server, floor: Callable[[], float], seconds: float) -> None:
    """One round of a row, behind some seconds of the same load, and its floor, the mean of one half before it and one
    behind it: a machine that slows down or speeds up favours neither.
    """
    row = variant.row
    before = floor()
    variant.load(place, WARM_SECONDS)
    measured = variant.load(place, seconds if row.floor == "F" else seconds * LARGE)
    row.cpu_us.append(measured.cpu_us)
    row.latency_us.append(measured.latency_us)
    row.floor_us.append((before + floor()) / 2)
