"""Every runtime of `deploy/kserve` with the clients of KServe's own package: started as its manifest says, over a
folder laid out as its storage initializer does, asked by v1, v2 and gRPC.
"""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.harness import mlflow_folders
from tests.harness.digit_networks import write_onnx, write_paddle
from tests.harness.engine_files import ROWS, write_scripted
from tests.harness.kserve_pod import ROOT, objects, pod
from tests.harness.saved_models import process, save_digits
from tests.harness.table_models import digits, write
from tests.harness.task_models import write_task

KSERVE = ROOT / ".venv-kserve" / "bin" / "python"
CLIENT = Path(__file__).parent / "kserve_client" / "standing.py"
NAME = "digits"

pytestmark = pytest.mark.skipif(not KSERVE.exists(), reason="make e2e installs KServe's client")


@pytest.fixture(scope="module")
def kserve() -> Iterator[Callable[..., Any]]:
    """KServe's clients: call it with a line as `standing.py` reads it."""
    with subprocess.Popen(
        [KSERVE, CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as clients:
        assert clients.stdin is not None
        assert clients.stdout is not None

        def ask(**line: Any) -> Any:
            print(json.dumps(line), file=clients.stdin, flush=True)
            return json.loads(clients.stdout.readline())

        yield ask
        clients.stdin.close()


def triton(mount: Path) -> None:
    write_onnx(mount / NAME / "1" / "model.onnx")
    (mount / NAME / "config.pbtxt").write_text('backend: "onnxruntime"\nmax_batch_size: 32\n')


def saved(mount: Path) -> None:
    with process() as ask:
        ask(save_digits, mount / "1")


@dataclass(frozen=True)
class Case:
    """A model for a runtime: how it is written to the mount, what a picture is divided by, what tells the digit."""

    write: Callable[[Path], Any]
    scale: float = 16
    digit: str = ""
    """The output with labels; empty where the first has a score for each digit."""
    library: str = ""
    """What has to be installed."""
    v1: bool = True


CASES = {
    "trivium": Case(triton),
    "trivium-triton": Case(triton, v1=False),
    "trivium-onnx": Case(lambda mount: write_onnx(mount / "model.onnx")),
    "trivium-pytorch": Case(lambda mount: write_scripted(mount / "model.pt")),
    "trivium-sklearn": Case(lambda mount: write(mount / "model.joblib", "sklearn"), 1, "predict"),
    "trivium-xgboost": Case(lambda mount: write(mount / "model.ubj", "xgboost"), 1, "predict"),
    "trivium-lightgbm": Case(lambda mount: write(mount / "model.bst", "lightgbm"), 1, "predict"),
    "trivium-tensorflow": Case(saved, 1, "digit", "tensorflow"),
    "trivium-paddle": Case(lambda mount: write_paddle(mount, "inference.pdmodel"), library="paddle"),
    "trivium-mlflow": Case(lambda mount: mlflow_folders.write_xgboost(mount), 1, "predict"),
}


def variables_of(runtime: str) -> Mapping[str, str]:
    """What the sample InferenceService of a runtime sets."""
    (service,) = (
        each
        for each in objects("samples.yaml").values()
        if each["spec"]["predictor"]["model"]["runtime"] == runtime
        and each["metadata"]["name"].endswith("-sample")
    )
    return {each["name"]: each["value"] for each in service["spec"]["predictor"]["model"].get("env", [])}


def test_every_runtime_is_asked_by_every_protocol_that_it_states() -> None:
    """That of TorchServe by `test_kserve_runtime`, for each of its envelopes."""
    runtimes = objects("runtimes.yaml")
    assert {*CASES, "trivium-huggingface", "trivium-torchserve"} == set(runtimes)
    for name, case in CASES.items():
        assert ("v1" in runtimes[name]["spec"]["protocolVersions"]) == case.v1, name
    assert runtimes["trivium-huggingface"]["spec"]["protocolVersions"] == ["v1", "v2", "grpc-v2"]


@pytest.mark.parametrize("runtime", CASES)
def test_kserves_clients_get_the_digits(runtime: str, kserve: Callable[..., Any], tmp_path: Path) -> None:
    case = CASES[runtime]
    if case.library and find_spec(case.library) is None:
        pytest.skip(f"{case.library} is not installed")
    mount = tmp_path / "mnt" / "models"
    mount.mkdir(parents=True)
    case.write(mount)
    rows, wanted = digits()
    pictures = (rows[:ROWS] / np.float32(case.scale)).tolist()
    with pod(runtime, mount, tmp_path / "log", variables=variables_of(runtime)) as running:
        running.await_ready()
        url = f"http://127.0.0.1:{running.http}"
        tensor = httpx.get(f"{url}/v2/models/{NAME}").json()["inputs"][0]
        given = {
            "name": tensor["name"],
            "datatype": tensor["datatype"],
            "shape": [ROWS, 64],
            "data": pictures,
        }
        line = {"url": url, "rpc": f"127.0.0.1:{running.rpc}", "model": NAME, "inputs": [given]}
        found = kserve(**line, **({"instances": pictures} if case.v1 else {}))
        assert "error" not in found, (found, running.said())
    told = {
        key: digits_of(value[case.digit] if case.digit else next(iter(value.values())))
        for key, value in found.items()
        if key in ("v2", "v2 binary", "grpc")
    }
    if case.v1:
        told["v1"] = digits_of(
            [row["digit"] for row in found["v1"]] if case.digit == "digit" else found["v1"]
        )
    expected = told["v2"]
    assert set(told) == {"v2", "v2 binary", "grpc"} | ({"v1"} if case.v1 else set())
    assert all(each == expected for each in told.values()), told
    assert sum(a == b for a, b in zip(expected, wanted[:ROWS].tolist(), strict=True)) >= ROWS - 1
    whole = {found[key] for key in ("live", "server ready")}
    assert whole == ({"no JSON"} if runtime == "trivium-triton" else {True})
    assert all(found[key] is True for key in ("ready", "rpc ready", "rpc live"))
    assert found.get("v1 ready", True) is True


def digits_of(values: list[Any]) -> list[int]:
    """The digits that labels, or scores for each digit, tell."""
    if isinstance(values[0], list) and len(values[0]) > 1:
        return [row.index(max(row)) for row in values]
    return [int(row[0] if isinstance(row, list) else row) for row in values]


TEXTS = ["a good day", "nothing at all"]


def test_kserves_clients_get_the_classes_of_texts(kserve: Callable[..., Any], tmp_path: Path) -> None:
    mount = tmp_path / "mnt" / "models"
    write_task(mount, "classes")
    with pod("trivium-huggingface", mount, tmp_path / "log") as running:
        running.await_ready()
        url = f"http://127.0.0.1:{running.http}"
        given = {"name": "text_input", "datatype": "BYTES", "shape": [len(TEXTS)], "data": TEXTS}
        line = {"url": url, "rpc": f"127.0.0.1:{running.rpc}", "model": NAME, "inputs": [given]}
        found = kserve(**line, instances=TEXTS)
        assert "error" not in found, (found, running.said())
    told = [found[wire]["answer"] for wire in ("v2", "v2 binary", "grpc")]
    assert all(each == told[0] for each in told), told
    labels = [json.loads(one) for one in told[0]]
    assert len(labels) == len(TEXTS)
    assert [f"LABEL_{number}" for number in found["v1"]] == [one["label"] for one in labels]
    assert found["live"] is found["server ready"] is found["rpc ready"] is True
