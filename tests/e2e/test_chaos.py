"""Seeded chaos on every profile: faults of all kinds under load, after which nothing is lost, doubled, hung or left.

Closed-loop clients ask an echo behind two workers and count what they get; the server's own count must agree. Its
access log and its temporary files are on a disk that fills up, and its wall clock jumps.
"""

import base64
import contextlib
import http.client
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from tests.harness.bad_machine import SMALL, SmallDisk, WallClock
from tests.harness.raw_http import connect, get, infer_request, post, reset, tensor
from tests.harness.server_process import ServerProcess, running, until

CLIENTS = 4
SAMPLE = 5
"""Rounds of each profile where not all are played."""

YEAR = 365.0 * 86400
JUMPS = (1, 3600, -3600, 86400, -86400, 10 * YEAR, -10 * YEAR)
PROFILES = ("native", "triton", "djl", "torchserve")
REFUSALS = {429, 500, 503, 504}
"""Statuses by which a request may be refused in a round of chaos; anything else is a fault of the server."""

WORKER_DIED = {"torchserve": {507}}
"""What a profile says besides these where a worker was killed."""

TRITON = """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(r, "x").as_numpy())])
                for r in requests]
"""
CONFIG = """backend: "python"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { count: 2 kind: KIND_CPU } ]
dynamic_batching { }
"""
DJL = """
from djl_python import Output
def handle(inputs):
    return None if inputs.is_empty() else Output().add(inputs.get_as_bytes())
"""
TORCHSERVE = """
def handle(data, context):
    return None if data is None else [row.get("body") or row.get("data") for row in data]
"""

MANIFEST = """{"runtime": "python", "model":
  {"modelName": "echo", "modelVersion": "1.0", "handler": "handler.py", "configFile": "c.yaml"}}"""


def lay_out(root: Path, profile: str) -> Path:
    """Write the model `echo` in the profile's own format, and for those of Triton a second one, `other`."""
    if profile == "djl":
        folder = root / "echo"
        folder.mkdir(parents=True)
        (folder / "model.py").write_text(DJL)
        (folder / "serving.properties").write_text("engine=Python\nminWorkers=2\nmaxWorkers=2\n")
        return folder
    if profile == "torchserve":
        folder = root / "echo"
        (folder / "MAR-INF").mkdir(parents=True)
        (folder / "handler.py").write_text(TORCHSERVE)
        (folder / "MAR-INF" / "MANIFEST.json").write_text(MANIFEST)
        (folder / "c.yaml").write_text("minWorkers: 2\nmaxWorkers: 2\n")
        return folder
    for name in ("echo", "other"):
        (root / name / "1").mkdir(parents=True)
        (root / name / "1" / "model.py").write_text(TRITON)
        (root / name / "config.pbtxt").write_text(CONFIG)
    return root


LARGE = base64.b64encode(bytes(2 * SMALL)).decode()
SENT = json.dumps({"parameters": {"config": "{}", "file:1/model.py": LARGE}}).encode()
"""A load of a model whose file is larger than the disk."""


class Machine(NamedTuple):
    """What a server has there that turns bad: the folder of its models, a disk, a clock."""

    root: Path
    disk: SmallDisk
    clock: WallClock


