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
        ("net.pdmodel", b"", "paddle"),
        ("net.json", b'{"base_code":{"magic":"pir","trainable":true,"version":4},"program":', "paddle"),
        ("net.json", b'{"base_code": {"magic": "other"}}', ""),
        ("net.xml", b'<?xml version="1.0"?>\n<net name="m" version="11">', "openvino"),
        ("net.XML", b'\xef\xbb\xbf<net name="m" version="10" >', "openvino"),
        ("net.xml", b'<?xml version="1.0"?>\n<network name="m">', ""),
        ("net.xml", b"<html>", ""),
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


def test_a_folder_with_a_graph_of_openvino_is_a_model_named_after_it(tmp_path: Path) -> None:
    folder = tmp_path / "digits"
    folder.mkdir()
    (folder / "model.xml").write_bytes(b"<net >")
    assert FORMAT.claims(folder)
    (spec,) = FORMAT.read(folder, Defaults()).specs
    assert (spec.name, spec.root, spec.entry, spec.engine) == ("digits", folder, "model.xml", "openvino")
    assert spec.groups == (InstanceGroup("digits"),)
    for other in ("serving.properties", "config.pbtxt", "model.py"):
        (folder / other).touch()
        assert not FORMAT.claims(folder)
        (folder / other).unlink()
    (folder / "model.xml").write_bytes(b"<html>")
    assert not FORMAT.claims(folder)


@pytest.mark.parametrize(
    ("name", "start", "library", "words"),
    [
        ("model.plan", b"", "TensorRT", "serve the ONNX model that it was built from"),
        ("net.TRT", b"", "TensorRT", "serve the ONNX model"),
        ("net.engine", b"", "TensorRT", "serve the ONNX model"),
        ("net.uff", b"", "UFF", "tf2onnx"),
        ("net.bin", b"\xba\x16\x4f\x2f\x0c\x00", "fastText", "fasttext.load_model"),
        ("net.ftz", b"", "fastText", "fasttext.load_model"),
        ("net.caffemodel", b"", "Caffe", "caffe2onnx"),
        ("net.prototxt", b"", "Caffe", "caffe2onnx"),
        ("net.neff", b"", "Neuron", "that it was compiled from"),
        ("net.tflite", b"", "TFLite", "tf2onnx"),
    ],
)
def test_a_file_that_nothing_here_opens_is_refused_by_its_library_s_name(
    tmp_path: Path, name: str, start: bytes, library: str, words: str
) -> None:
    (tmp_path / name).write_bytes(start)
    assert FORMAT.claims(tmp_path / name)
    reading = FORMAT.read(tmp_path / name, Defaults())
    assert reading.specs == ()
    (finding,) = reading.unreadable[0].findings
    assert finding.file == str(tmp_path / name)
    assert f"a model of {library}, which is not supported" in finding.found
    assert words in finding.hint
