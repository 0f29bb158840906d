"""What tokens cost the server's own process, whoever computes them: streamed one by one, and in answers that are whole.

The model is tiny, since its work is not counted: only the processor time of the process that clients talk to is.
"""

import http.client
import json
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from bench.servers import Server, trivium

NAME = "tiny"
"""Of the model, and so of its folder."""

ROUNDS = 5
STREAMS, STREAMED = 32, 100
"""Streams at once, and tokens of each."""

AT_ONCE, WHOLE = 32, 32
"""Whole answers at once, and of each size."""

FEW, MANY = 5, 500
REST_SECONDS = 2.0


class TokenCosts(NamedTuple):
    """Microseconds of the server's process in one round: by streamed token, by whole answer; and the milliseconds to
    the first token of `STREAMS` that come together.
    """

    streamed: float
    few: float
    many: float
    first_ms: float


def measure(folder: Path) -> list[TokenCosts]:
    """All rounds on one server, which serves the model `NAME` in the folder."""
    os.environ["OMP_NUM_THREADS"] = "1"  # of the worker, whose work would slow the server's down
    with trivium(folder / NAME) as server:
        _ask(server, FEW, False)
        return [_round(server) for _ in range(ROUNDS)]


def told(costs: list[TokenCosts]) -> list[str]:
    """Return the lines of the page."""
    streamed, few, many, first = (statistics.median(column) for column in zip(*costs, strict=True))
    ratio = statistics.median(one.many / one.few for one in costs)
    return [
        "## The server's own process",
        "",
        "The same server with a tiny model: the processor time of the process that clients talk to, not of the worker",
        f"that computes, and without what it spends at rest in the same time. Medians of {len(costs)} rounds.",
        "",
        "| what | figure | expected at most |",
        "|---|---|---|",
        f"| a streamed token ({STREAMS} streams at once, SSE, {STREAMED} tokens each) | {streamed:.0f} µs | 30 µs |",
        f"| a whole answer of {FEW} tokens | {few:.0f} µs | |",
        f"| a whole answer of {MANY} tokens | {many:.0f} µs: {ratio:.1f} times one of {FEW} | 2 times |",
        f"| to the first token, {STREAMS} requests at once | {first:.0f} ms | |",
    ]


def _round(server: Server) -> TokenCosts:
    firsts: list[float] = []
    streamed = _cost(server, STREAMS, STREAMS, lambda: firsts.append(_ask(server, STREAMED, True)))
    few, many = (
        _cost(server, AT_ONCE, WHOLE, lambda size=size: _ask(server, size, False)) for size in (FEW, MANY)
    )
    return TokenCosts(streamed / STREAMED, few, many, statistics.median(firsts) * 1e3)


def _cost(server: Server, at_once: int, requests: int, ask: Callable[[], object]) -> float:
    """Microseconds of the server's process by request, beyond what it spends in the same time at rest."""
    start, before = time.perf_counter(), _spent(server)
    with ThreadPoolExecutor(at_once) as threads:
        for done in [threads.submit(ask) for _ in range(requests)]:
            done.result()
    seconds, spent = time.perf_counter() - start, _spent(server) - before
    return (spent - _at_rest(server) * seconds) / requests / 1e3


def _at_rest(server: Server) -> float:
    """Nanoseconds that the server's process spends in a second without requests."""
    before = _spent(server)
    time.sleep(REST_SECONDS)
    return (_spent(server) - before) / REST_SECONDS


def _spent(server: Server) -> int:
    """Nanoseconds of all threads of the server's process; psutil's figure has steps of 10 ms."""
    threads = Path(f"/proc/{server.process.pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads)


def _ask(server: Server, tokens: int, streams: bool) -> float:
    """Ask for an answer of so many tokens and read it; returns the seconds to its first line."""
    body = {"model": NAME, "prompt": "w17 w4 w99", "max_tokens": tokens, "stream": streams}
    began = time.perf_counter()
    with closing(http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=120)) as connection:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        first = answer.readline()
        seconds = time.perf_counter() - began
        rest = answer.read()
    if answer.status != 200 or (streams and not rest.endswith(b"data: [DONE]\n\n")):
        raise RuntimeError(f"{answer.status}: {first[:500]!r}, ..., {rest[-500:]!r}")
    return seconds
