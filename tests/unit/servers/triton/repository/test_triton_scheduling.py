"""Sequence batchers and ensembles of a configuration: what becomes of them in the spec, and on the way back."""

import json
from pathlib import Path

import pytest
from tests.harness.triton_configs import DIRECT, ENSEMBLE, OLDEST
from tests.harness.triton_folders import TENSORS, faults, make, one

from trivium.servers.triton.repository.repository import FORMAT
from trivium.servers.triton.words.description import config_json, platform_of
from trivium.types.datatype import DataType
from trivium.types.errors import ConfigError
from trivium.types.schedules import Control, Graph, Sequence, Signal, State, Step, Strategy
from trivium.types.spec import Batching, InstanceGroup, Isolation, ModelFacts, TensorSpec
from trivium.types.warmups import SyntheticFill, WarmupInput

PYTHON = 'backend: "python"\n' + TENSORS


def test_a_direct_sequence_batcher(tmp_path: Path) -> None:
    spec = one(make(tmp_path, "m", PYTHON + DIRECT, "1/model.py"))
    assert spec.scheduling == Sequence(
        Strategy.DIRECT,
        idle_seconds=5.0,
        candidates=8,
        controls=(
            Control("START", Signal.START, DataType.INT32, 0, 1),
            Control("READY", Signal.READY, DataType.FP32, 0.0, 1.0),
            Control("END", Signal.END, DataType.BOOL, False, True),
            Control("CORRID", Signal.ID, DataType.UINT64, 0),
        ),
        max_delay=0.0001,
        utilization=0.5,
        states=(
            State(
                "sum_out",
                DataType.INT32,
                (1,),
                WarmupInput("sum_in", DataType.INT32, (1,), SyntheticFill.ZERO),
            ),
            State(
                "words_out",
                DataType.FP32,
                (-1,),
                WarmupInput(
                    "words_in",
                    DataType.FP32,
                    (2,),
                    SyntheticFill.FILE,
                    tmp_path / "m" / "initial_state" / "words.bin",
                ),
            ),
        ),
    )
    assert spec.batching == Batching(True, 8, merge=True)
    assert not spec.in_order
    assert [tensor.name for tensor in (*spec.inputs, *spec.outputs)] == ["x", "y"]
    assert spec.origin["scheduling.states[1]"].key == "sequence_batching.state[1]"
    assert spec.origin["scheduling.controls[3]"].key == "sequence_batching.control_input[3]"
    assert spec.origin["scheduling.utilization"].line is not None
    assert "scheduling.levels" not in spec.origin


def test_an_oldest_sequence_batcher(tmp_path: Path) -> None:
    spec = one(make(tmp_path, "m", PYTHON + OLDEST, "1/model.py"))
    assert spec.scheduling == Sequence(Strategy.OLDEST, 1.0, 4, (), 0.0001, (2, 4), is_iterative=True)
    assert spec.in_order


@pytest.mark.parametrize(
    ("rows", "block", "expected"),
    [
        (8, "", Sequence(Strategy.DIRECT, 1.0, 8)),
        (0, "", Sequence(Strategy.DIRECT, 1.0, 1)),
        (8, "oldest { }", Sequence(Strategy.OLDEST, 1.0, 8, preferred_rows=(8,))),
        (0, "oldest { }", Sequence(Strategy.OLDEST, 1.0, 1)),
    ],
)
def test_defaults(tmp_path: Path, rows: int, block: str, expected: Sequence) -> None:
    text = f"{PYTHON}max_batch_size: {rows} sequence_batching {{ {block} }}"
    spec = one(make(tmp_path, "m", text, "1/model.py"))
    assert spec.scheduling == expected
    printed = json.loads(config_json(spec))["sequence_batching"]
    assert printed["max_sequence_idle_microseconds"] == 1_000_000


def test_an_ensemble(tmp_path: Path) -> None:
    spec = one(make(tmp_path, "e", ENSEMBLE, "1/.keep"))
    assert spec.scheduling == Graph(
        (
            Step("tokens", "", {"text": "words"}, {"ids": "numbers"}),
            Step("classes", "3", {"x": "numbers"}, {"y": "scores"}),
        ),
        in_flight=3,
        step_calls=3,
    )
    assert (spec.engine, spec.entry, spec.batching) == ("ensemble", "", Batching(True, 8))
    assert spec.groups == (InstanceGroup("e", isolation=Isolation.INLINE),)
    assert spec.origin["scheduling"].key == "ensemble_scheduling"
    assert platform_of(spec) == "ensemble"
    printed = json.loads(config_json(spec))
    assert (printed["backend"], printed["instance_group"]) == ("", [])
    assert "input_pinned_memory" not in printed.get("optimization", {})
    assert printed["ensemble_scheduling"]["step"][1]["model_version"] == 3


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (ENSEMBLE.replace('platform: "ensemble"', 'platform: "ensemble" backend: "python"'), "backend"),
        (ENSEMBLE.replace('"ensemble"', '"onnxruntime_onnx"'), "platform"),
        ('platform: "ensemble"\n' + TENSORS, "platform"),
        (ENSEMBLE.replace("output {", "#"), "output"),
    ],
)
def test_an_ensemble_is_that_alone(tmp_path: Path, text: str, key: str) -> None:
    assert key in [finding.key for finding in faults(make(tmp_path, "e", text, "1/.keep"))]


def test_the_platform_may_be_left_out(tmp_path: Path) -> None:
    spec = one(make(tmp_path, "e", ENSEMBLE.replace('platform: "ensemble"', ""), "1/.keep"))
    assert platform_of(spec) == "ensemble"


@pytest.mark.parametrize(
    ("backend", "file", "control", "key"),
    [
        ("identity", "1/any", "CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]", "control_input[0]"),
        ("pytorch", "1/model.pt", "CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]", "control_input[0]"),
        (
            "onnxruntime",
            "1/model.onnx",
            "CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING",
            "control[0].data_type",
        ),
    ],
)
def test_not_every_engine_takes_every_control(
    tmp_path: Path, backend: str, file: str, control: str, key: str
) -> None:
    block = f'sequence_batching {{ control_input {{ name: "c" control {{ kind: {control} }} }} }}'
    (fault,) = faults(make(tmp_path, "m", f'backend: "{backend}"\n{TENSORS}{block}', file))
    assert fault.key.endswith(key)


FLOAT = DataType.FP32
FACTS = ModelFacts(
    (TensorSpec("x", FLOAT, (-1, 3)), TensorSpec("START", DataType.INT32, (-1, 1))),
    (TensorSpec("y", FLOAT, (-1, 3)),),
    batchable=True,
)
ONNX_CONTROL = """
max_batch_size: 4
sequence_batching { control_input {
  name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } }
"""


def test_control_inputs_of_a_model_file_are_the_servers(tmp_path: Path) -> None:
    spec = one(make(tmp_path, "m", ONNX_CONTROL, "1/model.onnx"))
    assert [tensor.name for tensor in FORMAT.finish(spec, FACTS).inputs] == ["x"]
    whole = (
        'input { name: "x" data_type: TYPE_FP32 dims: 3 } output { name: "y" data_type: TYPE_FP32 dims: 3 }'
    )
    spec = one(make(tmp_path, "n", whole + ONNX_CONTROL, "1/model.onnx"))
    assert FORMAT.finish(spec, FACTS).scheduling == spec.scheduling
    spec = one(make(tmp_path, "o", whole + ONNX_CONTROL.replace("START", "BEGIN", 1), "1/model.onnx"))
    with pytest.raises(ConfigError, match="no input START"):
        FORMAT.finish(spec, FACTS)
