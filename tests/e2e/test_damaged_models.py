"""Damaged files of each engine, loaded into a server that has others to answer: refused by name, or served."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from tests.harness.damaged_files import HOWS, damaged
from tests.harness.engine_files import PARAMETERS, EngineFile, write_all
from tests.harness.server_process import ServerProcess, serve

ENGINES = ("onnx", "torch", "openvino", "paddle", "tensorflow", "xgboost", "lightgbm", "sklearn")
WHOLE = 60
DEADLINE = 60.0
"""Seconds in which a load must have ended: the server's own bound, and time to answer."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, EngineFile]:
    pytest.importorskip("tensorflow.version")
    return {one.engine: one for one in write_all(tmp_path_factory.mktemp("models"))}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, files: dict[str, EngineFile]) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("served")
    near = shutil.copy(files["onnx"].path, root / "near.onnx")
    with serve(root / "log", near, *PARAMETERS, "--startup-timeout", "45") as served:
        yield served


def answers(server: ServerProcess, file: EngineFile) -> None:
    """Ask the neighbour."""
    rows = file.rows(0, 2)
    tensor = {"name": file.tensor, "datatype": "FP32", "shape": list(rows.shape), "data": rows.tolist()}
    answer = httpx.post(f"{server.url}/v2/models/near/infer", json={"inputs": [tensor]}, timeout=30)
    assert answer.status_code == 200, answer.text
    scores = np.reshape(answer.json()["outputs"][0]["data"], (2, 10))
    assert file.found(scores) == [0, 1]


def load(server: ServerProcess, path: Path, name: str) -> httpx.Response:
    asked = {"url": str(path), "model_name": name, "synchronous": "true"}
    return httpx.post(f"{server.url}/models", params=asked, timeout=DEADLINE * 2)


def judge(server: ServerProcess, files: dict[str, EngineFile], engine: str, place: Path, count: int) -> None:
    file = files[engine]
    other = files["onnx" if engine != "onnx" else "xgboost"].path
    for number, path in enumerate(damaged(file.path, place, count, other)):
        how, began = HOWS[number % len(HOWS)], time.monotonic()
        answer = load(server, path, f"m{number}")
        assert time.monotonic() - began < DEADLINE, how
        answers(server, files["onnx"])
        if answer.status_code == 200:
            httpx.delete(f"{server.url}/models/m{number}", timeout=DEADLINE).raise_for_status()
            continue
        assert answer.status_code in (400, 404, 409, 500, 503), f"{how}: {answer.text}"
        assert f"m{number}'" in answer.text or path.name in answer.text, f"{how}: {answer.text}"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sample_is_refused_by_name_or_served(
    server: ServerProcess, files: dict[str, EngineFile], engine: str, tmp_path: Path
) -> None:
    judge(server, files, engine, tmp_path, len(HOWS))


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
def test_all_are_refused_by_name_or_served(
    server: ServerProcess, files: dict[str, EngineFile], engine: str, tmp_path: Path
) -> None:
    judge(server, files, engine, tmp_path, WHOLE)
    assert server.process.is_running()
