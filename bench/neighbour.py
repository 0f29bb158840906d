"""How long a tiny request waits while another model's handler computes in pure Python: one connection, medians."""

import statistics
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from bench import requests, servers

LIMIT = 1.3
REQUESTS = 1500


@dataclass(frozen=True)
class Neighbour:
    """Median latencies in microseconds, alone and beside the busy handler, round by round."""

    alone_us: list[float]
    beside_us: list[float]

    @property
    def ratio(self) -> float:
        """Median of the rounds' ratios."""
        pairs = zip(self.beside_us, self.alone_us, strict=True)
        return statistics.median(beside / alone for beside, alone in pairs)


def measure(models: Path, handlers: Path, rounds: int) -> Neighbour:
    """Each round alone, then beside, on one server."""
    tiny, busy = requests.echo("echo"), requests.echo("python_busy")
    found = Neighbour([], [])
    with servers.trivium(models, handlers) as server:
        _median(server, tiny)
        for _ in range(rounds):
            found.alone_us.append(_median(server, tiny))
            stop = threading.Event()
            load = threading.Thread(target=_keep_busy, args=(server, busy, stop))
            load.start()
            time.sleep(0.2)
            found.beside_us.append(_median(server, tiny))
            stop.set()
            load.join()
    return found


def _median(server: servers.Server, request: requests.Request) -> float:
    body, headers = request.body(), request.headers()
    times = []
    with closing(_connect(server)) as connection:
        for _ in range(REQUESTS):
            began = time.perf_counter()
            connection.request("POST", request.path, body, headers)
            answer = connection.getresponse()
            answer.read()
            times.append(time.perf_counter() - began)
            assert answer.status == 200
    return statistics.median(times) * 1e6


def _keep_busy(server: servers.Server, request: requests.Request, stop: threading.Event) -> None:
    body, headers = request.body(), request.headers()
    with closing(_connect(server)) as connection:
        while not stop.is_set():
            connection.request("POST", request.path, body, headers)
            connection.getresponse().read()


def _connect(server: servers.Server) -> HTTPConnection:
    return HTTPConnection(server.url.removeprefix("http://"))
