"""A bare file: recognised by its suffix, dims whole, never batched by itself."""

from pathlib import Path

import pytest

from trivium.formats.bare import ENGINES, FORMAT
from trivium.types.datatype import DataType
from trivium.types.errors import ConfigError
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Batching, Defaults, InstanceGroup, ModelFacts, TensorSpec

FACTS = ModelFacts(
    (TensorSpec("x", DataType.FP32, (-1, 4)),), (TensorSpec("y", DataType.INT64, (-1,)),), batchable=True
)


def test_claims_existing_files_by_suffix(tmp_path: Path) -> None:
    for name in ("net.onnx", "net.PT", "net.pt2", "net.ts", "net.torchscript", "net.pth", "net.bin", "onnx"):
        (tmp_path / name).touch()
    for name in ("graph.pb", "graph.graphdef", "net.keras", "net.h5"):
        (tmp_path / name).touch()
        assert FORMAT.claims(tmp_path / name)
        (tmp_path / name).unlink()
    (tmp_path / "folder.onnx").mkdir()
    claimed = {path.name for path in tmp_path.iterdir() if FORMAT.claims(path)}
    assert claimed == {"net.onnx", "net.PT", "net.pt2", "net.ts", "net.torchscript"}
    assert not FORMAT.claims(tmp_path / "none.onnx")
    assert all(suffix in FORMAT.expects for suffix in ENGINES)


@pytest.mark.parametrize(
    ("file", "engine"),
    [
        ("net.onnx", "onnx"),
        ("net.pt2", "torch"),
        ("net.pt", "torch"),
        ("net.TS", "torch"),
        ("net.pb", "tensorflow"),
    ],
)
def test_one_version_completed_from_the_facts(tmp_path: Path, file: str, engine: str) -> None:
    reading = FORMAT.read(tmp_path / file, Defaults(queue_items=7))
    (spec,) = reading.specs
    assert (spec.name, spec.version, spec.engine) == ("net", "1", engine)
    assert spec.root / spec.entry == tmp_path / file
    assert (spec.batching, spec.groups) == (Batching(), (InstanceGroup("net"),))
    assert spec.limits.queue_items == 7
    assert spec.origin["engine"].file == f"the file's suffix {file[3:].lower()}"
    done = FORMAT.finish(spec, FACTS)
    assert (done.inputs, done.outputs, done.batching) == (FACTS.inputs, FACTS.outputs, Batching())
    assert {"inputs[0].dims", "outputs[0].name", "groups[0].minimum", "name"} <= done.origin.keys()


def test_torchscript_that_does_not_tell_its_inputs_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    (spec,) = FORMAT.read(tmp_path / "net.pt", Defaults()).specs
    with pytest.raises(ConfigError) as caught:
        FORMAT.finish(spec, ModelFacts((), (), False))
    (finding,) = caught.value.findings
    assert isinstance(finding, Finding)
    assert (finding.severity, finding.file) == (Severity.ERROR, str(tmp_path / "net.pt"))
    assert "Triton repository" in finding.hint
    done = FORMAT.finish(spec, ModelFacts(FACTS.inputs, (), False))
    assert (done.inputs, done.outputs) == (FACTS.inputs, ())


def test_an_onnx_file_may_have_no_inputs(tmp_path: Path) -> None:
    (spec,) = FORMAT.read(tmp_path / "net.onnx", Defaults()).specs
    assert FORMAT.finish(spec, ModelFacts((), FACTS.outputs, False)).inputs == ()


@pytest.mark.parametrize(
    ("name", "start", "engine"),
    [
        ("net.bst", b'{"learner":{}}', "xgboost"),
        ("net.bst", b"{L\x00\x00\x00\x00\x00\x00\x00\x07learner{", "xgboost"),
        ("net.json", b'{"learner":{}}', "xgboost"),
        ("net.bst", b"tree\nversion=v4\n", "lightgbm"),
        ("net.TXT", b"tree\r\nversion=v4\r\n", "lightgbm"),
        ("net.ubj", b"", "xgboost"),
        ("net.skops", b"", "sklearn"),
        ("net.pkl", b"", "sklearn"),
        ("net.json", b'{"name": "net"}', ""),
        ("net.txt", b"trees are green\n", ""),
        ("net.bst", b"", ""),
    ],
)
def test_a_suffix_of_several_libraries_is_told_by_the_first_bytes(
    tmp_path: Path, name: str, start: bytes, engine: str
) -> None:
    path = tmp_path / name
    path.write_bytes(start)
    assert FORMAT.claims(path) is bool(engine)
    if engine:
        (spec,) = FORMAT.read(path, Defaults()).specs
        assert (spec.name, spec.engine) == ("net", engine)
