"""Tells how long others wait for a server while somebody does his worst: by asking it, again and again.

A wait that the machine causes, which has much else to do, is told from one that the server causes by the server's own
processor time: it has been held up no longer than it has computed.
"""

import contextlib
import select
import socket
import threading
import time
from collections.abc import Iterable, Iterator

import psutil
from tests.harness.raw_http import HOST, connect, get, read_answer
from tests.harness.server_process import ServerProcess

LIVE = get("/v2/health/live")
_PAUSE = 0.01
_CHUNK = 2**18
_QUIET = 1.0


class StallWatch:
    """`longest`: seconds that a question has waited while the server computed."""

    def __init__(self, server: ServerProcess) -> None:
        self.longest = 0.0
        self.asked = 0
        self._server = server
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "StallWatch":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ends.set()
        self._thread.join()

    def _ask(self) -> None:
        with connect(self._server.port) as plug:
            while not self._ends.is_set():
                began, computed = time.monotonic(), self._computed()
                plug.sendall(LIVE)
                assert read_answer(plug).status == 200
                self.asked += 1
                waited = time.monotonic() - began
                self.longest = max(self.longest, min(waited, self._computed() - computed))
                time.sleep(_PAUSE)

    def _computed(self) -> float:
        times = self._server.process.cpu_times()
        return float(times.user + times.system)


@contextlib.contextmanager
def watched(server: ServerProcess) -> Iterator[StallWatch]:
    """Watch for as long as the block lasts, and a little before."""
    with StallWatch(server) as watch:
        while not watch.asked:
            time.sleep(_PAUSE)
        yield watch


def send_all(server: ServerProcess, port: int, pieces: Iterable[bytes], seconds: float) -> int:
    """Send them on one connection and read what comes, until the other end closes it, or all is sent and the server has
    nothing more to do, or the time is up; the bytes read.
    """
    until, read = time.monotonic() + seconds, 0
    with socket.create_connection((HOST, port), seconds) as plug:
        plug.setblocking(False)
        for piece in pieces:
            rest = memoryview(piece)
            while rest and time.monotonic() < until:
                readable, writable, _ = select.select([plug], [plug], [], 1.0)
                try:
                    if readable:
                        came = len(plug.recv(_CHUNK))
                        if not came:
                            return read
                        read += came
                    if writable:
                        rest = rest[plug.send(rest[:_CHUNK]) :]
                except BlockingIOError:
                    continue
                except OSError:
                    return read
        return read + _read_rest(server, plug, until)


def _read_rest(server: ServerProcess, plug: socket.socket, until: float) -> int:
    read, last, computed = 0, time.monotonic(), _computed(server)
    while (now := time.monotonic()) < until:
        readable, _, _ = select.select([plug], [], [], 0.2)
        try:
            came = len(plug.recv(_CHUNK)) if readable else 0
        except OSError:
            return read
        if readable and not came:
            return read
        read += came
        if came:
            last = now
        elif now - last > _QUIET:
            before, computed = computed, _computed(server)
            if computed - before < _QUIET / 4:
                return read
            last = now
    return read


def _computed(server: ServerProcess) -> float:
    """Processor seconds of the server and its workers."""
    total = 0.0
    for process in (server.process, *server.process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total
