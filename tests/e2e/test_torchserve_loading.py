"""The command `torchserve` while workers start: who calls then waits, whatever becomes of the worker or the client."""

import json
import os
import re
import signal
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.harness.raw_http import Answer, connect, reset
from tests.harness.server_process import until
from tests.harness.torchserve_command import TorchServeFolder, TorchServeProcess, torchserve

LATE = """
import os, time
class Late:
    def initialize(self, context):
        while not os.path.exists("GATE"):
            time.sleep(0.01)
        if open("GATE").read() == "fail":
            raise ValueError("no weights here")
    def handle(self, data, context):
        return [str(len(row.get("body") or row.get("data") or b"")) for row in data]
"""
MANAGED = "disable_token_authorization=true\nenable_model_api=true\n"


class LateModel:
    """A store with one model, whose worker starts once it may."""

    def __init__(self, place: Path) -> None:
        self.gate = place / "gate"
        self.folder = TorchServeFolder(place)
        self.folder.model("late", LATE.replace("GATE", str(self.gate)), "minWorkers: 1\njobQueueSize: 2\n")

    def open(self, how: str = "") -> None:
        """Let its worker start, or fail."""
        coming = self.gate.with_suffix(".new")
        coming.write_text(how)
        coming.rename(self.gate)

    def pending(self, server: TorchServeProcess) -> int:
        """How many requests wait for it, as its description says."""
        (about,) = json.loads(server.ask("Management", "GET", "/models/late").body)
        return int(about["jobQueueStatus"]["pendingRequests"])


@pytest.fixture
def late(tmp_path: Path) -> LateModel:
    return LateModel(tmp_path)


def calls(pool: ThreadPoolExecutor, late: LateModel, server: TorchServeProcess) -> list["Future[Answer]"]:
    """Two calls, both of which wait."""
    found = [pool.submit(server.predict, "late", b"x" * size) for size in (1, 3_000_000)]
    until(lambda: late.pending(server) == 2, server.said)
    return found


def test_calls_wait_at_the_start_and_one_too_many_is_refused(late: LateModel) -> None:
    with torchserve(late.folder, "--models", "late") as server, ThreadPoolExecutor(2) as pool:
        waiting = calls(pool, late, server)
        assert server.predict("late").status == 503
        assert server.ask("Inference", "GET", "/ping").status == 200
        late.open()
        assert [(each.result().status, each.result().body) for each in waiting] == [
            (200, b"1"),
            (200, b"3000000"),
        ]


def test_who_leaves_makes_room(late: LateModel) -> None:
    with torchserve(late.folder, "--models", "late") as server, ThreadPoolExecutor(2) as pool:
        port = server.port("Inference")
        plugs: list[socket.socket] = [connect(port) for _ in range(2)]
        for plug in plugs:
            plug.sendall(b"POST /predictions/late HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
        until(lambda: late.pending(server) == 2, server.said)
        for plug in plugs:
            reset(plug)
        until(lambda: late.pending(server) == 0, server.said)
        waiting = calls(pool, late, server)
        late.open()
        assert [each.result().status for each in waiting] == [200, 200]


def test_a_registration_that_fails_ends_those_who_wait(late: LateModel) -> None:
    with torchserve(late.folder, text=MANAGED) as server, ThreadPoolExecutor(2) as pool:
        query = "url=late&initial_workers=1&synchronous=false"
        assert server.ask("Management", "POST", f"/models?{query}").status == 202
        waiting = calls(pool, late, server)
        late.open("fail")
        for each in waiting:
            assert (each.result().status, b"has no worker" in each.result().body) == (503, True)
        until(lambda: server.predict("late").status == 404, server.said)


def test_a_server_that_is_stopped_ends_those_who_wait(late: LateModel) -> None:
    with torchserve(late.folder, "--models", "late") as server, ThreadPoolExecutor(2) as pool:
        waiting = calls(pool, late, server)
        server.process.send_signal(signal.SIGTERM)
        assert [each.result().status for each in waiting] == [503, 503]


def test_calls_wait_while_workers_do_not_start_again(late: LateModel) -> None:
    late.open()
    with torchserve(late.folder, "--models", "late") as server, ThreadPoolExecutor(2) as pool:
        server.serves("late")
        late.open("fail")
        (about,) = json.loads(server.ask("Management", "GET", "/models/late").body)
        (worker,) = about["workers"]
        os.kill(int(worker["pid"]), signal.SIGKILL)
        until(lambda: "Auto recovery failed again" in server.said(), server.said)
        waiting = calls(pool, late, server)
        late.open()
        assert [each.result().status for each in waiting] == [200, 200]
        assert re.findall(r"Retry worker: \d+ in (\d+) seconds", server.said())[:2] == ["0", "1"]
