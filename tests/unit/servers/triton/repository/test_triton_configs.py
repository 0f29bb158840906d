"""`configs/NAME.pbtxt` in place of config.pbtxt, labels and buckets of metrics, and where each model lies."""

import json
from pathlib import Path

import pytest

from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.findings import Severity
from trivium.types.metrics import ModelMetrics
from trivium.types.operations import Load
from trivium.types.spec import Defaults

BASE = 'backend: "identity"\ninput { name: "x" data_type: TYPE_FP32 dims: 1 }\n' + (
    'output { name: "y" data_type: TYPE_FP32 dims: 1 }\n'
)


def config(folder: Path, rows: int, name: str = "config", more: str = "") -> None:
    path = folder / ("config.pbtxt" if name == "config" else f"configs/{name}.pbtxt")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{BASE}max_batch_size: {rows}\n{more}")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with two configurations to choose from beside its own."""
    folder = tmp_path / "m"
    (folder / "1").mkdir(parents=True)
    config(folder, 1)
    config(folder, 8, "large")
    config(folder, 2, "small")
    (folder / "configs/notes.txt").write_text("no configuration")
    return folder


def read(path: Path, name: str = ""):
    reading = FORMAT.read(path, Defaults(config_name=name))
    assert not reading.unreadable, reading.unreadable
    (spec,) = reading.specs
    return spec


@pytest.mark.parametrize(
    ("name", "rows", "file"),
    [
        ("", 1, "config.pbtxt"),
        ("large", 8, "configs/large.pbtxt"),
        ("small", 2, "configs/small.pbtxt"),
        ("absent", 1, "config.pbtxt"),
        ("notes", 1, "config.pbtxt"),
    ],
)
def test_the_preferred_one_counts_and_is_named(model, name, rows, file):
    spec = read(model, name)
    assert spec.batching.max_rows == rows
    assert spec.origin["batching.max_rows"].file == str(model / file)


def test_a_name_that_the_model_does_not_have_is_reported(model):
    (report,) = [each for each in read(model, "absent").reports if "absent" in each.found]
    assert report.severity is Severity.NOTICE
    assert "configs/large.pbtxt, configs/small.pbtxt" in report.found
    assert not [each for each in read(model, "large").reports if "configs/" in each.found]
    assert not [each for each in read(model).reports if "configs/" in each.found]


def test_a_model_may_have_these_alone(model):
    (model / "config.pbtxt").unlink()
    assert FORMAT.claims(model)
    assert read(model, "large").batching.max_rows == 8
    (broken,) = FORMAT.read(model, Defaults()).unreadable
    assert any("--model-config-name" in finding.found for finding in broken.findings)


def test_a_fault_in_it_is_told_with_its_name(model):
    config(model, 8, "large", "nonsense: 1\n")
    (broken,) = FORMAT.read(model, Defaults(config_name="large")).unreadable
    assert broken.findings[0].file == str(model / "configs/large.pbtxt")
    assert not FORMAT.read(model, Defaults()).unreadable


@pytest.mark.parametrize("files", [{}, {"1/x": b"", "configs/large.pbtxt": b"max_batch_size: 4"}])
def test_a_configuration_that_is_sent_goes_first(model, tmp_path, files):
    sent = json.dumps(
        {
            "backend": "identity",
            "max_batch_size": 16,
            "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [1]}],
            "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [1]}],
        }
    )
    into = tmp_path / "into"
    into.mkdir()
    laid_out = FORMAT.override(Load("m", sent, files), tmp_path, into)
    assert read(laid_out, "large").batching.max_rows == 16
    assert (model / "configs/large.pbtxt").exists()


def test_labels_and_buckets_of_metrics(model):
    config(
        model,
        1,
        more="""metric_tags { key: "team" value: "red" }
        model_metrics { metric_control: [
          { metric_identifier { family: "nv_inference_first_response_histogram_ms" }
            histogram_options { buckets: [ 500, -1, inf, 1.5, 500 ] } },
          { metric_identifier { family: "other" } histogram_options { buckets: 1 } } ] }
        """,
    )
    spec = read(model)
    assert spec.metrics == ModelMetrics({"team": "red"}, (-0.001, 0.0015, 0.5))
    assert spec.origin["metrics.labels"].key == "metric_tags"
    (report,) = [each for each in spec.reports if each.key.startswith("model_metrics")]
    assert "the family other" in report.found


def test_without_either_there_are_none(model):
    assert read(model).metrics == ModelMetrics()


def test_each_model_has_a_place(model, tmp_path):
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "no_model").mkdir()
    (tmp_path / "file").touch()
    assert FORMAT.places(tmp_path) == {"m": model, "no_model": tmp_path / "no_model"}
    assert FORMAT.places(model) == {"m": model}
    with pytest.raises(OSError, match="nowhere"):
        FORMAT.places(tmp_path / "nowhere")
