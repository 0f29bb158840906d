"""Which provider of ONNX Runtime runs how many nodes: the sentence, and what a real session tells."""

from types import SimpleNamespace

import onnxruntime
import pytest
from onnx import helper
from tests.harness.onnx_models import FLOAT, save, tensor

from trivium.engines.onnx.compute import assigned, told
from trivium.engines.onnx.engine import ENGINE
from trivium.types.errors import Code, ServeError
from trivium.types.running import Placement
from trivium.types.spec import Device, Isolation

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
ON_CPU = Placement("m_0", Isolation.PROCESS)
ON_GPU = Placement("m_0", Isolation.PROCESS, Device.GPU, 3)


@pytest.mark.parametrize(
    ("providers", "nodes", "place", "said"),
    [
        ([CPU], [(CPU, "Add")] * 2, ON_CPU, f"compute on the CPU: {CPU} runs all 2 nodes"),
        ([CPU], [], ON_CPU, f"compute on the CPU: {CPU} runs all 0 nodes"),
        ([CUDA, CPU], [(CUDA, "Add")], ON_GPU, f"compute on GPU 3: {CUDA} runs all 1 nodes"),
        (
            [CUDA, CPU],
            [(CPU, "Shape"), (CUDA, "Add"), (CPU, "Shape"), (CPU, "Gather")],
            ON_GPU,
            f"compute on GPU 3, of 4 nodes: {CUDA} 1, {CPU} 3 (2 Shape, 1 Gather)",
        ),
        ([CUDA, CPU], [(CPU, "Add")], ON_GPU, f"compute on GPU 3, of 1 nodes: {CUDA} none, {CPU} 1 (1 Add)"),
        (
            [CUDA, CPU],
            [(CPU, kind) for kind in "abcdefg"],
            ON_GPU,
            f"compute on GPU 3, of 7 nodes: {CUDA} none, {CPU} 7 (1 a, 1 b, 1 c, 1 d, 1 e, 1 f, ...)",
        ),
    ],
)
def test_the_sentence(providers, nodes, place, said):
    assert told(providers, nodes, place) == said


def test_builds_that_do_not_tell():
    assert assigned(SimpleNamespace()) is None


@pytest.fixture
def add(tmp_path):
    nodes = [helper.make_node("Add", ["x", "x"], ["a"]), helper.make_node("Sin", ["a"], ["y"])]
    return save(tmp_path, nodes, [tensor("x", FLOAT, "n")], [tensor("y", FLOAT, "n")])


def test_a_real_session(add, monkeypatch):
    assert ENGINE.compute(add, ON_CPU) == f"compute on the CPU: {CPU} runs all 2 nodes"
    monkeypatch.setattr("trivium.engines.onnx.engine.assigned", lambda session: None)
    said = ENGINE.compute(add, ON_CPU)
    assert said.startswith(f"compute: ONNX Runtime {onnxruntime.__version__} tries {CPU}, and does not tell")


def test_a_provider_that_is_not_there_is_refused(add, monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CPU])
    with pytest.raises(ServeError, match="has no CUDA") as caught:
        ENGINE.compute(add, ON_GPU)
    assert caught.value.code is Code.LOAD_FAILED
