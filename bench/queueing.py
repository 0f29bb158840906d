"""Does the virtual clock tell the truth? The same arrivals, live and simulated, through the same policy.

The engine sleeps 8 ms and 0.5 ms per row, so its capacity unbatched is one request per 8.5 ms.
"""

import asyncio
import statistics
import time
from dataclasses import dataclass

import numpy as np
import uvloop
from bench import repository

import trivium
from trivium.load.simulate import simulate

RUNS = 5
SECONDS = 8.0
CAPACITY = 1 / 0.0085
LOADS = [("sleeper", 0.50), ("sleeper", 0.75), ("sleeper_batched", 1.50)]


@dataclass(frozen=True)
class Waits:
    """Mean queue waits in seconds, run by run."""

    model: str
    load: float
    live: list[float]
    virtual: list[float]

    @property
    def error(self) -> float:
        """Median over the runs of |live / virtual - 1|."""
        return statistics.median(abs(a / b - 1) for a, b in zip(self.live, self.virtual, strict=True))


def measure(runs: int = RUNS, seconds: float = SECONDS) -> list[Waits]:
    """Every load, each run with a Poisson trace of its own seed."""
    path, _ = repository.make()
    rows = []
    for model, load in LOADS:
        waits = Waits(model, load, [], [])
        for seed in range(runs):
            arrivals = poisson(load * CAPACITY, seconds, seed)
            live, virtual = uvloop.run(both(str(path / model), model, arrivals))
            waits.live.append(live)
            waits.virtual.append(virtual)
        rows.append(waits)
    return rows


def poisson(rate: float, seconds: float, seed: int) -> list[float]:
    """Arrival times of a Poisson process, from 0.1 s on."""
    gaps = np.random.default_rng(seed).exponential(1 / rate, int(rate * seconds))
    return [0.1 + float(when) for when in np.cumsum(gaps)]


async def both(path: str, model: str, arrivals: list[float]) -> tuple[float, float]:
    """Mean waits live and on the virtual clock, of one spec and the same arrivals."""
    async with trivium.serving(path) as server:
        begin = time.monotonic()
        turns = Turns()
        tasks = [asyncio.create_task(_one(server, model, begin + when, turns)) for when in arrivals]
        arrived = sorted([when - begin for when in await asyncio.gather(*tasks)])
        report = server.statistics(model)
        spec = server.specs()[0]
    virtual = await asyncio.to_thread(simulate, spec, arrived, lambda rows: 0.008 + 0.0005 * rows)
    return _mean_wait(report.queue), _mean_wait(virtual.queue)


class Turns:
    """When a request arrived, by the turn of the loop: those that a timer wakes together arrive together."""

    def __init__(self) -> None:
        self._now: float | None = None

    def now(self) -> float:
        """The time of the first request of this turn."""
        if self._now is None:
            self._now = time.monotonic()
            asyncio.get_running_loop().call_soon(self._pass)
        return self._now

    def _pass(self) -> None:
        self._now = None


async def _one(server: trivium.Server, model: str, when: float, turns: Turns) -> float:
    """When it really arrived: a loop's timers have a resolution of a millisecond."""
    await asyncio.sleep(when - time.monotonic())
    arrived = turns.now()
    await server.infer(model, {"x": np.zeros((1, 16), np.float32)})
    return arrived


def _mean_wait(queue: object) -> float:
    return queue.ns / queue.count / 1e9  # type: ignore[attr-defined]