class Chaos:
    """One server under load. `counts` are the outcomes of all clients, by what happened."""

    def __init__(self, server: ServerProcess, machine: Machine, profile: str, seed: int) -> None:
        self.server, self.profile = server, profile
        self.root, self.disk, self.clock = machine
        self.chance = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.faults: dict[str, Callable[[], None]] = {
            "kill a worker": self.kill, "stop a worker": self.stop, "cut connections": self.cut,
            "send slowly": self.trickle, "take descriptors": self.starve, "fill the disk": self.fill,
            "move the clock": self.jump,
        }  # fmt: skip
        if profile in ("native", "triton"):
            self.faults |= {"load and unload": self.reload, "lose a folder": self.lose}
        self.leaves, self.lock = threading.Event(), threading.Lock()

    # -- what clients do

    def ask_all_the_time(self) -> None:
        while not self.leaves.is_set():
            outcome = self.ask_for_a_while()
            with self.lock:
                self.counts += outcome

    def ask_for_a_while(self) -> Counter[str]:
        found: Counter[str] = Counter()
        try:
            with closing(HTTPConnection("127.0.0.1", self.server.port, timeout=120)) as connection:
                for _ in range(20):
                    if self.leaves.is_set():
                        break
                    found[self.ask(connection)] += 1
        except (ConnectionError, http.client.HTTPException):
            found["no connection"] += 1
        return found

    def ask(self, connection: HTTPConnection) -> str:
        number = random.randrange(2**20)
        if self.profile in ("native", "triton"):
            whole = infer_request("echo", tensor("x", [number, 1, 2, 3], [1, 4]))
            body, path = whole.partition(b"\r\n\r\n")[2], "/v2/models/echo/infer"
        else:
            body, path = b"number %d" % number, "/predictions/echo"
        connection.request("POST", path, body, {"Content-Type": "application/octet-stream"})
        answer = connection.getresponse()
        came = answer.read()
        if answer.status == 200:
            right = str(number).encode() in came
            return "right" if right else f"wrong: {came[:80]!r}"
        refusals = REFUSALS | WORKER_DIED.get(self.profile, set())
        return "refused" if answer.status in refusals else f"{answer.status}: {came[:200]!r}"

    # -- what goes wrong

    def workers(self) -> list[psutil.Process]:
        return [worker for worker in self.server.workers() if worker.is_running()]

    def kill(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):
            self.chance.choice(self.workers()).kill()

    def stop(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):
            worker = self.chance.choice(self.workers())
            worker.suspend()
            time.sleep(0.2)
            worker.resume()

    def cut(self) -> None:
        for _ in range(20):
            plug = connect(self.server.port)
            request = infer_request("echo", tensor("x", [1, 2, 3, 4], [1, 4]))
            plug.sendall(request[: self.chance.randrange(1, len(request))])
            reset(plug)

    def trickle(self) -> None:
        with closing(connect(self.server.port)) as plug:
            for byte in get("/v2/health/live"):
                plug.sendall(bytes([byte]))
                time.sleep(0.005)

    def starve(self) -> None:
        process = self.server.process
        before = process.rlimit(resource.RLIMIT_NOFILE)
        process.rlimit(resource.RLIMIT_NOFILE, (process.num_fds() + 1, before[1]))
        plugs = [connect(self.server.port) for _ in range(8)]
        time.sleep(0.2)
        process.rlimit(resource.RLIMIT_NOFILE, before)
        for plug in plugs:
            plug.close()

    def fill(self) -> None:
        with self.disk.filled(self.server.process):
            if self.profile in ("native", "triton"):
                answer = self.server.ask(post("/v2/repository/models/sent/load", SENT))
                assert 400 <= answer.status < 600, answer
            time.sleep(0.7)  # the access log is written twice a second
        log = self.disk.seen_by(self.server.process) / "access"
        os.truncate(log, 0)  # in many rounds it fills the disk itself
        self.server.ask(get("/v2/health/live"))
        until(lambda: log.stat().st_size > 0, lambda: f"nothing is logged any more: {self.server.said()}")

    def jump(self) -> None:
        self.clock.jump(self.chance.choice(JUMPS))
        time.sleep(0.3)

    def reload(self) -> None:
        for act in ("unload", "load", "unload", "load"):
            self.server.ask(b"POST /v2/repository/models/other/%s HTTP/1.1\r\nHost: localhost\r\n"
                            b"Content-Length: 0\r\n\r\n" % act.encode())  # fmt: skip

    def lose(self) -> None:
        place = self.root / "other"
        kept = place.with_name("kept")
        shutil.copytree(place, self.root.parent / "kept")
        shutil.rmtree(place)
        self.reload()
        shutil.move(self.root.parent / "kept", place)
        assert not kept.exists()
        self.reload()

    # -- the books

    def counted(self) -> int:
        """Return the successes that the server counted itself."""
        if self.profile == "triton":
            rows = self.server.ask(get("/v2/models/echo/stats")).document["model_stats"]
            return sum(row["inference_stats"]["success"]["count"] for row in rows)
        text = self.server.ask(get("/metrics")).body.decode()
        lines = [
            line for line in text.splitlines() if line.startswith('nv_inference_request_success{model="echo"')
        ]
        return sum(int(float(line.rpartition(" ")[2])) for line in lines)


