"""Files that a process tries before the server opens them: what hangs or bloats a trial is refused by name, and models
beside it answer meanwhile.
"""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from tests.harness.onnx_models import FLOAT, identity, save, tensor
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


def mixed(folder: Path, accelerator: str = "") -> Path:
    """Write a model for Triton of which OpenVINO cannot run `Unique`."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["twice"]),
        helper.make_node("Unique", ["twice"], ["each"]),
        helper.make_node("Mul", ["each", "each"], ["y"]),
    ]
    place = folder / "mixed" / "1"
    place.mkdir(parents=True)
    save(place, nodes, [tensor("x", FLOAT, "n", 3)], [tensor("y", FLOAT, "m")])
    lines = ['backend: "onnxruntime"']
    if accelerator:
        one = f'cpu_execution_accelerator [ {{ name: "{accelerator}" }} ]'
        lines.append(f"optimization {{ execution_accelerators {{ {one} }} }}")
    (place.parent / "config.pbtxt").write_text("\n".join(lines) + "\n")
    return folder


def checked(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trivium.cli.main", "check", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


COMPUTE = "compute on the CPU"


def test_check_says_which_provider_computes_where_it_runs_a_model(tmp_path: Path) -> None:
    plain, runs = checked(mixed(tmp_path)), checked("--run", tmp_path)
    assert (plain.returncode, runs.returncode) == (0, 0), runs.stdout
    assert COMPUTE not in plain.stdout
    assert f"{COMPUTE}: CPUExecutionProvider runs all 3 nodes" in " ".join(runs.stdout.split())


def test_an_accelerator_is_used_or_refused_with_its_package(tmp_path: Path) -> None:
    done = checked("--run", mixed(tmp_path, "openvino"))
    said = " ".join(done.stdout.split())
    if "OpenVINOExecutionProvider" in onnxruntime.get_available_providers():
        assert done.returncode == 0, said
        assert f"{COMPUTE}, of 3 nodes: OpenVINOExecutionProvider 1, CPUExecutionProvider 2 (" in said
    else:
        assert done.returncode == 1
        assert "config.pbtxt:2 (optimization.execution_accelerators)" in said
        assert "-m pip install onnxruntime-openvino. Or remove the accelerator" in said
