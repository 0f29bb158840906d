"""200 seeded rounds of: kill a random worker under load. Every request is answered once, and the dead are named.

Closed-loop clients ask an echo model behind four worker processes, each with numbers of its own. What a killed
worker had begun fails, with its name; what it had not begun is answered by another one.
"""

import contextlib
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import psutil
import pytest
from tests.harness.server_process import ServerProcess, serve, until

SEED = 20261121
ROUNDS = 200
CLIENTS = 6
WORKERS = 4
SWITCHES = 300
"""A worker that has waited so often serves: each batch waits, and hardly anything else does. To kill one that only
starts is another test.
"""

MOST_BEGUN = 4
"""Requests that one worker can have begun and not answered: a whole batch."""

CONFIG = """
backend: "python"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { count: 4 kind: KIND_CPU } ]
dynamic_batching { }
"""

MODEL = """
import time
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.001)
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy())]
            )
            for request in requests
        ]
"""


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[ServerProcess]:
    folder = tmp_path / "models" / "echo"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(MODEL)
    (folder / "config.pbtxt").write_text(CONFIG)
    with serve(tmp_path / "log", tmp_path / "models", "--log-level", "error") as server:
        yield server


def test_killing_random_workers_under_load_loses_nothing(serving: ServerProcess) -> None:
    before = holdings(serving)
    stop = threading.Event()
    with ThreadPoolExecutor(CLIENTS) as threads:
        clients = [threads.submit(client, serving.port, number, stop) for number in range(CLIENTS)]
        killed = kill_rounds(serving, random.Random(SEED))
        stop.set()
        outcomes = sum((future.result(120) for future in clients), Counter())
    assert sum(outcomes.values()) > ROUNDS
    assert outcomes["wrong"] == 0
    died = Counter({what: count for what, count in outcomes.items() if what.startswith("process ")})
    assert set(outcomes) == {"right", *died}, outcomes
    assert {int(what.split()[1]) for what in died} <= set(killed), (
        "an error names a worker that nobody killed"
    )
    assert max(died.values(), default=0) <= MOST_BEGUN, "more failed than a worker can have begun"
    until(lambda: len(workers(serving)) == WORKERS, lambda: str(workers(serving)))
    until(serving.is_ready, serving.said)
    until(lambda: is_back(holdings(serving), before), lambda: f"{holdings(serving)}, was {before}")
    family = [serving.process, *workers(serving)]
    serving.terminate()
    assert serving.wait() == 0
    assert not [process for process in family if process.is_running()], "a process was left behind"


def kill_rounds(serving: ServerProcess, chance: random.Random) -> list[int]:
    """Kill one worker per round, as soon as there is one that serves; the numbers of those killed."""
    killed: list[int] = []
    for _ in range(ROUNDS):
        until(lambda: bool(victims(serving, killed)), serving.said)
        victim = chance.choice(victims(serving, killed))
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)
        time.sleep(chance.uniform(0, 0.1))
    return killed


def victims(serving: ServerProcess, killed: list[int]) -> list[int]:
    """Workers that serve."""
    found = []
    for worker in workers(serving):
        with contextlib.suppress(psutil.NoSuchProcess):
            if worker.pid not in killed and worker.num_ctx_switches().voluntary > SWITCHES:
                found.append(worker.pid)
    return sorted(found)


def client(port: int, number: int, stop: threading.Event) -> Counter[str]:
    """Ask until told to stop; how the requests ended. Each must be answered within seconds."""
    outcomes: Counter[str] = Counter()
    count = 0
    with closing(HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        while not stop.is_set():
            count += 1
            numbers = np.array([[number, count, -count, 0.5]], "<f4")
            outcomes[ask(connection, numbers)] += 1
    return outcomes


def ask(connection: HTTPConnection, numbers: np.ndarray) -> str:
    """`right`, `wrong`, or the process that a refusal names."""
    header = (
        b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"parameters":{"binary_data_size":16}}],'
        b'"parameters":{"binary_data_output":true}}'
    )
    fields = {"Inference-Header-Content-Length": str(len(header))}
    connection.request("POST", "/v2/models/echo/infer", header + numbers.tobytes(), fields)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status == 200:
        return "right" if body.endswith(numbers.tobytes()) else "wrong"
    found = re.search(rb"\((process \d+)\) was killed by SIGKILL", body)
    return found[1].decode() if answer.status == 500 and found else f"{answer.status} {body!r}"


def workers(serving: ServerProcess) -> list[psutil.Process]:
    """Those alive."""
    found = []
    for child in serving.workers():
        try:
            if child.status() != psutil.STATUS_ZOMBIE:
                found.append(child)
        except psutil.NoSuchProcess:
            pass
    return found


def holdings(serving: ServerProcess) -> tuple[int, int, int]:
    """Descriptors, threads and anonymous shared mappings of the server."""
    maps = Path(f"/proc/{serving.process.pid}/maps").read_text()
    footprint = serving.footprint()
    return footprint.descriptors, footprint.threads, maps.count("/memfd:trivium-")


def is_back(now: tuple[int, int, int], before: tuple[int, int, int]) -> bool:
    """Nothing more is held than before, but for threads of pools that are started when they are first needed."""
    return now[0] <= before[0] and now[1] <= before[1] + 4 and now[2] <= before[2]
