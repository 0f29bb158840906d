"""`trivium serve PATH --on ray`, as people run it: on a local cluster, and on one that runs already."""

import contextlib
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from tests.fixtures import models
from tests.harness.ports import free_port
from tests.harness.raw_http import ask, get, post
from tests.harness.server_process import COMMAND, SECONDS, LoggedProcess, environment, started, until

pytest.importorskip("ray", reason="Ray is not in this environment; `make ray` makes one that has it.")

HANDLER = """
import time


class Slow:
    def predict(self, seconds: float, started: str) -> float:
        with open(started, "a") as file:
            file.write(__file__ + ";")
        time.sleep(seconds)
        return seconds
"""


@pytest.fixture
def handler(tmp_path: Path) -> Path:
    """A handler that takes its time, and leaves a file when it begins."""
    file = tmp_path / "slow.py"
    file.write_text(HANDLER)
    return file


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of a short path, since Ray has sockets below it; whoever has it in its environment is of the family."""
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
        for each in living(Path(folder)):
            with contextlib.suppress(psutil.Error):
                each.kill()
        # Ray finds clusters by their processes: the next test's must not attach to what is going down.
        until(lambda: not living(Path(folder)), lambda: words_of(Path(folder)))


def variables(home: Path, **more: str) -> Mapping[str, str]:
    """Those of a process that knows no cluster and no token but what lies in its home."""
    kept = {name: value for name, value in environment().items() if not name.startswith("RAY_")}
    return {**kept, "HOME": str(home), "RAY_TMPDIR": str(home), **more}


def living(home: Path) -> list[psutil.Process]:
    """The processes of this home."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            is_ours = process.environ().get("HOME") == str(home)
            if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def words_of(home: Path) -> str:
    """The command lines of the processes of this home."""
    lines = []
    for process in living(home):
        with contextlib.suppress(psutil.Error):
            lines.append(" ".join(process.cmdline()))
    return "\n".join(lines)


@contextlib.contextmanager
def on_ray(home: Path, *words: str | Path, **more: str) -> Iterator[tuple[LoggedProcess, int]]:
    """`trivium serve WORDS --on ray` on a free port, once it serves. It is stopped, and has to leave well."""
    port = free_port()
    log = home / "log"
    command = (*COMMAND, "serve", "--on", "ray", "--http-port", str(port), *words)
    with started(log, *command, variables=variables(home, **more)) as child:
        process = LoggedProcess(child, log)
        process.await_line(re.compile(rf"^HTTP on http://127.0.0.1:{port}", re.MULTILINE))
        yield process, port
        if not process.has_ended():
            process.signal(signal.SIGTERM)
        assert process.wait() == 0, process.said()
        assert "Stopped." in process.said()


def refused(home: Path, *words: str | Path, **more: str) -> str:
    """What it says where it does not start."""
    done = subprocess.run(
        [*COMMAND, "serve", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=variables(home, **more),
    )
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_it_serves_on_a_cluster_of_its_own_and_ends_without_loss(
    home: Path, tmp_path: Path, handler: Path
) -> None:
    with on_ray(home, f"{handler}:Slow") as (process, port), ThreadPoolExecutor(4) as threads:
        assert ask(port, get("/v2/health/ready")).status == 200
        marks = [tmp_path / f"begun{number}" for number in range(4)]
        bodies = [b'{"seconds": 3.0, "started": "%s"}' % str(mark).encode() for mark in marks]
        asked = [threads.submit(ask, port, post("/predictions/Slow", body)) for body in bodies]
        until(marks[0].exists, process.said)
        process.signal(signal.SIGTERM)
        answers = [each.result(SECONDS) for each in asked]
        assert [each.status for each in answers] == [200] * 4, answers
        assert process.wait() == 0, process.said()
    until(lambda: not living(home), lambda: words_of(home))


def test_each_model_has_an_application_of_its_own(home: Path, tmp_path: Path, handler: Path) -> None:
    models.add(tmp_path / "models", "add")
    models.text(tmp_path / "models", "text")
    words = ("--spread", "models", tmp_path / "models", f"{handler}:Slow")
    with on_ray(home, *words) as (process, port):
        for name in ("add", "text", "Slow"):
            assert f"HTTP on http://127.0.0.1:{port}/{name}\n" in process.said()
            there = {each["name"] for each in ask(port, post(f"/{name}/v2/repository/index", b"{}")).document}
            assert there == {name}
        assert ask(port, get("/v2")).status == 404


def test_what_cannot_hold_is_refused_by_name(home: Path, handler: Path) -> None:
    assert "grpc_port" in refused(home, handler, "--on", "ray", "--grpc-port", "9")
    assert "--keys" in refused(home, handler, "--on", "ray", "--host", "0.0.0.0")
    assert "like 1-8" in refused(home, handler, "--on", "ray", "--replicas", "8-1")
    for words in (("--replicas", "3"), ("--spread", "models"), ("--in-place",)):
        assert f"{words[0]} has no effect without --on ray" in refused(home, handler, *words)


def test_a_cluster_without_its_token_gets_no_models(home: Path, handler: Path) -> None:
    said = refused(home, handler, "--on", "ray", RAY_AUTH_MODE="disabled")
    assert "RAY_AUTH_MODE is 'disabled' here" in said
    assert "ray get-auth-token" in said
    until(lambda: not living(home), lambda: words_of(home))


@pytest.fixture
def cluster(home: Path) -> Iterator[Mapping[str, str]]:
    """A node of Ray that runs already and requires its token; the variables that attach to it."""
    port = free_port()
    told = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef0123456789abcdef"}
    words = (f"--port={port}", "--num-cpus=2", "--include-dashboard=false", "--object-store-memory=100000000")
    words += ("--min-worker-port=0", "--max-worker-port=0", f"--ray-client-server-port={free_port()}")
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *words]
    with started(home / "ray.log", *command, variables=variables(home, **told)) as head:
        node = LoggedProcess(head, home / "ray.log")
        node.await_line(re.compile("Ray runtime started"))
        yield {**told, "RAY_ADDRESS": f"{own_address()}:{port}"}
        node.signal(signal.SIGTERM)
        node.wait()


def own_address() -> str:
    """Where Ray listens on this machine."""
    from ray.util import get_node_ip_address

    return get_node_ip_address()


def test_it_serves_on_a_cluster_that_runs_and_leaves_it_as_it_was(
    home: Path, tmp_path: Path, handler: Path, cluster: Mapping[str, str]
) -> None:
    without = {"RAY_ADDRESS": cluster["RAY_ADDRESS"]}
    assert "oken" in refused(home, handler, "--on", "ray", **without)
    before = {each.pid for each in living(home)}
    for words, is_shipped in (((), True), (("--in-place",), False)):
        mark = tmp_path / f"begun{is_shipped}"
        with on_ray(home, f"{handler}:Slow", *words, **cluster) as (process, port):
            assert "the cluster of Ray at" in process.said()
            body = b'{"seconds": 0.0, "started": "%s"}' % str(mark).encode()
            assert ask(port, post("/predictions/Slow", body)).status == 200
        assert mark.read_text().startswith(str(tmp_path)) is not is_shipped, mark.read_text()
    until(lambda: "Serve" not in words_of(home), lambda: words_of(home))
    assert {each.pid for each in living(home) if "raylet" in each.name()} <= before, (
        "the cluster was taken down"
    )
