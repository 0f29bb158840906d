"""The command `tritonserver` as a child process: started, read, stopped.

`tritonserver` is the way in; `told` runs one that ends by itself. What it prints lands in a file; every wait has a
deadline and, when it passes, shows that file. Knows nothing of what is served.
"""

import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.harness.server_process import COMMAND, SECONDS, LoggedProcess, environment, started

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


class TritonServer(LoggedProcess):
    """One that runs. Addresses are known once it has started its services."""

    def address(self, service: str) -> str:
        """Where `http`, `grpc` or `metrics` is, as clients take it."""
        found = self.await_line(re.compile(re.escape(STARTED[service]) + r'([\d.]+:\d+)"'))
        return found[1].replace("0.0.0.0", "127.0.0.1")

    def port(self, service: str) -> int:
        """That of its address."""
        return int(self.address(service).rpartition(":")[2])

    def await_text(self, text: str) -> None:
        """Until it has printed this."""
        self.await_line(re.compile(re.escape(text)))

    def descriptors(self) -> int:
        """How many its process has open."""
        count: int = self.process.num_fds()
        return count


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
    with started(log, *command, *FREE, *words) as process:
        server = TritonServer(process, log)
        yield server
        if not server.has_ended():
            server.signal(signal.SIGTERM)
        assert server.wait() == status, server.said()
        assert models_raise or "Traceback" not in server.said(), server.said()


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
