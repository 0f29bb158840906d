"""SIGHUP in every state of a server: its log files are opened anew, no line of them is lost, and nothing stops."""

import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness import hanging as h
from tests.harness import hanging_clients as c
from tests.harness.hanging import Stage, whole
from tests.harness.raw_http import get
from tests.harness.server_process import LoggedProcess, ServerProcess, living, until
from tests.harness.staged_server import SECONDS, StagedServer, child_of
from tests.harness.tritonserver import FREE, tritonserver

AT_ONCE = 4


class Rotation:
    """The access log of a server on a stage, as a rotator of logs sees it."""

    def __init__(self, stage: Stage) -> None:
        self.file = stage.folder / "access"
        self.moved = stage.folder / "access.1"
        stage.words += ["--access-log", self.file]

    def turn(self, server: LoggedProcess) -> None:
        """Move the file away, and have it opened anew."""
        until(self.file.exists, server.said)
        self.file.rename(self.moved)
        server.signal(signal.SIGHUP)
        until(self.file.exists, lambda: f"it was not opened anew: {server.said()}")

    def logs(self, server: ServerProcess) -> None:
        """Does it log to the new file?"""
        assert server.ask(get("/v2/health/live")).status == 200
        until(lambda: "/v2/health/live" in self.file.read_text(), server.said)

    def count(self) -> int:
        """The lines of both."""
        return sum(len(path.read_text().splitlines()) for path in (self.file, self.moved))


def is_idle(stage: Stage) -> None:
    models.identity(stage.models, "echo", rows=16)
    rotation = Rotation(stage)
    with child_of(stage) as (child, log, _):
        server = ServerProcess(child, log)
        rotation.turn(server)
        rotation.logs(server)
        rotation.turn(server)  # again
        rotation.logs(server)
        end(server, 0)


def is_under_load(stage: Stage) -> None:
    stage.python("pass")
    rotation = Rotation(stage)
    with child_of(stage) as (child, log, _), ThreadPoolExecutor(3) as clients:
        server = ServerProcess(child, log)
        asking = [clients.submit(c.many, server, 100) for _ in range(3)]
        time.sleep(0.2)
        rotation.turn(server)
        for one in asking:
            one.result(SECONDS)
        until(lambda: rotation.count() >= 300, lambda: f"{rotation.count()} lines of 300")
        assert rotation.count() == 300
        end(server, 0)


def loads(stage: Stage) -> None:
    waits = stage.folder / "go"
    wait = stage.say_first(f"[time.sleep(0.05) for _ in iter(lambda: os.path.exists({str(waits)!r}), True)]")
    stage.python("pass", f"    def initialize(self, args):\n        {wait}\n")
    rotation = Rotation(stage)
    with child_of(stage) as (child, log, _):
        stage.await_hang()
        early = LoggedProcess(child, log)
        rotation.turn(early)
        assert not early.has_ended(), early.said()
        waits.touch()
        server = ServerProcess(child, log)
        rotation.logs(server)
        end(server, 0)


def drains(stage: Stage) -> None:
    models.identity(stage.models, "sleeps", delay_ms=3000, datatype="INT64", dims="1")
    rotation = Rotation(stage)
    with child_of(stage) as (child, log, _):
        server = ServerProcess(child, log)
        (plug,) = stage.send(server, whole("sleeps"))
        time.sleep(0.5)
        server.terminate()
        until(lambda: "Stopping" in server.said(), server.said)
        rotation.turn(server)
        assert b" 200 OK" in plug.recv(4096)
        assert server.wait() == 0, server.said()
        assert "/v2/models/sleeps" in rotation.file.read_text()


def has_a_worker_that_hangs(stage: Stage) -> None:
    stage.python(stage.say_first(h.HOLDS_LOCK))
    rotation = Rotation(stage)
    with child_of(stage, "--drain-timeout", "0.5") as (child, log, scratch):
        server = ServerProcess(child, log)
        stage.hang(server, h.asked())
        before = {process.pid for process in living(scratch)}
        rotation.turn(server)
        rotation.logs(server)
        assert {process.pid for process in living(scratch)} == before
        end(server, 1)


def is_read_by_nobody(stage: Stage) -> None:
    act = c.nobody_reads_what_it_prints(stage)
    rotation = Rotation(stage)
    with child_of(stage) as (child, log, _):
        server = StagedServer(child, log, stage.port)
        act(server)
        rotation.turn(server)
        rotation.logs(server)
        end(server, 0)


def logs_to_a_pipe_that_nobody_reads(stage: Stage) -> None:
    act = c.nobody_reads_the_access_log(stage)
    with child_of(stage) as (child, log, _):
        server = ServerProcess(child, log)
        act(server)
        for _ in range(3):
            server.signal(signal.SIGHUP)
        c.many(server)
        end(server, None)


def has_no_log_file(stage: Stage) -> None:
    stage.python("pass")
    with child_of(stage) as (child, log, _):
        server = ServerProcess(child, log)
        for _ in range(3):
            server.signal(signal.SIGHUP)
            c.many(server, 3)
        end(server, 0)


def logs_to_a_folder_that_is_gone(stage: Stage) -> None:
    models.identity(stage.models, "echo", rows=16)
    rotation = Rotation(stage)
    folder = stage.folder / "logs"
    folder.mkdir()
    rotation.file = stage.words[-1] = folder / "access"
    with child_of(stage) as (child, log, _):
        server = ServerProcess(child, log)
        until(rotation.file.exists, server.said)
        moved = folder.rename(stage.folder / "elsewhere")
        server.signal(signal.SIGHUP)
        until(lambda: "cannot be opened anew, and goes on as it was" in server.said(), server.said)
        rotation.file = moved / "access"
        rotation.logs(server)
        end(server, 0)


def end(server: ServerProcess, status: int | None) -> None:
    assert not server.has_ended(), server.said()
    server.terminate()
    assert server.wait() == status or status is None, server.said()
    assert "Traceback" not in server.said()


STATES: tuple[Callable[[Stage], None], ...] = (
    is_idle,
    is_under_load,
    loads,
    drains,
    has_a_worker_that_hangs,
    is_read_by_nobody,
    logs_to_a_pipe_that_nobody_reads,
    has_no_log_file,
    logs_to_a_folder_that_is_gone,
)


def test_a_hangup_opens_logs_anew_and_stops_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        played = {state: threads.submit(state, Stage(tmp_path / state.__name__)) for state in STATES}
    faults = {state.__name__: one.exception() for state, one in played.items() if one.exception()}
    assert not faults, "\n\n".join(f"{name}: {fault!r}" for name, fault in faults.items())


@pytest.mark.parametrize("signals", [1, 5])
def test_the_log_of_tritonserver_is_opened_anew(tmp_path: Path, signals: int) -> None:
    models.identity(tmp_path / "models", "echo")
    file, moved = tmp_path / "its.log", tmp_path / "its.log.1"
    file.touch()
    with tritonserver(
        tmp_path / "log", "--model-repository", tmp_path / "models", f"--log-file={file}", *FREE
    ) as server:
        server.log = file
        server.port("http")
        file.rename(moved)
        for _ in range(signals):
            server.signal(signal.SIGHUP)
        until(file.exists, moved.read_text)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0, moved.read_text()
        assert "Waiting for in-flight requests" in file.read_text()
        assert "Waiting for in-flight requests" not in moved.read_text()
