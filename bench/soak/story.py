"""Runs the soak: a server with models of every kind, mixed traffic, and a look at the server every few seconds."""

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench import servers
from bench.repository import CACHE
from bench.soak import models
from bench.soak.sampling import BOUNDS, Sampler, Samples
from bench.soak.slopes import Verdict, judge
from bench.soak.traffic import Traffic

HOUR = 3600.0
WARM_UP = 1 / 6
"""The share of the time in which caches fill, allocators settle, and nothing is judged."""
LOOKS = 720
BOUNDS_OF_MEMORY = ("--deferred-bytes", str(2**24), "--unread-memory", str(2**24))
"""What is kept on purpose is full within the warm-up, so that what still grows is a leak."""


@dataclass(frozen=True)
class Story:
    """What a run found. `wrong` are answers that should have been others."""

    samples: Samples
    verdicts: Sequence[Verdict]
    counts: Counter[str]
    wrong: Sequence[str]

    @property
    def is_good(self) -> bool:
        return not self.wrong and all(verdict.is_flat for verdict in self.verdicts)


def run(seconds: float, looks: int = LOOKS) -> Story:
    """Serve and ask for that long, and look so many times. The first sixth warms up."""
    root = CACHE / "soak"
    shutil.rmtree(root, ignore_errors=True)
    store, *foreign = models.lay_out(root)
    samples = Samples()
    with servers.trivium(store, *foreign, options=BOUNDS_OF_MEMORY) as server:
        with Traffic(server.url.removeprefix("http://"), server.grpc, store) as traffic:
            sampler = Sampler(server.process, traffic.books, f"{server.url}/metrics")
            began = time.monotonic()
            for look in range(1, looks + 1):
                time.sleep(max(began + seconds * look / looks - time.monotonic(), 0))
                samples.add(time.monotonic() - began, sampler.look())
        books = traffic.books
    judged = samples.after(seconds * WARM_UP)
    return Story(samples, judge(judged.times, judged.series, BOUNDS), books.counts, books.wrong)
