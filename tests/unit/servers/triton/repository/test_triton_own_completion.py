"""A configuration as the model's own auto_complete_config left it: what of it is taken, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.harness.triton_folders import make, one

from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.datatype import DataType
from trivium.types.errors import ConfigError
from trivium.types.spec import Defaults, Dynamic, ModelFacts, ModelSpec, TensorSpec

IN = {"name": "IN", "data_type": "TYPE_FP32", "dims": [4]}
OUT = {"name": "OUT", "data_type": "TYPE_STRING", "dims": [-1]}
LABELLED = 'backend: "python" output { name: "OUT" data_type: TYPE_STRING dims: -1 label_filename: "l.txt" }'


def read(tmp_path: Path, config: str = 'backend: "python"') -> ModelSpec:
    return one(make(tmp_path, "m", config, "1/model.py", "l.txt"))


def configuration(spec: ModelSpec) -> dict[str, Any]:
    assert spec.handler is not None
    told: dict[str, Any] = json.loads(str(spec.handler.settings["model_config"]))
    return told


def finish(spec: ModelSpec, **changes: object) -> ModelSpec:
    document = json.dumps({**configuration(spec), **changes})
    return FORMAT.finish(spec, ModelFacts((), (), False, document=document))


def test_what_a_model_may_complete(tmp_path: Path) -> None:
    policy = {"decoupled": True}
    changes: dict[str, Any] = {"input": [{**IN, "optional": True}], "output": [OUT], "max_batch_size": 8}
    spec = finish(read(tmp_path), **changes, dynamic_batching={}, model_transaction_policy=policy)
    assert spec.inputs == (TensorSpec("IN", DataType.FP32, (4,), optional=True),)
    assert spec.outputs == (TensorSpec("OUT", DataType.BYTES, (-1,)),)
    assert (spec.batching.batch_axis, spec.batching.max_rows, spec.batching.merge) == (True, 8, True)
    assert isinstance(spec.scheduling, Dynamic)
    assert spec.scheduling.preferred_rows == (8,)
    assert spec.streams
    for field in ("inputs[0].name", "inputs[0].dims", "batching.max_rows", "batching.merge", "streams"):
        assert str(spec.origin[field]) == "auto_complete_config of the model"


def test_instances_are_told_what_was_completed(tmp_path: Path) -> None:
    told = configuration(finish(read(tmp_path), input=[IN], max_batch_size=2))
    assert told["max_batch_size"] == 2
    assert told["input"][0]["dims"] == [4]
    assert told["input"][0]["allow_ragged_batch"] is False


def test_what_is_none_of_its_business_stays(tmp_path: Path) -> None:
    before = read(tmp_path)
    after = finish(
        before, parameters={"x": {"string_value": "1"}}, name="n", instance_group=[], version_policy={}
    )
    assert after is before


def test_what_the_file_says_goes_first(tmp_path: Path) -> None:
    spec = read(tmp_path, 'backend: "python" max_batch_size: 4 sequence_batching { direct { } }')
    told = {**configuration(spec), "dynamic_batching": {}}
    del told["sequence_batching"]
    after = FORMAT.finish(spec, ModelFacts((), (), False, document=json.dumps(told)))
    assert after.scheduling == spec.scheduling
    assert FORMAT.finish(spec, ModelFacts((), (), False)) is spec


def test_labels_of_the_file_stay(tmp_path: Path) -> None:
    make(tmp_path, "m", LABELLED, "1/model.py")
    (tmp_path / "m" / "l.txt").write_text("a\nb\n")
    spec = finish(one(tmp_path / "m"), input=[IN])
    assert spec.outputs[0].labels == ("a", "b")


HALF = 'backend: "python" input { name: "IN" } output { name: "OUT" label_filename: "l.txt" }'
ASKED = "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(c):\n        return c\n"


def half_told(tmp_path: Path) -> Path:
    make(tmp_path, "m", HALF, "1/model.py")
    (tmp_path / "m" / "1" / "model.py").write_text(ASKED)
    (tmp_path / "m" / "l.txt").write_text("a\nb\n")
    return tmp_path / "m"


def test_what_the_file_half_says_the_model_may_complete(tmp_path: Path) -> None:
    spec = one(half_told(tmp_path))
    spec = finish(spec, input=[IN], output=[{**OUT, "label_filename": "l.txt"}])
    assert spec.inputs == (TensorSpec("IN", DataType.FP32, (4,)),)
    assert spec.outputs == (TensorSpec("OUT", DataType.BYTES, (-1,), labels=("a", "b")),)


@pytest.mark.parametrize("file", ["none.txt", "../l.txt", "/etc/hostname", "1"])
def test_a_model_names_no_label_file(tmp_path: Path, file: str) -> None:
    (tmp_path / "l.txt").write_text("not the model's")
    more = {**OUT, "name": "MORE"}
    outputs = [{**OUT, "label_filename": file}, {**more, "label_filename": file}]
    spec = finish(one(half_told(tmp_path)), input=[IN], output=outputs)
    assert [(output.name, output.labels) for output in spec.outputs] == [("OUT", ("a", "b")), ("MORE", ())]


@pytest.mark.parametrize(
    ("changes", "tensor", "key"),
    [
        ({}, "input 'IN'", "data_type"),
        ({"input": [{**IN, "dims": []}]}, "input 'IN'", "dims"),
        ({"input": [IN]}, "output 'OUT'", "data_type"),
        ({"input": [{**IN, "data_type": "TYPE_INVALID"}]}, "input 'IN'", "data_type"),
    ],
)
def test_what_nobody_says_fails_the_load(
    tmp_path: Path, changes: dict[str, Any], tensor: str, key: str
) -> None:
    with pytest.raises(ConfigError, match=f"no {key} in ") as caught:
        finish(one(half_told(tmp_path)), **changes)
    assert caught.value.info is not None
    assert (
        caught.value.info.metadata["text"] == f"Invalid argument: model {tensor} must specify '{key}' for m"
    )


def test_a_model_that_completes_nothing_must_say_it_in_the_file(tmp_path: Path) -> None:
    folder = half_told(tmp_path)
    for source, completes in (("class TritonPythonModel:\n    pass\n", True), (ASKED, False)):
        (folder / "1" / "model.py").write_text(source)
        (unreadable,) = FORMAT.read(folder, Defaults(completes=completes)).unreadable
        assert any("no data_type in input[0]" in str(finding) for finding in unreadable.findings)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"input": [{**IN, "dims": [0]}]}, "the size 0"),
        ({"input": [{**IN, "data_type": "TYPE_ODD"}]}, "Invalid enum value TYPE_ODD"),
        ({"input": [{**IN, "odd": 1}]}, "no field named"),
        ({"input": [IN, IN]}, "a second input named IN"),
        ({"max_batch_size": -1}, "the number -1"),
        ({"max_batch_size": "many"}, "no model configuration"),
    ],
)
def test_what_cannot_be(tmp_path: Path, changes: dict[str, Any], found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        finish(read(tmp_path), **changes)


@pytest.mark.parametrize("document", ["[]", "7", "{", '{"input": 7}', "[" * 100_000])
def test_what_is_no_configuration(tmp_path: Path, document: str) -> None:
    with pytest.raises(ConfigError, match=r"returned what is no model configuration"):
        FORMAT.finish(read(tmp_path), ModelFacts((), (), False, document=document))