@contextlib.contextmanager
def under_load(chaos: Chaos) -> Iterator[None]:
    chaos.leaves.clear()
    with ThreadPoolExecutor(CLIENTS) as threads:
        clients = [threads.submit(chaos.ask_all_the_time) for _ in range(CLIENTS)]
        try:
            yield
        finally:
            chaos.leaves.set()
        for client in clients:
            client.result(120)


def play(tmp_path: Path, profile: str, rounds: int, seed: int) -> None:
    """`rounds` faults on one server, each followed by a look at whether it serves; at the end SIGTERM under load."""
    root = tmp_path / "models"
    path = lay_out(root, profile)
    ping = "/ping" if profile in ("djl", "torchserve") else "/v2/health/ready"
    machine = Machine(root, SmallDisk(tmp_path / "disk"), WallClock(tmp_path))
    variables = {**machine.clock.variables, "TMPDIR": str(machine.disk.folder)}
    words = ("serve", path, "--profile", profile, "--access-log", machine.disk.folder / "access")
    with running(
        tmp_path / "log", *words, models_raise=True, prefix=machine.disk.prefix, variables=variables
    ) as server:
        chaos = Chaos(server, machine, profile, seed)
        until(lambda: server.ask(get(ping)).status == 200, server.said)
        names = sorted(chaos.faults)
        random.Random(seed).shuffle(names)
        first = SAMPLE * PROFILES.index(profile)  # so that each comes up in one profile at least
        for number in range(rounds):
            name = names[(first + number) % len(names)] if number < SAMPLE else chaos.chance.choice(names)
            with under_load(chaos):
                time.sleep(0.05)
                chaos.faults[name]()
                time.sleep(0.05)
            until(
                lambda: server.ask(get(ping)).status == 200,
                lambda name=name: f"after {name}: {server.said()}",
            )
            odd = set(chaos.counts) - {"right", "refused", "no connection"}
            assert not odd, f"after {name}: {odd}"
        assert chaos.counts["right"] > rounds
        until(lambda: len(chaos.workers()) >= 2, server.said)
        lost = chaos.counts["no connection"]
        assert 0 <= chaos.counted() - chaos.counts["right"] <= lost, (
            f"{chaos.counted()} beside {chaos.counts}"
        )
        with under_load(chaos):
            time.sleep(0.1)
            os.kill(server.process.pid, signal.SIGTERM)
            server.wait()
        assert not set(chaos.counts) - {"right", "refused", "no connection"}, chaos.counts


@pytest.mark.parametrize("profile", PROFILES)
def test_five_rounds_lose_nothing(tmp_path: Path, profile: str) -> None:
    play(tmp_path, profile, SAMPLE, 20261125)


def test_the_clock_that_jumps_is_the_one_that_a_server_reads(tmp_path: Path) -> None:
    clock = WallClock(tmp_path)
    code = "import time; print(time.time(), time.time_ns() / 1e9)"
    for shift in (0.0, YEAR, -2 * YEAR):
        clock.jump(shift)
        variables = {**os.environ, **clock.variables}
        said = subprocess.run(
            [sys.executable, "-c", code], env=variables, capture_output=True, check=True
        ).stdout
        assert all(abs(float(word) - time.time() - shift) < 600 for word in said.split())


@pytest.mark.soak
@pytest.mark.parametrize("profile", PROFILES)
def test_many_rounds_lose_nothing(tmp_path: Path, profile: str) -> None:
    play(tmp_path, profile, 250, 20261126)
