"""The blocks of serving.properties in DJL's guide: each is served, or refused by a sentence that would mend it."""

from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.commands import trivium
from tests.harness.djl_serving import djl_serving

HANDLER = """
from djl_python import Output
def handle(inputs):
    return None if inputs.is_empty() else Output().add(inputs.get_as_bytes())
"""
PYTHON = "engine=Python"
ONNX = "engine=OnnxRuntime"

SERVED = {
    "python": (PYTHON, "option.pythonExecutable=python3", "option.predict_timeout=120",
               "option.model_loading_timeout=10", "option.parallel_loading=true"),
    "environment": (PYTHON, "option.enable_venv=true"),
    "paged": (PYTHON, "option.max_rolling_batch_size=64", "option.paged_attention=false",
              "option.max_rolling_batch_prefill_tokens=1088"),
    "rolling": (PYTHON, "option.rolling_batch=auto"),
    "workers": (PYTHON, "minWorkers=32", "maxWorkers=64", "max_idle_time=120"),
    "devices": (PYTHON, "gpu.minWorkers=2", "gpu.maxWorkers=3", "cpu.minWorkers=2", "cpu.maxWorkers=4"),
    "queue": (PYTHON, "job_queue_size=10"),
    "parallel": (PYTHON, "option.tensor_parallel_degree=2"),
    "batches": (PYTHON, "batch_size=2", "max_batch_delay=1"),
    "threads": (ONNX, "option.interOpNumThreads=2", "option.intraOpNumThreads=2", "option.executionMode=SEQUENTIAL"),
    "graph": (ONNX, "option.optLevel=BASIC_OPT", "option.memoryPatternOptimization=true",
              "option.cpuArenaAllocator=true", "option.disablePerSessionThreads=true",
              "option.disablePerSessionThreads=true"),
    "prefix": (ONNX, "option.modeName=resnet18_v1"),
}  # fmt: skip
REFUSED = {
    "misspelt": ((PYTHON, "option.handler=hanlde"), "handle"),
    "entry": ((PYTHON, "option.entryPoint=deepspeed.py"), "deepspeed.py"),
    "device": ((ONNX, "option.ortDevice=TensorRT/ROCM/CoreML"), "TensorRT"),
    "library": ((ONNX, "option.customOpLibrary=myops.so"), "myops.so"),
}


def lay_out(root: Path, name: str, lines: tuple[str, ...]) -> Path:
    place = root / name
    place.mkdir(parents=True)
    (place / "serving.properties").write_text("\n".join(lines) + "\n")
    if PYTHON in lines:
        (place / "model.py").write_text(HANDLER)
    else:
        prefix = next((line.partition("=")[2] for line in lines if "modeName" in line), name)
        models.bare_add(place, prefix, ["rows", 4])
    return place


@pytest.mark.parametrize(("name", "lines"), SERVED.items())
def test_a_block_that_is_served_is_found_good(tmp_path: Path, name: str, lines: tuple[str, ...]) -> None:
    done = trivium("check", lay_out(tmp_path, name, lines))
    assert done.returncode == 0, done.stdout
    assert f"model {name}" in done.stdout


@pytest.mark.parametrize(("name", "lines", "words"), [(name, *row) for name, row in REFUSED.items()])
def test_a_block_that_is_not_says_what_to_do(
    tmp_path: Path, name: str, lines: tuple[str, ...], words: str
) -> None:
    done = trivium("check", lay_out(tmp_path, name, lines))
    assert done.returncode == 1, done.stdout
    assert words in done.stdout
    assert "hint" in done.stdout
    assert f"serving.properties:{len(lines)}" in done.stdout


def test_the_blocks_serve_together(tmp_path: Path) -> None:
    for name in ("python", "queue", "batches", "threads", "graph", "prefix"):
        lay_out(tmp_path / "models", name, (*SERVED[name], "maxWorkers=1"))
    with djl_serving(tmp_path / "log", "-s", tmp_path / "models") as server:
        for name in ("python", "queue", "batches"):
            assert server.infer("POST", f"/predictions/{name}", b"kitten").body == b"kitten"
        healthy = server.infer("GET", "/ping").document
        assert set(healthy) == {"python", "queue", "batches", "threads", "graph", "prefix"}
