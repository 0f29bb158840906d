"""The plugin of pytest: the fixture `trivium_server` serves paths for the length of a test, in a process of its own."""

import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike, fspath
from pathlib import Path

import pytest

from trivium.machine.python_commands import own_module

STARTING = 120.0
"""Seconds until the models have loaded."""

_LISTENS = re.compile(r"HTTP on (http://\S+)")
_READY = re.compile(r"^gRPC on (\S+)$", re.MULTILINE)


class TestServer:
    """A server of a test. `url` is where its HTTP listens, as http://127.0.0.1:PORT; `grpc` its gRPC, as HOST:PORT."""

    __test__ = False

    def __init__(self, url: str, grpc: str, log: Path) -> None:
        self.url = url
        self.grpc = grpc
        self._log = log

    @property
    def log(self) -> str:
        """Return what the server has printed so far."""
        return self._log.read_text(errors="replace")


ServePaths = Callable[..., TestServer]


@pytest.fixture
def trivium_server() -> Iterator[ServePaths]:
    """Return a function: `trivium_server("models/x", "--batch-size", "4")` serves these paths, with these options of
    `trivium serve`, on free ports until the test ends, and returns a `TestServer` once they are ready. It raises
    RuntimeError with what the server printed where it ends before.
    """
    with ExitStack() as servers:
        yield lambda *words: servers.enter_context(serving(*words))


@contextmanager
def serving(*words: str | PathLike[str], seconds: float = STARTING) -> Iterator[TestServer]:
    """Serve paths in a process, which is stopped behind the block."""
    with tempfile.TemporaryDirectory(prefix="trivium-server-") as folder:
        log = Path(folder) / "log"
        command = own_module("trivium.cli.main", "serve", "--http-port", "0", "--grpc-port", "0")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *(fspath(word) for word in words)], stdout=output, stderr=subprocess.STDOUT
            )
        try:
            yield _ready(process, log, time.monotonic() + seconds)
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _ready(process: "subprocess.Popen[bytes]", log: Path, ends: float) -> TestServer:
    while True:
        said = log.read_text(errors="replace")
        url, grpc = _LISTENS.search(said), _READY.search(said)
        if url and grpc:
            return TestServer(url[1], grpc[1], log)
        if process.poll() is not None or time.monotonic() > ends:
            raise RuntimeError(f"the server did not come up:\n{said}")
        time.sleep(0.05)
