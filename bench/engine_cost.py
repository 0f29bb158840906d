"""What a request to each engine costs above the library's own call, beside the identity engine and a Python handler.

One server has all models; in each round every model is loaded by sixteen connections, and its library called in a
process by itself right before. Medians over the rounds. Written into `docs/engines.md` by `make engines`.
"""

import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from bench import repository, servers
from bench.requests import Request, echo
from tests.harness.engine_files import PARAMETERS, EngineFile

from trivium.catalogue import CATALOGUE
from trivium.types.spec import Isolation

ROUNDS = 7
SECONDS, WARM = 2.0, 1.0
CONNECTIONS = 16
LIMITS = {Isolation.THREAD: ("echo", 3.0), Isolation.PROCESS: ("python_echo", 2.0)}
"""Where an engine runs -> the model that it is held beside, and how many times as dear its road may be."""


@dataclass
class EngineCost:
    """One engine's processor microseconds: of a request, of the bare call, and of the echo in the same rounds."""

    engine: str
    isolation: Isolation
    request: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    echo: list[float] = field(default_factory=list)

    @property
    def above(self) -> float:
        """Median of what a request costs above the bare call."""
        return statistics.median(a - b for a, b in zip(self.request, self.bare, strict=True))

    @property
    def ratio(self) -> float:
        """Median of that by what the echo costs."""
        rounds = zip(self.request, self.bare, self.echo, strict=True)
        return statistics.median((a - b) / c for a, b, c in rounds)

    def line(self) -> str:
        """Return the line of the table."""
        name, limit = LIMITS[self.isolation]
        return (
            f"| `{self.engine}` | {self.isolation.value} | {statistics.median(self.request):.0f} µs | "
            f"{statistics.median(self.bare):.0f} µs | {self.above:.0f} µs | "
            f"{self.ratio:.1f} times `{name}` ({statistics.median(self.echo):.0f} µs; {limit:.0f} expected) |"
        )


HEAD = ("| engine | runs in | a request | the bare call | above it | beside |", "|---|---|---|---|---|---|")


def measure(files: Sequence[EngineFile], rounds: int = ROUNDS) -> list[EngineCost]:
    """Measure all engines in these rounds."""
    models, handlers = repository.make()
    costs = [EngineCost(one.engine, CATALOGUE.engines[one.engine].isolation[0]) for one in files]
    paths = [models, handlers, *(one.path for one in files)]
    with servers.trivium(*paths, options=(*PARAMETERS, "--startup-timeout", "280")) as server:
        for _ in range(rounds):
            echoes = {name: _loaded(server, echo(name)) for name, _ in LIMITS.values()}
            for file, cost in zip(files, costs, strict=True):
                cost.bare.append(_bare(file))
                cost.request.append(_loaded(server, _request(server, file)))
                cost.echo.append(echoes[LIMITS[cost.isolation][0]])
    return costs


def _loaded(server: servers.Server, request: Request) -> float:
    server.load(request, CONNECTIONS, WARM)
    return server.load(request, CONNECTIONS, SECONDS).cpu_us


def _request(server: servers.Server, file: EngineFile) -> Request:
    import httpx

    name = file.tensor or httpx.get(f"{server.url}/v2/models/{file.name}").json()["inputs"][0]["name"]
    return Request(file.name, name, np.full((1, 64), 0.5, "<f4"))


def _bare(file: EngineFile) -> float:
    command = [sys.executable, "-m", "bench.bare_calls", file.engine, str(file.path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    return float(done.stdout.splitlines()[-1])
