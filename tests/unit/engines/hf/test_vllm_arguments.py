"""A model's parameters as arguments of vLLM's engine: our words, its names, and what is refused."""

from dataclasses import replace

import pytest
from tests.harness.virtual_models import make_spec

from trivium.engines.hf.vllm.arguments import CODE, RENAMED, TAKEN, engine_arguments, without_effect
from trivium.engines.hf.vllm.opening import settle
from trivium.types.errors import ServeError
from trivium.types.running import Placement
from trivium.types.spec import Device, Isolation, Origin

FORMS = {
    "max_num_seqs": "int | None",
    "max_num_batched_tokens": "int | None",
    "max_model_len": "int",
    "kv_cache_memory_bytes": "int | None",
    "enable_prefix_caching": "bool | None",
    "quantization": "QuantizationMethods | str | None",
    "dtype": "ModelDType",
    "gpu_memory_utilization": "float",
    "tensor_parallel_size": "int",
    "enforce_eager": "bool",
    "load_format": "str | LoadFormats",
    "hf_overrides": "dict[str, Any] | Callable[[Any], Any]",
    "limit_mm_per_prompt": "dict[str, int | dict[str, int]]",
    "compilation_config": "CompilationConfig",
    "ignore_patterns": "str | list[str]",
    "allowed_media_domains": "list[str] | None",
    "trust_remote_code": "bool",
    "seed": "int",
    "worker_cls": "str",
    "tokenizer": "str | None",
    "max_lora_rank": "MaxLoRARanks",
}


def arguments(**parameters):
    return engine_arguments(replace(make_spec(), parameters=parameters), FORMS)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, {}),
        ({"slots": "16", "max_context": "4096"}, {"max_num_seqs": 16, "max_model_len": 4096}),
        ({"max_context": "4k"}, {"max_model_len": 4000}),
        ({"max_model_len": "4K"}, {"max_model_len": 4096}),
        ({"kv_bytes": "2G"}, {"kv_cache_memory_bytes": 2**31}),
        ({"dtype": "bf16"}, {"dtype": "bfloat16"}),
        ({"dtype": "float16"}, {"dtype": "float16"}),
        ({"quantize": "none"}, {}),
        ({"quantize": "awq"}, {"quantization": "awq"}),
        ({"prefix_cache": "false"}, {"enable_prefix_caching": False}),
        (
            {"enforce_eager": "true", "gpu_memory_utilization": "0.5"},
            {"enforce_eager": True, "gpu_memory_utilization": 0.5},
        ),
        ({"slots": "8", "max_num_seqs": "8"}, {"max_num_seqs": 8}),
        ({"hf_overrides": '{"rope_theta": 5}'}, {"hf_overrides": {"rope_theta": 5}}),
        ({"limit_mm_per_prompt": '{"image": 2}'}, {"limit_mm_per_prompt": {"image": 2}}),
        ({"allowed_media_domains": "a.org, b.org"}, {"allowed_media_domains": ["a.org", "b.org"]}),
        (
            {"trust_remote_code": "true", "worker_cls": "own.Worker"},
            {"trust_remote_code": True, "worker_cls": "own.Worker"},
        ),
        # what protocols read, and what the engine reads otherwise, is no argument
        ({"output_formatter": "json", "async_mode": "true", "generation_config": "none", "threads": "2"}, {}),
    ],
)
def test_parameters_become_arguments(parameters, expected):
    assert arguments(**parameters) == expected


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"max_modl_len": "5"}, "no argument of vLLM.*did you mean 'max_model_len'"),
        ({"enforce_eager": "perhaps"}, "'enforce_eager' is 'perhaps'; expected true or false"),
        ({"max_model_len": "many"}, "expected a whole number"),
        ({"max_model_len": "1.5"}, "expected a whole number"),
        ({"gpu_memory_utilization": "nan"}, "expected a number from 0"),
        ({"compilation_config": "{", "trust_remote_code": "true"}, "expected JSON"),
        ({"tokenizer": "/elsewhere"}, "cannot be chosen: .*beside the weights"),
        ({"worker_cls": "own.Worker"}, "may run code.*trust_remote_code=true"),
        ({"load_format": "pt"}, "may run code.*trust_remote_code=true"),
        ({"slots": "8", "max_num_seqs": "9"}, "'slots' and 'max_num_seqs' are both vLLM's max_num_seqs"),
        ({"quantize": "bitsandbytes8"}, "vLLM does not do; expected none, fp8"),
    ],
)
def test_what_cannot_be_is_refused_by_name(parameters, words):
    with pytest.raises(ServeError, match=words):
        arguments(**parameters)


def test_all_faults_are_named_at_once_with_their_places():
    origin = {"parameters[slots]": Origin("serving.properties", "option.max_rolling_batch_size", 3)}
    spec = replace(make_spec(), parameters={"slots": "x", "enforce_eager": "y"}, origin=origin)
    with pytest.raises(ServeError, match=r"'slots' \(serving.properties:3 .*'enforce_eager' is 'y'"):
        engine_arguments(spec, FORMS)


def test_what_has_no_effect_is_said():
    spec = replace(make_spec(), parameters={"threads": "2", "slots": "1"})
    (sentence,) = without_effect(spec)
    assert "'threads'" in sentence
    assert "VLLM_CPU_OMP_THREADS_BIND" in sentence


def test_no_name_means_two_things():
    assert not CODE & TAKEN.keys()
    assert not RENAMED.keys() & TAKEN.keys()


GPU = Placement("m_0", Isolation.PROCESS, Device.GPU, 1)


@pytest.mark.parametrize(
    ("before", "arguments", "seen"),
    [
        ({}, {}, "1"),
        ({}, {"tensor_parallel_size": 2}, "1,2"),
        ({"CUDA_VISIBLE_DEVICES": "4,5,6,7"}, {"tensor_parallel_size": 2}, "5,6"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-a, GPU-b"}, {}, "GPU-b"),
    ],
)
def test_an_instance_sees_its_own_gpus(before, arguments, seen):
    environment = dict(before)
    settle(environment, GPU, arguments)
    assert environment["CUDA_VISIBLE_DEVICES"] == seen


def test_nothing_is_reported_or_fetched_and_what_somebody_has_set_stays():
    environment = {"VLLM_LOGGING_LEVEL": "DEBUG"}
    settle(environment, Placement("m_0", Isolation.PROCESS), {})
    assert environment["VLLM_NO_USAGE_STATS"] == environment["HF_HUB_OFFLINE"] == "1"
    assert environment["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert "CUDA_VISIBLE_DEVICES" not in environment
