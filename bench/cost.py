"""What a request costs: variants interleaved in one run, medians of seven rounds, ratios round by round."""

import statistics
from dataclasses import dataclass, field

from bench import compute, repository, requests, servers

ROUNDS = 7
SECONDS = 2.0


@dataclass
class Row:
    """One variant: CPU-microseconds per request in each round, its floor's in the same, and the limit."""

    name: str
    floor: str
    limit: float
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
            "is_met": self.ratio <= self.limit,
            "median_latency_us": statistics.median(self.latency_us),
            "rounds": {"cpu_us": self.cpu_us, "floor_cpu_us": self.floor_us},
        }


def measure(rounds: int = ROUNDS, seconds: float = SECONDS) -> list[Row]:
    """All variants. The bare server answers what the real one answers, byte for byte."""
    models = repository.make()
    echo, batched, picture = requests.echo("echo"), requests.echo("echo_batched"), requests.picture()
    rows = [
        Row("echo, unbatched, 16 connections", "F", 4.0),
        Row("echo, batched, 16 connections", "F", 3.2),
        Row("mobilenet, 1 connection", "compute", 1.08),
        Row("mobilenet, 8 connections", "compute", 1.10),
    ]
    with servers.trivium(models) as server, servers.bare(server.answer(echo)) as bare:
        for request in (echo, batched, picture):
            server.load(request, 8, 1.0)
        bare.load(echo, 16, 1.0)
        for _ in range(rounds):
            floor = bare.load(echo, 16, seconds).cpu_us
            for row, request in zip(rows[:2], (echo, batched), strict=True):
                _note(row, server.load(request, 16, seconds), floor)
            floor = compute.measure(models / "mobilenet" / "1" / "model.onnx", seconds)
            for row, connections in zip(rows[2:], (1, 8), strict=True):
                _note(row, server.load(picture, connections, seconds * 1.5), floor)
    return rows


def _note(row: Row, measured: servers.Measured, floor: float) -> None:
    row.cpu_us.append(measured.cpu_us)
    row.latency_us.append(measured.latency_us)
    row.floor_us.append(floor)
