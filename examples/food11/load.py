"""Senders for the story: closed loops of a number of senders, and arrivals at given times, over real HTTP."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp
import numpy as np


@dataclass(frozen=True)
class Question:
    """A request that can be sent again and again."""

    url: str
    body: bytes
    headers: dict[str, str]


@dataclass
class Heard:
    """What came back. Latencies are milliseconds, `sent_at` seconds from the beginning."""

    name: str
    senders: str
    seconds: float = 0.0
    sent_at: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    failures: int = 0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.latencies) / self.seconds

    def percentile(self, percent: float) -> float:
        """Of the latencies."""
        return float(np.percentile(self.latencies, percent)) if self.latencies else float("nan")

    @property
    def mean(self) -> float:
        """Of the latencies."""
        return statistics.fmean(self.latencies) if self.latencies else float("nan")


def closed(name: str, question: Question, senders: int, seconds: float) -> Heard:
    """Each sender asks again as soon as it was answered."""
    return asyncio.run(_closed(Heard(name, f"{senders}"), question, senders, seconds))


def at_times(name: str, question: Question, arrivals: Sequence[float]) -> Heard:
    """A request at each of these times, whether those before are answered or not."""
    return asyncio.run(_at_times(Heard(name, "Poisson bursts"), question, arrivals))


def bursts(calm: float, busy: float, rounds: int, seed: int = 0) -> list[float]:
    """Arrival times of a Poisson process whose rate is `calm` a second for two seconds, then `busy` for one."""
    random = np.random.default_rng(seed)
    times: list[float] = []
    for start in range(0, 3 * rounds, 3):
        for rate, begin, end in ((calm, start, start + 2), (busy, start + 2, start + 3)):
            when = begin + random.exponential(1 / rate)
            while when < end:
                times.append(float(when))
                when += random.exponential(1 / rate)
    return times


async def _closed(heard: Heard, question: Question, senders: int, seconds: float) -> Heard:
    async with _session() as session:
        await _ask(session, question, Heard("warm-up", ""), 0.0)
        began = time.perf_counter()

        async def sender() -> None:
            while time.perf_counter() - began < seconds:
                await _ask(session, question, heard, began)

        await asyncio.gather(*(sender() for _ in range(senders)))
        heard.seconds = time.perf_counter() - began
    return heard


async def _at_times(heard: Heard, question: Question, arrivals: Sequence[float]) -> Heard:
    async with _session() as session:
        await _ask(session, question, Heard("warm-up", ""), 0.0)
        began = time.perf_counter()

        async def one(when: float) -> None:
            await asyncio.sleep(max(0.0, began + when - time.perf_counter()))
            await _ask(session, question, heard, began)

        await asyncio.gather(*map(one, arrivals))
        heard.seconds = time.perf_counter() - began
    return heard


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(60))


async def _ask(session: aiohttp.ClientSession, question: Question, heard: Heard, began: float) -> None:
    sent = time.perf_counter()
    async with session.post(question.url, data=question.body, headers=question.headers) as answer:
        await answer.read()
        if answer.status == 200:
            heard.sent_at.append(sent - began)
            heard.latencies.append((time.perf_counter() - sent) * 1e3)
        else:
            heard.failures += 1
