"""What a request costs through Ray Serve: `trivium.ray:app` beside Ray Serve's own echo, and beside no Ray at all.

`python -m bench.ray_serve`, where the extra `ray` and wrk are. Each as Ray Serve comes, and at its best:
its HAProxy and its switches for throughput on. One replica each. Costs are processor time of all of Ray's processes.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from bench import repository, requests, servers

ROUNDS, SECONDS, CONNECTIONS = 3, 3.0, 16
BEST = {"RAY_SERVE_ENABLE_HA_PROXY": "1", "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1"}
MARK = "BENCH_OF_RAY"
WAIT = 120.0

PROGRAM = """
import sys, time
import ray
from ray import serve
from ray.serve.schema import LoggingConfig

kind, port, path = sys.argv[1:]
quiet = LoggingConfig(log_level="WARNING", enable_access_log=False)
ray.init(address="local", num_cpus=4, include_dashboard=False, logging_level="error", log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": int(port)}, logging_config=quiet)


@serve.deployment(max_ongoing_requests=10_000, logging_config=quiet)
class Echo:
    async def __call__(self, request):
        return await request.body()


if kind == "echo":
    serve.run(Echo.bind(), name="echo")
else:
    from trivium.ray import app

    serve.run(app(path, open=True), name="trivium")
print("ready", flush=True)
time.sleep(3600)
"""


class Cluster(servers.Server):
    """A cluster of Ray; its processes are known by the mark that they inherit, since some have no parent."""

    def cpu_seconds(self) -> float:
        """Of all that live."""
        name, found = self.process.environ()[MARK], 0.0
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(MARK) == name:
                    found += sum(process.cpu_times()[:2])
        return found


class RootRequest(requests.Request):
    """The same bytes to the root."""

    @property
    def path(self) -> str:
        return "/"


@contextmanager
def on_ray(kind: str, path: Path, variables: Mapping[str, str]) -> Iterator[Cluster]:
    """The application of this kind on a cluster of its own."""
    port = servers.free_port()
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder:
        own = {MARK: folder, "RAY_TMPDIR": folder, "RAY_AUTH_MODE": "disabled"}
        command = [sys.executable, "-c", PROGRAM, kind, str(port), str(path)]
        log = repository.CACHE / "ray.log"
        with servers.started(command, log, {**os.environ, **own, **variables}) as process:
            servers.await_line(log, process, "ready", WAIT)
            yield Cluster(process, f"http://127.0.0.1:{port}")


def row(name: str, server: servers.Server, request: requests.Request) -> str:
    """A row of the table: of the rounds the one that cost least."""
    until = time.monotonic() + WAIT
    while True:  # a proxy may know of the replica a moment later than Ray does
        try:
            server.answer(request)
            break
        except (OSError, AssertionError):
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
    best = min(
        (server.load(request, CONNECTIONS, SECONDS) for _ in range(ROUNDS)), key=lambda each: each.cpu_us
    )
    return f"| {name} | {best.cpu_us:.0f} | {best.latency_us / 1e3:.1f} | {best.requests / SECONDS:.0f} |"


def main() -> None:
    """Measure, and print a table."""
    path = repository.CACHE / "ray"
    (path / "echo/1").mkdir(parents=True, exist_ok=True)
    (path / "echo/config.pbtxt").write_text(repository.ECHO)
    request = requests.echo("echo")
    to_root = RootRequest(request.model, request.input, request.data)
    print(
        "| | processor µs per request | median latency, ms | requests per second |\n|---|---|---|---|",
        flush=True,
    )
    with servers.trivium(path) as server:
        print(row("`trivium serve`, without Ray", server, request), flush=True)
    for how, variables in (("as it comes", {}), ("at its best", BEST)):
        for kind, what, asked in (
            ("echo", "Ray Serve's own echo", to_root),
            ("trivium", "`trivium.ray:app`", request),
        ):
            with on_ray(kind, path, variables) as cluster:
                print(row(f"{what}, Ray Serve {how}", cluster, asked), flush=True)


if __name__ == "__main__":
    main()
