"""Libraries of operators: loaded by who looks into the file and by who runs it."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime_extensions
import pytest
from onnx import helper
from tests.harness.onnx_models import HERE, TEXT, described, run, tensor

from trivium.engines.onnx.engine import ENGINE
from trivium.engines.onnx.options import OPERATORS
from trivium.types.errors import Code, ServeError


def upper(folder: Path) -> None:
    """Write a model of an operator that ONNX Runtime itself does not have: text in capitals."""
    node = helper.make_node("StringUpper", ["x"], ["y"], domain="ai.onnx.contrib")
    graph = helper.make_graph([node], "g", [tensor("x", TEXT, "n")], [tensor("y", TEXT, "n")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.contrib", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())


def test_an_operator_of_a_library_runs(tmp_path: Path) -> None:
    upper(tmp_path)
    library = onnxruntime_extensions.get_library_path()
    with pytest.raises(ServeError, match="StringUpper"):
        described(tmp_path)
    spec = described(tmp_path, parameters={OPERATORS: library})
    (outcome,) = run(spec, {"x": np.array(["a", "Bc"])})
    assert outcome["y"].tolist() == [b"A", b"BC"]


def test_a_library_of_the_folder_is_found_there(tmp_path: Path) -> None:
    upper(tmp_path)
    (tmp_path / "ops.so").symlink_to(onnxruntime_extensions.get_library_path())
    spec = described(tmp_path, parameters={OPERATORS: "ops.so"})
    assert [each.name for each in spec.inputs] == ["x"]


def test_what_is_no_library_is_named(tmp_path: Path) -> None:
    upper(tmp_path)
    (tmp_path / "ops.so").write_text("no library")
    with pytest.raises(ServeError, match=r"cannot load the library of operators .*ops\.so") as caught:
        described(tmp_path, parameters={OPERATORS: "ops.so"})
    assert caught.value.code is Code.LOAD_FAILED


def test_a_profile_is_written_when_the_model_is_closed(tmp_path: Path) -> None:
    node = helper.make_node("Identity", ["x"], ["y"])
    graph = helper.make_graph([node], "g", [tensor("x", TEXT, "n")], [tensor("y", TEXT, "n")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "model.onnx"))
    spec = described(tmp_path, parameters={"profile_output": str(tmp_path / "profile")})
    runner = ENGINE.open(spec, HERE)
    run(spec, {"x": np.array(["a"])}, runner=runner)
    runner.close()
    del runner
    assert [file.suffix for file in tmp_path.glob("profile*")] == [".json"]
