"""The command `tritonserver` as a child process: started, read, stopped.

`tritonserver` is the way in; `told` runs one that ends by itself. What it prints lands in a file; every wait has a
deadline and, when it passes, shows that file. Knows nothing of what is served.
"""

import contextlib
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
from tests.harness.server_process import COMMAND, SECONDS, environment, until

TRITONSERVER = (*COMMAND, "tritonserver")
NEAR = tuple(f"--{service}-address=127.0.0.1" for service in ("http", "grpc"))
FREE = (*NEAR, "--http-port=0", "--grpc-port=0", "--metrics-port=0")
"""On free ports of this machine alone."""

LINE = re.compile(r'^[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ [\w.]+:\d+\] (?:".*"|)$')
STARTED = {
    "grpc": "Started GRPCInferenceService at ",
    "http": "Started HTTPService at ",
    "metrics": "Started Metrics Service at ",
}


class TritonServer:
    """One that runs. Addresses are known once it has started its services."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._child = process
        self._log = log

    def said(self) -> str:
        """All that it has printed so far."""
        return self._log.read_text()

    def address(self, service: str) -> str:
        """Where `http`, `grpc` or `metrics` is, as clients take it."""
        start = STARTED[service]
        self.await_text(start)
        found = re.search(re.escape(start) + r'([\d.]+:\d+)"', self.said())
        assert found, self.said()
        return found[1].replace("0.0.0.0", "127.0.0.1")

    def port(self, service: str) -> int:
        """That of its address."""
        return int(self.address(service).rpartition(":")[2])

    def await_text(self, text: str) -> None:
        """Until it has printed this."""

        def look() -> bool:
            is_there = text in self.said()
            assert is_there or self._child.poll() is None, f"the server has ended:\n{self.said()}"
            return is_there

        until(look, lambda: f"not said: {text}\n{self.said()}")

    def descriptors(self) -> int:
        """How many its process has open."""
        count: int = psutil.Process(self._child.pid).num_fds()
        return count

    def signal(self, number: signal.Signals) -> None:
        """Send it; returns at once."""
        self._child.send_signal(number)

    def wait(self) -> int:
        """Its exit status."""
        try:
            return self._child.wait(SECONDS)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the server did not end:\n{self.said()}") from error


@contextlib.contextmanager
def tritonserver(
    log: Path,
    *words: str | Path,
    status: int = 0,
    command: Sequence[str] = TRITONSERVER,
    models_raise: bool = False,
) -> Iterator[TritonServer]:
    """It, with these flags on free ports unless they say others. At the end it is stopped by SIGTERM, if it still
    runs, and must have left with that exit status and without a traceback, but for those of models that may raise.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *FREE, *map(str, words)], stdout=output, stderr=subprocess.STDOUT, env=environment()
        )
    server = TritonServer(process, log)
    try:
        yield server
        if process.poll() is None:
            server.signal(signal.SIGTERM)
        assert server.wait() == status, server.said()
        assert models_raise or "Traceback" not in server.said(), server.said()
    finally:
        process.kill()
        process.wait()


def told(*words: str | Path) -> tuple[int, str]:
    """Exit status and both outputs of one that ends by itself."""
    done = subprocess.run(
        [*TRITONSERVER, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        env=environment(),
        check=False,
    )
    assert "Traceback" not in done.stdout, done.stdout
    return done.returncode, done.stdout


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the table whose first heading this is; lines that go on are joined to the row above."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading} "))
    border = lines[start - 1]
    assert re.fullmatch(r"(\+-+)+\+", border), border
    assert lines[start + 1] == border
    found: list[list[str]] = []
    for line in lines[start + 2 :]:
        assert len(line) == len(border), line
        if line == border:
            break
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells[0]:
            found.append(cells)
        else:
            found[-1][-1] += "\n" + cells[-1]
    return found


def free_port() -> int:
    """One that nobody has at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as plug:
        port: int = plug.getsockname()[1]
        return port
