"""A thousand interleaved sequences on instances that are killed: no sum is wrong, what breaks says so and begins anew.

Clients of both wires go on with many sequences by turns, leave some of them without an end, and pause now and then. The
model adds up what each sequence sends, and knows what it must not see: a sequence that goes on where it has not begun.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import tritonclient.grpc as over_grpc
import tritonclient.http as over_http
from tests.harness.server_process import SECONDS, ServerProcess, serve, until
from tritonclient.utils import InferenceServerException

SEED = 20261121
SEQUENCES = 1000
CLIENTS = 8
BY_TURNS = 12
"""Sequences that one client goes on with at a time."""
KILLS = (0.2, 0.45, 0.7)
"""Parts of all sequences after which an instance is killed."""
TRIES = 2 + len(KILLS)

MODEL = """
import os, pathlib, time, numpy as np, triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}
        pids = pathlib.Path(args["model_repository"]) / "pids"
        pids.mkdir(exist_ok=True)
        (pids / str(os.getpid())).touch()
    def execute(self, requests):
        time.sleep(0.002)
        return [self.answer(request) for request in requests]
    def answer(self, request):
        names = ("X", "START", "END", "READY", "ID")
        told = {n: pb_utils.get_input_tensor_by_name(request, n).as_numpy().item() for n in names}
        x, key = told["X"], told["ID"]
        if told["READY"]:
            if told["START"]:
                self.sums[key] = 0
            elif key not in self.sums:
                return pb_utils.InferenceResponse([], pb_utils.TritonError("sequence %d is not from here" % key))
            x += self.sums[key]
            self.sums[key] = x
            if told["END"]:
                del self.sums[key]
        return pb_utils.InferenceResponse([pb_utils.Tensor("SUM", np.array([[x]], np.int32))])
"""
BATCHING = {
    "direct": "direct { }",
    "oldest": "oldest { max_candidate_sequences: 64 }",
}
CONFIG = """
backend: "python" max_batch_size: 64 instance_group { count: 3 kind: KIND_CPU }
input { name: "X" data_type: TYPE_INT32 dims: 1 } output { name: "SUM" data_type: TYPE_INT32 dims: 1 }
sequence_batching { max_sequence_idle_microseconds: 4000000 %s
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
  control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } }
  control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
  control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sequences") / "models"
    for name, strategy in BATCHING.items():
        (root / name / "1").mkdir(parents=True)
        (root / name / "config.pbtxt").write_text(CONFIG % strategy)
        (root / name / "1" / "model.py").write_text(MODEL)
    return root


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serve(tmp_path_factory.mktemp("log") / "log", root, "--log-level", "error") as server:
        yield server


class Sum:
    """One sequence, as its client sees it: how many values are left, and what their sum must be."""

    def __init__(self, number: int, dice: random.Random) -> None:
        self.number = number
        self.values = [dice.randrange(1, 1000) for _ in range(dice.randrange(1, 9))]
        self.is_left = dice.random() < 0.1 and len(self.values) > 1
        self.sent = 0
        self.errors: list[str] = []
        if self.is_left:
            self.values.pop()  # its end is never sent

    @property
    def is_over(self) -> bool:
        return self.sent == len(self.values)

    def go_on(self, ask: "Ask", model: str) -> None:
        """Send the next value. Broken, it begins anew with the first."""
        value, starts = self.values[self.sent], self.sent == 0
        ends = self.sent == len(self.values) - 1 and not self.is_left
        try:
            answer = ask(
                model, value, {"sequence_id": self.number, "sequence_start": starts, "sequence_end": ends}
            )
        except InferenceServerException as error:
            self.errors.append(error.message())
            assert len(self.errors) < TRIES, self.errors
            self.sent = 0
            return
        self.sent += 1
        assert answer == sum(self.values[: self.sent]), f"sequence {self.number}, {self.errors}"


Place = dict[str, int | bool]
"""Of a request in its sequence."""
Ask = Callable[[str, int, Place], int]


def http(server: ServerProcess) -> tuple[Ask, Callable[[], None]]:
    client = over_http.InferenceServerClient(
        server.address, network_timeout=SECONDS, connection_timeout=SECONDS
    )
    return partial(_asked, over_http, client, {}), client.close


def grpc(server: ServerProcess) -> tuple[Ask, Callable[[], None]]:
    client = over_grpc.InferenceServerClient(server.grpc_address)
    return partial(_asked, over_grpc, client, {"client_timeout": SECONDS}), client.close


def _asked(library: Any, client: Any, options: dict[str, float], model: str, value: int, place: Place) -> int:
    given = library.InferInput("X", [1, 1], "INT32")
    given.set_data_from_numpy(np.array([[value]], np.int32))
    return int(client.infer(model, [given], **place, **options).as_numpy("SUM").item())


class Crowd:
    """All clients, and how many sequences are over."""

    def __init__(self, server: ServerProcess, model: str, seed: int) -> None:
        self.server, self.model, self.seed = server, model, seed
        self.over = 0
        self._lock = threading.Lock()

    def client(self, turn: int) -> list[Sum]:
        """One that begins with its share; those that are over, in the end all of it."""
        dice = random.Random(self.seed + turn)
        ask, close = (http, grpc)[turn % 2](self.server)
        waiting = [Sum(number, dice) for number in range(turn + 1, SEQUENCES + 1, CLIENTS)]
        open_: list[Sum] = []
        done: list[Sum] = []
        try:
            while waiting or open_:
                while waiting and len(open_) < BY_TURNS:
                    open_.append(waiting.pop())
                one = dice.choice(open_)
                one.go_on(ask, self.model)
                if dice.random() < 0.02:
                    time.sleep(dice.random() * 0.1)
                if one.is_over:
                    open_.remove(one)
                    done.append(one)
                    with self._lock:
                        self.over += 1
        finally:
            close()
        return done


def kill_one(root: Path, model: str, dice: random.Random) -> None:
    """An instance of the model, with the signal that none can answer."""
    alive = [
        int(file.name) for file in (root / model / "pids").iterdir() if psutil.pid_exists(int(file.name))
    ]
    os.kill(dice.choice(sorted(alive)), signal.SIGKILL)


@pytest.mark.parametrize("model", BATCHING)
def test_a_thousand_sequences_and_killed_instances(server: ServerProcess, root: Path, model: str) -> None:
    crowd = Crowd(server, model, SEED)
    dice = random.Random(SEED)
    with ThreadPoolExecutor(CLIENTS) as threads:
        clients = [threads.submit(crowd.client, turn) for turn in range(CLIENTS)]
        for part in KILLS:
            until(
                lambda part=part: crowd.over >= part * SEQUENCES or any(c.done() for c in clients),  # type: ignore[misc]
                lambda: f"after {crowd.over} sequences nothing goes on",
                60,
            )
            kill_one(root, model, dice)
        done = [one for client in clients for one in client.result(120)]
    assert sorted(one.number for one in done) == list(range(1, SEQUENCES + 1))
    told = Counter(_kind(error) for one in done for error in one.errors)
    broken = [one for one in done if one.errors]
    assert len(broken) < SEQUENCES / 3, told
    assert told["died"] + told["not begun"] == sum(len(one.errors) for one in done), told
    assert broken, "no kill hit anything: the test is none"
    late = Sum(SEQUENCES + 1, dice)
    ask, close = http(server)
    while not late.is_over:
        late.go_on(ask, model)
    close()
    assert late.errors == []


def _kind(error: str) -> str:
    """What a client is told of a broken sequence: whose instance died, or that it has to begin anew."""
    if "died" in error:
        return "died"
    return "not begun" if error.endswith("that starts it.") else error
