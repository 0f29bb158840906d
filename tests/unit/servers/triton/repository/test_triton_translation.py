"""What becomes of each key of a configuration, and where each field says it comes from."""

from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from tests.harness.triton_folders import TENSORS, make, one

from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.datatype import DataType
from trivium.types.spec import (
    All,
    Batching,
    Defaults,
    Device,
    Dynamic,
    InstanceGroup,
    Latest,
    OnExpiry,
    Origin,
    QueuePolicy,
    Specific,
    TensorSpec,
)
from trivium.types.warmups import SyntheticFill, Warmup, WarmupInput

WHOLE = """\
name: "m"
platform: "onnxruntime_onnx"
version_policy { specific { versions: 1 } }
max_batch_size: 16
input { name: "x" data_type: TYPE_FP32 dims: [ 3, -1 ] optional: true }
output { name: "y" data_type: TYPE_STRING dims: 2 label_filename: "labels.txt" }
dynamic_batching {
  max_queue_delay_microseconds: 200
  priority_levels: 2
  default_priority_level: 2
  default_queue_policy { allow_timeout_override: true max_queue_size: 9 }
  priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 5000 } }
}
instance_group [ { count: 3 kind: KIND_CPU }, { name: "g" kind: KIND_CPU } ]
parameters { key: "intra_op_thread_count" value { string_value: "2" } }
optimization { graph { level: -1 } }
model_warmup { name: "w" batch_size: 4
  inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 3, 8 ] input_data_file: "x.bin" } } }
"""


def test_every_key_arrives(tmp_path: Path) -> None:
    folder = make(tmp_path, "m", WHOLE, "1/model.onnx", "warmup/x.bin")
    (folder / "labels.txt").write_text("cat\ndog\n")
    spec = one(folder, Defaults(queue_items=77))
    assert spec.inputs == (TensorSpec("x", DataType.FP32, (3, -1), optional=True),)
    assert spec.outputs == (TensorSpec("y", DataType.BYTES, (2,), labels=("cat", "dog")),)
    assert spec.batching == Batching(True, 16, True)
    assert spec.scheduling == Dynamic(
        max_delay=0.0002,
        preferred_rows=(16,),
        levels=2,
        default_level=2,
        default_policy=QueuePolicy(may_shorten=True, max_items=9),
        level_policies={1: QueuePolicy(OnExpiry.DEMOTE, timeout=0.005)},
    )
    assert spec.groups == (InstanceGroup("m_0", 3, 3), InstanceGroup("g", 2, 2))
    assert spec.version_policy == Specific(frozenset({"1"}))
    assert spec.parameters == {"intra_op_thread_count": "2", "graph_level": "-1"}
    data = WarmupInput("x", DataType.FP32, (3, 8), SyntheticFill.FILE, folder / "warmup" / "x.bin")
    assert spec.warmups == (Warmup("w", 4, 1, (data,)),)
    assert spec.limits.queue_items == 77
    assert spec.reports == ()
    config = str(folder / "config.pbtxt")
    assert spec.origin["inputs[0].dims"] == Origin(config, "input[0].dims", 5)
    assert spec.origin["groups[0].minimum"] == Origin(config, "instance_group[0].count", 14)
    assert spec.origin["parameters[graph_level]"] == Origin(config, "optimization.graph.level", 16)
    assert spec.origin["entry"] == Origin("default of the backend onnxruntime", "")
    assert "Triton itself sets none" in spec.origin["limits.queue_items"].file
    assert str(spec.origin["limits.run_deadline"]).startswith("--run-timeout of the server")


@pytest.mark.parametrize(("own", "server", "seconds"), [
    ("30", 300.0, 30.0), ("0.5", None, 0.5), ("0", 300.0, None), (None, 300.0, 300.0), (None, None, None),
])  # fmt: skip
def test_a_model_may_say_how_long_a_run_may_take(tmp_path: Path, own, server, seconds) -> None:
    text = 'backend: "onnxruntime"'
    if own is not None:
        text += f'\nparameters {{ key: "TRIVIUM_RUN_TIMEOUT" value {{ string_value: "{own}" }} }}'
    spec = one(make(tmp_path, "m", text, "1/model.onnx"), Defaults(run_deadline=server))
    assert spec.limits.run_deadline == seconds
    assert spec.parameters == {}
    assert spec.origin["limits.run_deadline"].line == (None if own is None else 2)


@pytest.mark.parametrize("own", ["", "soon", "-1", "nan", "inf"])
def test_a_run_timeout_that_cannot_be_is_named_with_its_line(tmp_path: Path, own) -> None:
    text = f'backend: "onnxruntime"\nparameters {{ key: "TRIVIUM_RUN_TIMEOUT" value {{ string_value: "{own}" }} }}'
    (fault,) = FORMAT.read(make(tmp_path, "m", text, "1/model.onnx"), Defaults()).unreadable[0].findings
    assert (fault.line, fault.found) == (2, repr(own))
    assert "seconds that a run may take" in fault.expected


ABOUT_THE_READING = {
    *(
        "details",
        "foreign",
        "functions",
        "handler",
        "in_turns",
        "is_versioned",
        "origin",
        "reports",
        "shown_root",
    ),
    *("standing", "translator", "aliases", "calls", "context"),
}


def test_every_field_has_an_origin(tmp_path: Path) -> None:
    folder = make(tmp_path, "m", WHOLE, "1/model.onnx", "warmup/x.bin", "labels.txt")
    spec = one(folder)
    described = {name.partition(".")[0].partition("[")[0] for name in spec.origin}
    assert {field.name for field in fields(spec)} - described == ABOUT_THE_READING
    for name in ("batching", "scheduling"):
        value = getattr(spec, name)
        assert is_dataclass(value)
        assert {f"{name}.{field.name}" for field in fields(value)} <= spec.origin.keys()


def test_without_a_batch_dimension_nothing_merges(tmp_path: Path) -> None:
    spec = one(make(tmp_path, "m", "dynamic_batching { }" + TENSORS, "1/model.onnx"))
    assert (spec.batching, spec.scheduling.preferred_rows) == (Batching(), ())


@pytest.mark.parametrize(
    ("config", "gpus", "groups"),
    [
        ("", 0, (InstanceGroup("m", 2, 2),)),
        ("", 2, (InstanceGroup("m", 2, 2, device=Device.GPU, device_ids=(0, 1)),)),
        (
            "instance_group { kind: KIND_GPU gpus: 1 count: 3 }",
            2,
            (InstanceGroup("m_0", 3, 3, 60.0, Device.GPU, (1,)),),
        ),
        ("instance_group { kind: KIND_MODEL }", 2, (InstanceGroup("m_0"),)),
        ("instance_group { kind: KIND_CPU count: 1 }", 2, (InstanceGroup("m_0"),)),
    ],
)
def test_instance_groups(tmp_path: Path, config: str, gpus: int, groups: tuple[InstanceGroup, ...]) -> None:
    spec = one(make(tmp_path, "m", config + TENSORS, "1/model.onnx"), Defaults(gpus=gpus))
    assert spec.groups == groups


@pytest.mark.parametrize(
    ("config", "policy"),
    [
        ("", Latest(1)),
        ("version_policy { latest { num_versions: 3 } }", Latest(3)),
        ("version_policy { all { } }", All()),
    ],
)
def test_version_policy(tmp_path: Path, config: str, policy: object) -> None:
    assert one(make(tmp_path, "m", config + TENSORS, "1/model.onnx")).version_policy == policy
