"""Takes samples of a server: memory, descriptors, threads and processes of it and of its children, and its cost."""

import re
import statistics
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field

import psutil
from bench.soak.slopes import Bound
from bench.soak.traffic import Books

MIB = 2**20
TURN = "longest turn of the loop"
_TURN_LINE = re.compile(r"^trivium_loop_longest_turn_seconds (\S+)", re.MULTILINE)
BOUNDS: Mapping[str, Bound] = {
    "memory of the server": Bound("MiB", 8, 0.05),
    "memory of its workers": Bound("MiB", 8, 0.05),
    "descriptors": Bound("", 4),
    "threads": Bound("", 2),
    "processes": Bound("", 1),
    "processor time per request": Bound("µs", 100, 0.15),
    "median wait": Bound("ms", 0.5, 0.25),
    "99th percentile": Bound("ms", 2, 0.5),
    TURN: Bound("ms", 100),
}
"""The growth of each series within which a run is flat. Waits are those of a machine that does other things, too."""


@dataclass
class Samples:
    """What was seen over time: seconds since the start, and a value of each series at each of them."""

    times: list[float] = field(default_factory=list)
    series: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in BOUNDS})

    def add(self, time: float, values: Mapping[str, float]) -> None:
        self.times.append(time)
        for name, kept in self.series.items():
            kept.append(values[name])

    def after(self, seconds: float) -> "Samples":
        """Those that were taken later than that."""
        first = next(index for index, time in enumerate(self.times) if time >= seconds)
        return Samples(self.times[first:], {name: kept[first:] for name, kept in self.series.items()})


class Sampler:
    """It looks at one server, and at what was answered since it last looked."""

    def __init__(self, process: psutil.Process, books: Books, metrics: str) -> None:
        """`metrics` is the address of the server's metrics."""
        self._process, self._books, self._metrics = process, books, metrics
        self._computed, self._answered = self._cost()

    def look(self) -> Mapping[str, float]:
        """A value of each series, of this moment or since the last look."""
        computed, answered = self._cost()
        spent, asked = computed - self._computed, answered - self._answered
        self._computed, self._answered = computed, answered
        waits = sorted(self._books.take_waits()) or [0.0]
        workers = self._workers()
        return {
            "memory of the server": _own_memory(self._process) / MIB,
            "memory of its workers": sum(map(_own_memory, workers)) / MIB,
            "descriptors": float(self._process.num_fds()),
            "threads": float(self._process.num_threads()),
            "processes": 1.0 + len(workers),
            "processor time per request": spent / max(asked, 1) * 1e6,
            "median wait": statistics.median(waits) * 1e3,
            "99th percentile": waits[int(len(waits) * 0.99)] * 1e3,
            TURN: self._longest_turn() * 1e3,
        }

    def _longest_turn(self) -> float:
        """Seconds of processor time of the loop's thread that work has held it up for at a time, since the start."""
        with urllib.request.urlopen(self._metrics, timeout=60) as answer:
            found = _TURN_LINE.search(answer.read().decode())
        assert found, "the server does not tell of its loop's turns"
        return float(found[1])

    def _workers(self) -> list[psutil.Process]:
        return self._process.children(recursive=True)

    def _cost(self) -> tuple[float, int]:
        """Seconds that the server itself has computed, and answers so far."""
        times = self._process.cpu_times()
        return times.user + times.system, sum(self._books.counts.values())


def _own_memory(process: psutil.Process) -> float:
    """Bytes that a process holds and no file backs; 0 if it is gone."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            rows = dict(line.split(":", 1) for line in status)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(float(rows.get(row, "0 kB").split()[0]) for row in ("RssAnon", "RssShmem")) * 1024
