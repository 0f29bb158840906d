"""The real server as a child process: started, asked, watched and stopped.

`serve` is the way in. What a server prints lands in a file; every wait has a deadline and, when it passes,
shows that file. Knows nothing of what is served.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import psutil
from tests.harness.raw_http import Answer, ask, get, infer

SECONDS = 120.0
"""For whatever should take one: so many only where the machine has much else to do."""

COMMAND = (sys.executable, "-m", "trivium.cli.main")
GROWTH = 64 * 2**20
"""Bytes by which a process may grow in a scene: what an allocator keeps, but not a leak of what was sent."""

_LINE = re.compile(r"^HTTP on https?://[\d.]+:(\d+)", re.MULTILINE)
_TRACEBACK = re.compile("Traceback")
_OWN_TRACEBACK = re.compile("^Traceback", re.MULTILINE)
_GRPC_LINE = re.compile(r"^gRPC on [\d.]+:(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Footprint:
    """What a process holds: descriptors, threads, bytes of memory."""

    descriptors: int
    threads: int
    memory: int


class LoggedProcess:
    """A child process whose output goes to a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._child = process
        self.log = log
        self.process = psutil.Process(process.pid)

    def said(self) -> str:
        """All that it has printed so far."""
        return self.log.read_text()

    def await_line(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """The first match in what it prints."""
        found: list[re.Match[str]] = []

        def look() -> bool:
            has_ended = self._child.poll() is not None
            match = pattern.search(self.said())
            found.extend([match] if match else [])
            assert match or not has_ended, f"the server has ended:\n{self.said()}"
            return bool(found)

        until(look, lambda: f"no line like {pattern.pattern}:\n{self.said()}")
        return found[0]

    def signal(self, number: signal.Signals) -> None:
        """Send it; returns at once."""
        self._child.send_signal(number)

    def wait(self) -> int:
        """Its exit status."""
        try:
            return self._child.wait(SECONDS)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the server did not end:\n{self.said()}") from error

    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self._child.poll() is not None


_STARTED_LATER = 4 + 4 + 2
"""Threads that unpack bodies of HTTP, and of gRPC, and that read tensors of large JSON."""


class ServerProcess(LoggedProcess):
    """A running server. `port` and `url` are where it listens."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        super().__init__(process, log)
        self.port = int(self.await_line(_LINE)[1])
        self.address = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.address}"
        self._most_threads = 0

    @property
    def grpc_address(self) -> str:
        """Where it listens for gRPC."""
        return f"127.0.0.1:{self.await_line(_GRPC_LINE)[1]}"

    def ask(self, request: bytes) -> Answer:
        """One request, in bytes, on a connection of its own."""
        return ask(self.port, request)

    def is_ready(self) -> bool:
        """As its own health says."""
        return self.ask(get("/v2/health/ready")).status == 200

    def footprint(self) -> Footprint:
        """Of this moment."""
        with self.process.oneshot():
            memory = self.process.memory_info().rss
            return Footprint(self.process.num_fds(), self.process.num_threads(), memory)

    @property
    def most_threads(self) -> int:
        """How many threads it may have, in all scenes together: what it had when this was asked for first, and those
        that it starts when the first large bodies come.
        """
        self._most_threads = self._most_threads or self.process.num_threads() + _STARTED_LATER
        return self._most_threads

    def workers(self, *, recursive: bool = False) -> list[psutil.Process]:
        """The processes that it has started, but for the guard that every server has."""
        return [child for child in self.process.children(recursive=recursive) if not is_guard(child)]

    def terminate(self) -> None:
        """SIGTERM; returns at once."""
        self.signal(signal.SIGTERM)


def living(folder: Path) -> list[psutil.Process]:
    """The processes that have this folder for their temporary files in their environment, however they came about."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            is_ours = process.environ().get("TMPDIR") == str(folder)
            if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def is_guard(process: psutil.Process) -> bool:
    """Whether it is the process that cleans up behind a server."""
    try:
        return any(word.endswith("trivium_worker/guard.py") for word in process.cmdline())
    except psutil.Error:
        return False


def serve(
    log: Path, *words: str | Path, status: int = 0, models_raise: bool = False
) -> AbstractContextManager[ServerProcess]:
    """`trivium serve WORDS`, as `running` does it."""
    return running(log, "serve", *words, status=status, models_raise=models_raise)


@contextlib.contextmanager
def running(
    log: Path,
    command: str,
    *words: str | Path,
    status: int = 0,
    models_raise: bool = False,
    prefix: tuple[str | Path, ...] = (),
    variables: Mapping[str, str] | None = None,
) -> Iterator[ServerProcess]:
    """`trivium COMMAND WORDS` on a free port, its output in the file `log`. At the end it is stopped by SIGTERM,
    if it still runs, and must have left with that exit status and without a traceback: none at all, or, where
    `models_raise`, none of the server's own (those of models come behind the name of their worker).
    `prefix` is what the command begins with; `variables` come into its environment.
    """
    words = ("--http-port", "0", "--grpc-port", "0", *words)
    given = {**environment(), **(variables or {})}
    with started(log, *prefix, *COMMAND, command, *words, variables=given) as process:
        serving = ServerProcess(process, log)
        yield serving
        if not serving.has_ended():
            serving.terminate()
        assert serving.wait() == status, serving.said()
        own = _OWN_TRACEBACK if models_raise else _TRACEBACK
        assert not own.search(serving.said()), serving.said()


@contextlib.contextmanager
def serve_handlers(
    log: Path, *words: str | Path, variables: Mapping[str, str] | None = None
) -> Iterator[ServerProcess]:
    """`trivium serve WORDS`, whose log may hold the tracebacks of handlers; it must leave well, with no worker left."""
    given = {**environment(), **(variables or {})}
    words = ("--http-port", "0", "--grpc-port", "0", *words)
    with started(log, *COMMAND, "serve", *words, variables=given) as process:
        serving = ServerProcess(process, log)
        yield serving
        family = serving.process.children(recursive=True)
        serving.terminate()
        assert serving.wait() == 0, serving.said()
        assert not [process for process in family if process.is_running()], "a process was left behind"


@contextlib.contextmanager
def started(
    log: Path, *command: str | Path, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A child process with its output in the file `log`; at the end it is killed, if it still runs."""
    env = environment() if variables is None else variables
    with log.open("wb") as output:
        process = subprocess.Popen([*map(str, command)], stdout=output, stderr=subprocess.STDOUT, env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def environment() -> Mapping[str, str]:
    """This one's, with nothing in it that configures a server, and wide lines. Who is not root counts a server's
    descriptors only where it is debuggable.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TRIVIUM_")}
    return kept | {"COLUMNS": "200"} | ({"TRIVIUM_DEBUGGABLE": "true"} if os.geteuid() else {})


@contextlib.contextmanager
def withstanding(serving: ServerProcess) -> Iterator[None]:
    """A scene. Whatever happens in it, a neighbour asking the model `echo` is answered throughout; afterwards
    the server is as ready as before, and nothing is left in it of those who were there.
    """
    infer(serving.port, "echo", [[1, 2, 3, 4]])
    most_threads = serving.most_threads
    before = serving.footprint()
    was_ready = serving.is_ready()
    with neighbour(serving.port):
        yield
    assert serving.is_ready() == was_ready
    most = Footprint(before.descriptors, most_threads, before.memory + GROWTH)
    until(lambda: _is_back(serving.footprint(), most), lambda: f"{serving.footprint()}, may be {most}")


def _is_back(now: Footprint, most: Footprint) -> bool:
    return now.descriptors <= most.descriptors and now.threads <= most.threads and now.memory <= most.memory


@contextlib.contextmanager
def neighbour(port: int) -> Iterator[None]:
    """Somebody who asks the model `echo` all the time, and gets the right answers."""
    leaves = threading.Event()

    def live() -> int:
        count = 0
        while not leaves.wait(0.02) or not count:
            assert infer(port, "echo", [[count, 2, 3, 4]]) == [[count, 2, 3, 4]]
            count += 1
        return count

    with ThreadPoolExecutor(1) as thread:
        life = thread.submit(live)
        try:
            yield
        finally:
            leaves.set()
        assert life.result(SECONDS) > 0


def until(holds: Callable[[], bool], why: Callable[[], str], seconds: float = SECONDS) -> None:
    """Wait for something to become true; fail with `why` if it does not."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, why()
        time.sleep(0.02)
