"""A bare file: recognised by its suffix, dims whole, never batched by itself."""

from pathlib import Path

from trivium.formats.bare import FORMAT
from trivium.types.datatype import DataType
from trivium.types.spec import Batching, Defaults, InstanceGroup, ModelFacts, TensorSpec

FACTS = ModelFacts(
    (TensorSpec("x", DataType.FP32, (-1, 4)),), (TensorSpec("y", DataType.INT64, (-1,)),), batchable=True
)


def test_claims_existing_files_by_suffix(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").touch()
    (tmp_path / "net.pt").touch()
    (tmp_path / "folder.onnx").mkdir()
    claimed = [
        name for name in ("net.onnx", "net.pt", "folder.onnx", "none.onnx") if FORMAT.claims(tmp_path / name)
    ]
    assert claimed == ["net.onnx"]


def test_one_version_completed_from_the_facts(tmp_path: Path) -> None:
    reading = FORMAT.read(tmp_path / "net.onnx", Defaults(queue_items=7))
    (spec,) = reading.specs
    assert (spec.name, spec.version, spec.engine) == ("net", "1", "onnx")
    assert spec.root / spec.entry == tmp_path / "net.onnx"
    assert (spec.batching, spec.groups) == (Batching(), (InstanceGroup("net"),))
    assert spec.limits.queue_items == 7
    done = FORMAT.finish(spec, FACTS)
    assert (done.inputs, done.outputs, done.batching) == (FACTS.inputs, FACTS.outputs, Batching())
    assert {"inputs[0].dims", "outputs[0].name", "groups[0].minimum", "name"} <= done.origin.keys()
