"""Models that follow their folders, seen by clients who never stop asking: not one of them meets a gap."""

import contextlib
import itertools
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tritonclient.grpc as grpcclient
from tests.fixtures import models
from tests.harness.raw_http import get, infer_request, post, tensor
from tests.harness.server_process import ServerProcess, serve, serve_handlers, until
from tritonclient.utils import InferenceServerException

HANDLER = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        y = np.full(4, {stamp}, np.float32)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", y)]) for _ in requests]
"""

CONFIG = """
backend: "python"
max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { kind: KIND_CPU } ]
"""

NOT_ALLOWED = "explicit model load / unload is not allowed if polling is enabled"

_SIZES = itertools.count(1)

POLL = ("--model-control", "poll", "--poll-seconds", "0.1")


def write(root: Path, name: str, code: str, version: int = 1) -> None:
    """A model whose file takes the place of the one before in one step. No two are of one size: compiled code is taken
    for that of its source where size and second are the same.
    """
    folder = root / name
    (folder / str(version)).mkdir(parents=True, exist_ok=True)
    if not (folder / "config.pbtxt").exists():
        (folder / "config.pbtxt").write_text(CONFIG)
    aside = root.parent / "model.py"
    aside.write_text(code + "#" * next(_SIZES))
    aside.replace(folder / str(version) / "model.py")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository of two models."""
    folder = tmp_path / "models"
    write(folder, "m", HANDLER.format(stamp=1))
    models.identity(folder, "echo")
    return folder


def stamp(serving: ServerProcess, model: str = "m") -> float:
    """What the model answers first; it must."""
    answer = serving.ask(infer_request(model, tensor("x", [7, 7, 7, 7], [4])))
    assert answer.status == 200, answer
    first: float = answer.document["outputs"][0]["data"][0]
    return first


@contextlib.contextmanager
def asking(serving: ServerProcess) -> Iterator[list[float]]:
    """Two clients who ask `m` all the time, each time on a connection of its own; what they are answered, in order."""
    leaves = threading.Event()
    answers: list[list[float]] = [[], []]

    def live(number: int) -> None:
        while not leaves.is_set():
            answers[number].append(stamp(serving))

    all_of_them: list[float] = []
    with ThreadPoolExecutor(2) as threads:
        lives = [threads.submit(live, number) for number in range(2)]
        try:
            yield all_of_them
        finally:
            leaves.set()
        for life in lives:
            life.result(120)
    for some in answers:
        assert some == sorted(some), "a client met an old model behind a new one"
        all_of_them += some


def test_reloads_without_a_gap(root: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "log", root, *POLL) as serving:
        until(serving.is_ready, serving.said)
        with asking(serving) as answers:
            for number in (2, 3):
                write(root, "m", HANDLER.format(stamp=number))
                until(lambda number=number: stamp(serving) == number, serving.said)
            write(root, "m", HANDLER.format(stamp=4), version=2)
            until(lambda: stamp(serving) == 4, serving.said)
            shutil.rmtree(root / "m" / "1")
        assert set(answers) == {1, 2, 3, 4}
        index = serving.ask(post("/v2/repository/index", b"{}")).document
        assert ("m", "2", "READY") in {(row["name"], row.get("version"), row.get("state")) for row in index}


def test_what_is_broken_leaves_what_serves(root: Path, tmp_path: Path) -> None:
    with serve_handlers(tmp_path / "log", root, *POLL) as serving:
        until(serving.is_ready, serving.said)
        with asking(serving) as answers:
            (root / "m" / "config.pbtxt").write_text(CONFIG + "nonsense: 1\n")
            until(lambda: "nonsense" in serving.said(), serving.said)
            assert stamp(serving) == 1
            (root / "m" / "config.pbtxt").write_text(CONFIG)
            write(root, "m", "raise_this = undefined")
            until(lambda: "undefined" in serving.said(), serving.said)
            assert stamp(serving) == 1
            assert serving.is_ready()
            write(root, "m", HANDLER.format(stamp=2))
            until(lambda: stamp(serving) == 2, serving.said)
        assert set(answers) == {1, 2}


def test_models_come_and_go(root: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "log", root, *POLL) as serving:
        until(serving.is_ready, serving.said)
        models.identity(root, "new")
        shutil.rmtree(root / "m")
        until(lambda: serving.ask(get("/v2/models/new/ready")).status == 200, serving.said)
        until(lambda: serving.ask(get("/v2/models/m")).status == 404, serving.said)
        assert stamp(serving, "new") == 7
        assert serving.is_ready()


@pytest.mark.parametrize("control", ["poll", "none"])
def test_clients_load_nothing_then(root: Path, tmp_path: Path, control: str) -> None:
    with serve(tmp_path / "log", root, "--model-control", control, "--profile", "triton") as serving:
        until(serving.is_ready, serving.said)
        for verb in ("load", "unload"):
            answer = serving.ask(post(f"/v2/repository/models/echo/{verb}", b"{}"))
            assert answer.status == 503
            assert answer.error == NOT_ALLOWED
        with grpcclient.InferenceServerClient(serving.grpc_address) as client:
            with pytest.raises(InferenceServerException) as caught:
                client.load_model("echo")
            assert (caught.value.status(), caught.value.message()) == ("StatusCode.UNAVAILABLE", NOT_ALLOWED)
        assert stamp(serving, "echo") == 7
