"""Servers as child processes, and what they cost: user and system time of their whole process tree."""

import math
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from bench.repository import CACHE
from bench.requests import AnyRequest, script

ROOT = Path(__file__).parents[1]
WRK_THREADS = 2


@dataclass(frozen=True)
class Measured:
    """One round of load on one server."""

    requests: int
    cpu_us: float
    latency_us: float


@dataclass(frozen=True)
class Server:
    """A running server; `url` has no path, `grpc` is host and port, where it has that, too."""

    process: psutil.Process
    url: str
    grpc: str = ""

    def cpu_seconds(self) -> float:
        """Of the process and all its living descendants."""
        family = [self.process, *self.process.children(recursive=True)]
        return sum(sum(member.cpu_times()[:2]) for member in family)

    def memory(self) -> int:
        """Bytes of the process and all its living descendants; of pages that several have, each counts its share."""
        family = [self.process, *self.process.children(recursive=True)]
        return sum(int(member.memory_full_info().pss) for member in family)

    def load(self, request: AnyRequest, connections: int, seconds: float) -> Measured:
        """CPU-microseconds per answer under a closed loop of wrk; refuses to count a round with errors."""
        command = [
            "wrk",
            f"-t{min(WRK_THREADS, connections)}",
            f"-c{connections}",
            f"-d{round(seconds)}s",
            "--latency",
        ]
        before = self.cpu_seconds()
        command += ["-s", str(script(request)), self.url + request.path]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        spent = self.cpu_seconds() - before
        if "Non-2xx" in said or "Socket errors" in said:
            raise RuntimeError(f"errors under load on {request.path}:\n{said}")
        count = int(_found(r"(\d+) requests in", said))
        return Measured(count, spent / count * 1e6, _microseconds(_found(r"50%\s+(\S+)", said)))

    def answer(self, request: AnyRequest) -> bytes:
        """One whole HTTP answer, head and all, as it was on the wire."""
        import http.client

        host, port = self.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port))
        connection.request("POST", request.path, request.body(), request.headers())
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, body
        head = "".join(f"{name}: {value}\r\n" for name, value in response.getheaders())
        connection.close()
        return f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + body


@contextmanager
def trivium(
    *repositories: Path, profile: str = "native", tree: Path = ROOT, options: Sequence[str] = ()
) -> Iterator[Server]:
    """Start `trivium serve` on free ports, of the sources of a tree of this repository, with more options."""
    log = CACHE / f"trivium-{profile}-{tree.name}.log"
    command = [sys.executable, "-m", "trivium.cli.main", "serve", *map(str, repositories)]
    command += ["--http-port", "0", "--grpc-port", "0", "--profile", profile, *options]
    with started(command, log, {**os.environ, "PYTHONPATH": str(tree / "src")}) as process:
        url = await_line(log, process, r"HTTP on (\S+)")
        yield Server(process, url, await_line(log, process, r"gRPC on (\S+)"))


@contextmanager
def bare(response: bytes) -> Iterator[Server]:
    """F: the bare server, answering these bytes."""
    file, log = CACHE / "bare.response", CACHE / "bare.log"
    file.write_bytes(response)
    script = Path(__file__).with_name("bare_server.py")
    with started([sys.executable, "-u", str(script), "--response-file", str(file)], log) as process:
        port = await_line(log, process, r"listening on port (\d+)")
        yield Server(process, f"http://127.0.0.1:{port}")


@contextmanager
def started(
    command: list[str], log: Path, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Iterator[psutil.Process]:
    """A child process whose output lands in `log`; it runs in `folder`, if there is one."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=folder)
    try:
        yield psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait(30)


def await_line(log: Path, process: psutil.Process, pattern: str, seconds: float = 60) -> str:
    """What the first group (or all) of a pattern found in what the process printed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.is_running():
        found = re.search(pattern, log.read_text())
        if found:
            return found[found.re.groups]
        time.sleep(0.1)
    raise RuntimeError(f"the server did not come up:\n{log.read_text()}")


def ready(server: Server) -> bool:
    """Does it say that every model is up?"""
    with urllib.request.urlopen(server.url + "/v2/health/ready", timeout=5) as response:
        return response.status == 200


def free_port() -> int:
    """One that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"wrk said nothing of {pattern!r}:\n{text}")
    return found[1]


def _microseconds(text: str) -> float:
    found = re.fullmatch(r"([\d.]+)(us|ms|s)", text)
    if found is None:  # wrk says "-nan" of a round in which it lost its own clock
        return math.nan
    return float(found[1]) * {"us": 1, "ms": 1e3, "s": 1e6}[found[2]]
