"""Files that a process tries before the server opens them: what hangs or bloats a trial is refused by name, and models
beside it answer meanwhile.
"""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import onnx
import pytest
from onnx import TensorProto, helper
from tests.harness.onnx_models import FLOAT, identity, tensor
from tests.harness.server_process import serve, until


def endless(path: Path) -> Path:
    """Write a model that counts to 2**60 whatever its input is."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Neg", ["held"], ["kept"])],
        "body",
        [tensor("i", TensorProto.INT64), tensor("go", TensorProto.BOOL), tensor("held", FLOAT, 1)],
        [tensor("on", TensorProto.BOOL), tensor("kept", FLOAT, 1)],
    )
    constants = [
        helper.make_tensor("times", TensorProto.INT64, [], [2**60]),
        helper.make_tensor("yes", TensorProto.BOOL, [], [True]),
    ]
    node = helper.make_node("Loop", ["times", "yes", "x"], ["y"], body=body)
    graph = helper.make_graph([node], "g", [tensor("x", FLOAT, 1)], [tensor("y", FLOAT, 1)], constants)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of DJL's whose model never ends."""
    file = endless(tmp_path / "endless" / "endless.onnx")
    (file.parent / "serving.properties").write_text("engine=OnnxRuntime\n")
    return file.parent


def test_what_hangs_is_refused_and_its_neighbour_answers_meanwhile(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "near").mkdir()
    identity(tmp_path / "near", FLOAT, 2)
    with serve(tmp_path / "log", tmp_path / "near" / "model.onnx", "--startup-timeout", "3") as server:
        asked = {"url": str(folder), "model_name": "endless", "synchronous": "false"}
        httpx.post(f"{server.url}/models", params=asked).raise_for_status()
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}

        def has_failed() -> bool:
            answer = httpx.post(f"{server.url}/v2/models/model/infer", json=body)
            assert answer.json()["outputs"][0]["data"] == [1, 2]
            return "did not end in 3 s" in server.said()

        until(has_failed, server.said)
        said = server.said()
        assert (
            f"The process that tries {folder / 'endless.onnx'} for model 'endless' did not end in 3 s" in said
        )
        assert "engine 'onnx' cannot run it" in said


def test_check_runs_a_model_where_it_is_asked(folder: Path) -> None:
    command = [sys.executable, "-m", "trivium.cli.main", "check", str(folder)]
    plain = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert plain.returncode == 0, plain.stdout
    runs = subprocess.run(
        [*command, "--run"],
        env=os.environ | {"TRIVIUM_STARTUP_TIMEOUT": "3"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert runs.returncode == 1
    assert "did not end in 3 s" in " ".join(runs.stdout.split())
