"""DJL's folders of language models for vLLM: who serves them, and every option as an argument of vLLM's."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.djl_folders import make
from tests.harness.llm_folders import checkpoint
from tests.harness.vllm_models import STAND_IN

from trivium.engines.hf.vllm.arguments import RENAMED, RETIRED, TAKEN, engine_arguments
from trivium.engines.hf.vllm.installed import arguments_in
from trivium.servers.djl.folder.repository import DjlFormat
from trivium.servers.djl.words.language_model_keys import LMI_OPTIONS
from trivium.servers.djl.words.vllm_options import INVERTED, VLLM_MODEL, argument_of
from trivium.settings.setting import Support
from trivium.types.findings import Severity
from trivium.types.spec import Defaults, Device

WITH_VLLM = Defaults(has_vllm=True)
ROLLING = "option.rolling_batch=vllm"


@pytest.fixture(scope="module")
def forms():
    return arguments_in(STAND_IN / "vllm")


def staged(folder: Path, *lines: str) -> Path:
    weights = checkpoint(folder / "weights")
    return make(folder, "m", "engine=Python", f"option.model_id={weights}", *lines)


def read(folder, defaults=WITH_VLLM):
    reading = DjlFormat().read(folder, defaults)
    if reading.specs:
        (spec,) = reading.specs
        return spec, spec.reports
    (model,) = reading.unreadable
    return None, model.findings


def served(folder, *lines, defaults=WITH_VLLM):
    spec, findings = read(staged(folder, *lines), defaults)
    assert spec is not None, findings
    return spec


@pytest.mark.parametrize(
    ("lines", "defaults", "engine"),
    [
        ([ROLLING], WITH_VLLM, "vllm"),
        ([ROLLING], Defaults(), "hf"),
        ([ROLLING], Defaults(has_vllm=True, text_engine="hf"), "vllm"),
        (["option.async_mode=true", "option.rolling_batch=disable"], WITH_VLLM, "vllm"),
        (["option.entryPoint=djl_python.lmi_vllm.vllm_async_service"], WITH_VLLM, "vllm"),
        (["option.entryPoint=djl_python.lmi_vllm.vllm_async_service"], Defaults(), "hf"),
        (["option.entryPoint=djl_python.huggingface", ROLLING], WITH_VLLM, "vllm"),
        (["option.rolling_batch=auto"], WITH_VLLM, "hf"),
        (["option.rolling_batch=auto"], Defaults(has_vllm=True, gpus=1), "vllm"),
        (["option.rolling_batch=auto"], Defaults(has_vllm=True, gpus=1, text_engine="hf"), "hf"),
        (["option.rolling_batch=auto"], Defaults(has_vllm=True, text_engine="vllm"), "vllm"),
        (["option.rolling_batch=trtllm"], Defaults(has_vllm=True, gpus=1), "vllm"),
        (["option.rolling_batch=lmi-dist"], WITH_VLLM, "hf"),
        ([], WITH_VLLM, "hf"),
        ([], Defaults(has_vllm=True, gpus=2), "vllm"),
    ],
)
def test_who_serves_a_folder(tmp_path, lines, defaults, engine):
    spec = served(tmp_path, *lines, defaults=defaults)
    assert spec.engine == engine
    said = [str(one) for one in spec.reports if "serves the model" in one.found]
    assert all(f"the engine {engine} serves" in one for one in said)
    assert not any("on the CPU or one GPU" in one for one in said) or engine == "hf"


def test_batches_that_are_static_stay_so(tmp_path):
    assert served(tmp_path, "option.rolling_batch=disable", "batch_size=4").engine == "hf-tasks"


def test_the_table_of_lmi_becomes_arguments(tmp_path, forms):
    spec = served(
        tmp_path,
        ROLLING,
        "option.max_rolling_batch_size=64",
        "option.max_rolling_batch_prefill_tokens=2048",
        "option.dtype=bf16",
        "option.max_model_len=8192",
        "option.quantize=awq",
        "option.tokens_per_block=32",
        "option.kv_cache_free_gpu_mem_fraction=0.8",
        "option.use_custom_all_reduce=false",
        "option.enable_cuda_graph=false",
        "option.tensor_parallel_degree=2",
        "option.pipeline_parallel_degree=3",
        "option.cpu_offload_gb_per_gpu=4",
        "option.enable_prefix_caching=false",
        "option.enforce_eager=true",
        "option.enable_chunked_prefill=true",
        "option.max_loras=3",
        "option.generation_config=vllm",
        "option.disable_log_stats=true",
    )
    assert engine_arguments(spec, forms) == {
        "max_num_seqs": 64,
        "max_num_batched_tokens": 2048,
        "dtype": "bfloat16",
        "max_model_len": 8192,
        "quantization": "awq",
        "block_size": 32,
        "gpu_memory_utilization": 0.8,
        "disable_custom_all_reduce": True,
        "enforce_eager": True,
        "tensor_parallel_size": 2,
        "pipeline_parallel_size": 3,
        "cpu_offload_gb": 4.0,
        "enable_prefix_caching": False,
        "enable_chunked_prefill": True,
    }
    assert spec.parameters["generation_config"] == "none"
    assert "option.quantize" in str(spec.origin["parameters[quantization]"])


def test_an_argument_that_lmi_does_not_know_is_passed_on(tmp_path, forms):
    spec = served(tmp_path, ROLLING, "option.kv_cache_metrics=true", "option.disable_cascade_attn=true")
    assert engine_arguments(spec, forms) == {"kv_cache_metrics": True, "disable_cascade_attn": True}
    assert not [one for one in spec.reports if "kv_cache_metrics" in str(one)]


@pytest.mark.parametrize("key", sorted(key for key in VLLM_MODEL if argument_of(key) or key in INVERTED))
def test_every_option_that_is_passed_on_has_an_argument(forms, key):
    name = argument_of(key) or INVERTED[key]
    assert name in forms or name in RETIRED, "vLLM 0.32 has it, or it is said to be gone"
    assert name not in TAKEN
    assert VLLM_MODEL[key].support is Support.YES


def test_every_option_of_vllms_is_passed_on_read_or_has_a_fate(forms):
    for key, option in LMI_OPTIONS.items():
        name = key.removeprefix("option.")
        if name in forms and not argument_of(key) and option.setting.support is not Support.YES:
            assert name in TAKEN or option.setting.how, key


def test_the_degree_max_is_every_gpu_and_an_instance_gets_them_all(tmp_path, forms):
    lines = (ROLLING, "option.tensor_parallel_degree=max")
    spec = served(tmp_path, *lines, defaults=replace(WITH_VLLM, gpus=4))
    assert engine_arguments(spec, forms)["tensor_parallel_size"] == 4
    (group,) = spec.groups
    assert (group.device, group.device_ids, group.span) == (Device.GPU, (0, 1, 2, 3), 4)
    spec, _ = read(staged(tmp_path / "cpu", *lines))
    assert spec.parameters["tensor_parallel_size"] == "1"


def test_two_gpus_each_make_two_instances_of_four(tmp_path):
    lines = (ROLLING, "option.tensor_parallel_degree=2")
    spec = served(tmp_path, *lines, defaults=replace(WITH_VLLM, gpus=4))
    assert [group.device_ids for group in spec.groups] == [(0, 1), (2, 3)]


@pytest.mark.parametrize(
    ("lines", "gpus", "words"),
    [
        (["option.tensor_parallel_degree=4"], 2, "GPU devices are not enough to run 4 partitions"),
        (["option.quantize=awq", "option.quantization=gptq"], 0, "both are vLLM's quantization"),
        (
            ["option.tokenizer=/elsewhere"],
            0,
            "option.tokenizer=/elsewhere is not served with the engine vllm",
        ),
        (["option.tool_call_parser=hermes"], 0, "is not served with the engine vllm"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, lines, gpus, words):
    spec, findings = read(staged(tmp_path, ROLLING, *lines), replace(WITH_VLLM, gpus=gpus))
    assert spec is None
    assert any(words in str(one) for one in findings if one.severity is Severity.ERROR), findings


def test_a_misspelt_option_is_refused_by_the_engine_with_the_near_name(tmp_path, forms):
    spec = served(tmp_path, ROLLING, "option.gpu_memory_utilisation=0.5")
    with pytest.raises(Exception, match="did you mean 'gpu_memory_utilization'"):
        engine_arguments(spec, forms)


def test_our_words_are_no_arguments_of_vllms_with_another_meaning(forms):
    assert not {name for name in RENAMED if name in forms and RENAMED[name].name != name}
