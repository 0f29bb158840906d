"""What 150 % of a model's capacity does to it, with batching and without: `make overload`.

The model sleeps 8 ms and 0.5 ms per row, takes batches of at most 16, and lets 64 requests wait. Requests come
evenly for 20 seconds, over HTTP; what is drawn is what the server says of itself (`/metrics`, statistics).
"""

import asyncio
import json
import re
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import matplotlib
import numpy as np
from bench import repository, servers
from bench.report import PLACE
from bench.requests import Request, echo

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "overload"

from matplotlib import pyplot  # noqa: E402 - after the backend is chosen

SECONDS = 20.0
RATE = 1.5 / 0.0085
MODELS = ("overloaded", "overloaded_batched")
PAUSE = 0.05
QUEUE = 64

HEAD = """# A model that is asked for more than it can do

Made by `make overload` (`bench/overload.py`): a model of 8 ms and 0.5 ms per row, batches of at most 16,
`max_queue_size` 64, asked for 20 seconds at 150 % of what it can do unbatched (176 requests a second), evenly, over
HTTP.

![how many wait](overload.svg)
"""


@dataclass
class Overload:
    """Of one model: what the server said over time, and what the clients heard. Seconds."""

    model: str
    pending: list[tuple[float, float]] = field(default_factory=list)
    retry_after: list[float] = field(default_factory=list)
    answers: int = 0
    drained: float = float("nan")
    mean_wait: float = float("nan")
    mean_batch: float = float("nan")

    @property
    def growth(self) -> tuple[float, float]:
        """Requests a second by which the queue grew until it was full, and how straight that line is (r squared)."""
        full = next((at for at, (_, count) in enumerate(self.pending) if count >= QUEUE), len(self.pending))
        times, counts = np.array(self.pending[: max(full, 3)]).T
        slope, _ = np.polyfit(times, counts, 1)
        return float(slope), float(np.corrcoef(times, counts)[0, 1] ** 2)


def measure(seconds: float = SECONDS) -> list[Overload]:
    """Both models, one after the other."""
    models, handlers = repository.make()
    with servers.trivium(models, handlers) as server:
        return [asyncio.run(_overload(server, echo(model), seconds)) for model in MODELS]


async def _overload(server: servers.Server, request: Request, seconds: float) -> Overload:
    found = Overload(request.model)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(server.url, connector=connector) as session:
        began = time.perf_counter()
        watching = asyncio.create_task(_watch(session, found, began))
        body, headers = request.body(), request.headers()

        async def ask() -> None:
            async with session.post(request.path, data=body, headers=headers) as answer:
                await answer.read()
                if answer.status == 200:
                    found.answers += 1
                else:
                    found.retry_after.append(float(answer.headers["Retry-After"]))

        asking = []
        for number in range(round(seconds * RATE)):
            await asyncio.sleep(began + number / RATE - time.perf_counter())
            asking.append(asyncio.create_task(ask()))
        stopped = time.perf_counter()
        await asyncio.gather(*asking)
        found.drained = time.perf_counter() - stopped
        await asyncio.sleep(2 * PAUSE)
        watching.cancel()
        await _read_statistics(session, found)
    return found


async def _watch(session: aiohttp.ClientSession, found: Overload, began: float) -> None:
    name = re.compile(rf'^nv_inference_pending_request_count{{.*model="{found.model}".*}} (\S+)$', re.M)
    while True:
        async with session.get("/metrics") as answer:
            said = name.search(await answer.text())
        assert said is not None, "the metrics name no pending requests"
        found.pending.append((time.perf_counter() - began, float(said[1])))
        await asyncio.sleep(PAUSE)


async def _read_statistics(session: aiohttp.ClientSession, found: Overload) -> None:
    async with session.get(f"/v2/models/{found.model}/stats") as answer:
        (stats,) = json.loads(await answer.text())["model_stats"]
    queue = stats["inference_stats"]["queue"]
    found.mean_wait = queue["ns"] / queue["count"] / 1e9
    spent = count = 0
    for row in stats["batch_stats"]:
        count += row["compute_infer"]["count"]
        spent += sum(row[part]["ns"] for part in ("compute_input", "compute_infer", "compute_output"))
    found.mean_batch = spent / count / 1e9


def write(plain: Overload, batched: Overload, folder: Path = PLACE) -> str:
    """The page and its plot; returns the page."""
    _plot((plain, batched), folder / "overload.svg")
    slope, straight = plain.growth
    asked = statistics.median(plain.retry_after)
    factor = max(asked / plain.drained, plain.drained / asked)
    waited = batched.mean_wait / batched.mean_batch
    lines = [
        "| | unbatched | batched |",
        "|---|---|---|",
        f"| answered, refused | {plain.answers}, {len(plain.retry_after)} "
        f"| {batched.answers}, {len(batched.retry_after)} |",
        f"| the queue grows by, a second | {slope:.0f} (r² {straight:.3f}) | |",
        f"| `Retry-After` of refusals, median | {asked:.0f} s | |",
        f"| measured time to drain | {plain.drained:.2f} s: a factor of {factor:.2f} (limit 2) | |",
        f"| mean wait in the queue | {plain.mean_wait * 1e3:.0f} ms | {batched.mean_wait * 1e3:.2f} ms |",
        f"| mean time of a batch | {plain.mean_batch * 1e3:.2f} ms | {batched.mean_batch * 1e3:.2f} ms |",
        f"| wait over time of a batch | | {waited:.2f} (limit 0.6) |",
    ]
    page = HEAD + "\n" + "\n".join(lines) + "\n"
    (folder / "overload.md").write_text(page)
    return page


def _plot(found: tuple[Overload, Overload], path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(9, 4))
    for one, label in zip(found, ("unbatched", "batched"), strict=True):
        times, counts = zip(*one.pending, strict=True)
        axes.plot(times, counts, label=label)
    axes.axhline(QUEUE, color="grey", linestyle=":", label="max_queue_size")
    axes.set_xlabel("time, s")
    axes.set_ylabel("requests that wait")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    print(write(*measure()))
