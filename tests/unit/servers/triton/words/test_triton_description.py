"""The configuration as it is printed: the original's sample, key by key."""

from dataclasses import replace
from pathlib import Path

import msgspec

from trivium.servers.triton.words.config_text import ConfigText
from trivium.servers.triton.words.description import DIALECT, Document, config_json, platform_of
from trivium.servers.triton.words.reader import read_config
from trivium.types.datatype import DataType
from trivium.types.spec import Batching, Device, Dynamic, Foreign, InstanceGroup, ModelSpec, TensorSpec

SPEC = ModelSpec("simple", "1", Path("simple"), "python", "model.py")

SAMPLE = """
name: "simple" backend: "python" version_policy { latest { num_versions: 1 } } max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_INT32 dims: 16 }
output { name: "OUTPUT0" data_type: TYPE_INT32 dims: 16 }
optimization { input_pinned_memory { enable: true } output_pinned_memory { enable: true } }
dynamic_batching { preferred_batch_size: [ 4, 6, 8 ] max_queue_delay_microseconds: 100
  default_queue_policy { default_timeout_microseconds: 300000 allow_timeout_override: true max_queue_size: 2 } }
instance_group { name: "simple_0" kind: KIND_CPU count: 1 }
default_model_filename: "model.py" parameters { key: "delay" value { string_value: "0.05" } }
model_transaction_policy { decoupled: true } response_cache { enable: true }
"""

PRINTED = (
    '{"name":"simple","platform":"","backend":"python","runtime":"","version_policy":{"latest":{"num_versions":1}},'
    '"max_batch_size":8,"input":[{"name":"INPUT0","data_type":"TYPE_INT32","format":"FORMAT_NONE","dims":[16],'
    '"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],'
    '"output":[{"name":"OUTPUT0","data_type":"TYPE_INT32","dims":[16],"label_filename":"","is_shape_tensor":false,'
    '"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],'
    '"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},'
    '"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},'
    '"dynamic_batching":{"preferred_batch_size":[4,6,8],"max_queue_delay_microseconds":100,'
    '"preserve_ordering":false,"priority_levels":0,"default_priority_level":0,'
    '"default_queue_policy":{"timeout_action":"REJECT","default_timeout_microseconds":300000,'
    '"allow_timeout_override":true,"max_queue_size":2},"priority_queue_policy":{}},'
    '"instance_group":[{"name":"simple_0","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],'
    '"passive":false,"host_policy":""}],"default_model_filename":"model.py","cc_model_filenames":{},"metric_tags":{},'
    '"parameters":{"delay":{"string_value":"0.05"}},"model_warmup":[],'
    '"model_transaction_policy":{"decoupled":true},"response_cache":{"enable":true}}'
)


def of_text(text: str) -> ModelSpec:
    read: ConfigText = read_config("c", text.encode())
    assert not read.has_errors
    return replace(SPEC, foreign=Foreign(DIALECT, Document(read, 4)))


def test_prints_the_sample_to_the_byte() -> None:
    assert config_json(of_text(SAMPLE)).decode() == PRINTED


def test_maps_with_numbers_and_wide_integers() -> None:
    text = (
        "dynamic_batching { priority_queue_policy { key: 18446744073709551615 value { } } }"
        " model_warmup { inputs { key: 'x' value { dims: 9223372036854775807 zero_data: false } } }"
    )
    printed = msgspec.json.decode(config_json(of_text(text)))
    assert list(printed["dynamic_batching"]["priority_queue_policy"]) == ["18446744073709551615"]
    warmed = printed["model_warmup"][0]["inputs"]["x"]
    assert warmed == {"data_type": "TYPE_INVALID", "dims": [9223372036854775807], "zero_data": False}


def test_platform_falls_back_to_the_backend() -> None:
    assert platform_of(of_text(SAMPLE)) == "python"
    assert platform_of(of_text('platform: "onnxruntime_onnx" backend: "onnxruntime"')) == "onnxruntime_onnx"


def test_a_model_of_another_format() -> None:
    spec = ModelSpec(
        name="bare",
        version="1",
        root=Path("."),
        engine="onnx",
        entry="bare.onnx",
        inputs=(TensorSpec("x", DataType.BYTES, (-1, 3)),),
        outputs=(TensorSpec("y", DataType.BF16, ()),),
        groups=(InstanceGroup("bare", 4, 4, device=Device.GPU, device_ids=(0, 1)),),
        parameters={"a": "b"},
    )
    printed = msgspec.json.decode(config_json(spec))
    assert platform_of(spec) == printed["platform"] == "onnxruntime_onnx"
    assert (printed["backend"], printed["max_batch_size"]) == ("onnxruntime", 0)
    assert (printed["input"][0]["data_type"], printed["input"][0]["dims"]) == ("TYPE_STRING", [-1, 3])
    assert printed["output"][0]["data_type"] == "TYPE_BF16"
    assert (printed["instance_group"][0]["count"], printed["instance_group"][0]["gpus"]) == (2, [0, 1])
    assert printed["parameters"] == {"a": {"string_value": "b"}}
    assert "dynamic_batching" not in printed
    merging = replace(
        spec, engine="other", batching=Batching(True, 8, True), scheduling=Dynamic(0.0002, (8,))
    )
    printed = msgspec.json.decode(config_json(merging))
    assert platform_of(merging) == "other"
    assert printed["max_batch_size"] == 8
    assert printed["dynamic_batching"]["max_queue_delay_microseconds"] == 200
