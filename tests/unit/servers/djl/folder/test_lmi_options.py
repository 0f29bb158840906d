"""Each option of LMI's table and each of its values in a generated folder: it loads, or is refused, as the row says.

The defaults of the releases, and what people posted, are files of our own after LMI's user guides and trackers.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.djl_folders import make
from tests.harness.llm_folders import checkpoint

from trivium.servers.djl.folder.repository import DjlFormat
from trivium.servers.djl.words.engines import PYTHON, row_of
from trivium.servers.djl.words.language_model_keys import LMI_OPTIONS
from trivium.servers.djl.words.layers import from_environment
from trivium.servers.djl.words.lmi_option import LmiOption
from trivium.servers.djl.words.lmi_runtimes import HANDLERS, ROLLING_BATCHES
from trivium.settings.kinds import SWITCH, Number, OneOf, Whole
from trivium.settings.setting import Support
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Defaults, ModelSpec

SHEET = (
    "adapters amp awq_calib_size awq_format baichuan_model_version batch_scheduler_policy bedrock_compat "
    "chat_template chat_template_content_format chatglm_model_version checkpoint cluster_size "
    "compiled_graph_path context_length_estimate cpu_offload_gb_per_gpu decoding_strategy "
    "deepspeed_config_path default_accept device_map disable_flash_attn draft_model_id dtype "
    "enable_auto_tool_choice enable_cuda_graph enable_kv_cache_reuse enable_lora "
    "enable_mixed_precision_accumulation enable_reasoning enable_streaming enable_trt_overlap "
    "enforce_eager gpt_model_version gpu_memory_utilization group_query_attention height input_formatter "
    "is_peft_model kv_cache_free_gpu_mem_fraction load_format load_in_4bit load_in_8bit load_split_model "
    "logits_processors lora_extra_vocab_size low_cpu_mem_usage max_cpu_loras max_input_len max_lora_rank "
    "max_loras max_model_len max_num_batched_tokens max_num_sequences max_output_len "
    "max_rolling_batch_prefill_tokens max_sparsity max_splits max_tokens model_dir model_id "
    "multi_block_mode multi_gpu multi_query_mode n_positions neuron_optimize_level normalize "
    "num_images_per_prompt output_formatter paged_attention quantization quantize reasoning_parser "
    "return_tuple revision rolling_batch rotary_base rotary_dim rotary_scaling_factor rotary_scaling_type "
    "save_mp_checkpoint_path smoothquant_alpha smoothquant_per_channel smoothquant_per_token spec_length "
    "stop_sequence task tensor_parallel_degree tgi_compat tokens_per_block tool_call_parser "
    "training_mp_size triangular_masking trust_remote_code unroll use_custom_all_reduce use_fused_mlp "
    "waiting_steps width"
)
"""Options of section 11.1 of the sheet, and of the table that its users know."""

AUTO = "option.rolling_batch=auto"
TOGETHER = {
    "option.max_input_len": "option.max_output_len=7",
    "option.max_output_len": "option.max_input_len=7",
    "option.rolling_batch": "option.dtype=auto",
}
"""Options that mean something beside another alone -> that other one."""


def read(
    folder: Path, variables: dict[str, str] | None = None
) -> tuple[ModelSpec | None, tuple[Finding, ...]]:
    reading = DjlFormat(from_environment(variables or {})).read(folder, Defaults())
    if reading.specs:
        (spec,) = reading.specs
        return spec, spec.reports
    (broken,) = reading.unreadable
    return None, broken.findings


def served(folder: Path, *settings: str) -> tuple[ModelSpec | None, tuple[Finding, ...]]:
    return read(checkpoint(make(folder, "m", *settings)))


def values(key: str, option: LmiOption) -> Iterator[str]:
    """Values of an option: all words of one that has words, the bounds of a number, a text."""
    kind = option.setting.kind
    match kind:
        case OneOf():
            yield from kind.words
        case Whole():
            yield from (str(max(kind.least, 2)), *kind.words, option.setting.default or "9")
        case Number():
            yield from ("0.5", option.setting.default or "1")
        case _ if kind is SWITCH:
            yield from ("true", "false", "True")
        case _:
            yield option.setting.default or "x"
            if option.setting.support is not Support.YES:
                yield "other"
            yield from (word for word in option.setting.harmless if isinstance(word, str))


def cases() -> Iterator[tuple[str, str]]:
    for key, option in LMI_OPTIONS.items():
        own = {"option.model_id": ["."], "option.logits_processors": ["a=b.py:C"]}.get(key)
        yield from ((key, value) for value in dict.fromkeys(own or values(key, option)))


CASES = list(cases())
OF_THE_CLASS = ("option.task", "task")
"""What the class in config.json does, or does not."""


@pytest.mark.parametrize(("key", "value"), CASES, ids=lambda text: text[:40])
def test_each_value_of_each_option_is_served_or_refused_as_its_row_says(
    tmp_path: Path, key: str, value: str
) -> None:
    option = LMI_OPTIONS[key]
    lines = [TOGETHER.get(key, AUTO), f"{key}={value}"]
    spec, findings = served(tmp_path, *lines)
    fate = option.fate(value)
    assert (spec is None) is (fate is Support.REFUSED), [str(each) for each in findings]
    place = "architectures" if key in OF_THE_CLASS else key
    told = [each for each in findings if each.key == place]
    if fate is Support.YES:
        assert not any(each.severity is Severity.ERROR for each in findings)
        return
    (finding,) = told
    assert finding.line == 2
    if fate is Support.REFUSED:
        assert finding.severity is Severity.ERROR
        assert finding.hint
    else:
        assert finding.severity is Severity.NOTICE
        assert option.setting.how in finding.found
        assert not option.removed or option.removed in finding.found


def test_there_are_as_many_as_the_table_has() -> None:
    assert len(CASES) > 2 * len(LMI_OPTIONS) > 400


def test_every_option_of_the_sheet_has_a_row() -> None:
    assert {f"option.{name}" for name in SHEET.split()} <= LMI_OPTIONS.keys()


GONE = sorted(
    key for key, one in LMI_OPTIONS.items() if one.removed and one.setting.support is not Support.YES
)


@pytest.mark.parametrize("key", GONE)
def test_what_upstream_dropped_says_since_when_and_what_to_write(key: str) -> None:
    how = LMI_OPTIONS[key].setting.how
    assert how.startswith(f"removed upstream with {LMI_OPTIONS[key].runtimes[-1].name} in ")
    assert "leave it out" in how


@pytest.mark.parametrize("key", sorted(LMI_OPTIONS))
def test_with_a_handler_every_option_has_a_fate(key: str) -> None:
    assert row_of(PYTHON, key).support in Support


NUMBERS = sorted(
    key
    for key, one in LMI_OPTIONS.items()
    if one.setting.support is Support.YES and isinstance(one.setting.kind, Whole)
)
WORDS = sorted(
    key
    for key, one in LMI_OPTIONS.items()
    if one.setting.support is Support.YES
    and isinstance(one.setting.kind, OneOf)
    and key.startswith("option.")
    and key != "option.entryPoint"
)


@pytest.mark.parametrize("key", NUMBERS)
def test_a_number_that_is_none_is_named_with_its_line(tmp_path: Path, key: str) -> None:
    spec, findings = served(tmp_path, AUTO, f"{key}=4O96")
    assert spec is None
    (finding,) = [each for each in findings if each.severity is Severity.ERROR]
    assert (finding.line, finding.key, finding.hint) == (2, key, "Write digits alone.")


@pytest.mark.parametrize("key", WORDS)
def test_a_word_that_is_none_is_named_with_its_line_and_the_words(tmp_path: Path, key: str) -> None:
    lines = [f"{key}=zzz"] if key == "option.rolling_batch" else [AUTO, f"{key}=zzz"]
    spec, findings = served(tmp_path, *lines)
    assert spec is None
    (finding,) = [each for each in findings if each.severity is Severity.ERROR]
    assert (finding.line, finding.key) == (len(lines), key)
    assert finding.hint


@pytest.mark.parametrize(
    "key", sorted(key for key in LMI_OPTIONS if key.startswith("option.") and len(key) > 22)
)
def test_a_misspelt_option_is_named_with_its_line_and_the_right_one(tmp_path: Path, key: str) -> None:
    slip = key[:-3] + key[-2:]
    spec, findings = served(tmp_path, AUTO, f"{slip}=1")
    assert spec is not None
    (finding,) = [each for each in findings if each.key == slip]
    assert (finding.line, finding.severity) == (2, Severity.NOTICE)
    assert "Did you mean option." in finding.hint


# -- what containers and people write ------------------------------------------------------------------------

VLLM_SERVICE = "option.entryPoint=djl_python.lmi_vllm.vllm_async_service"
TRT_SERVICE = "option.entryPoint=djl_python.lmi_trtllm.trtllm_async_service"
SIZES = ("option.max_rolling_batch_size=32", "option.pipeline_parallel_degree=1")
DEFAULTS = {
    "LMI 16, vLLM": (AUTO, "option.entryPoint=djl_python.huggingface", *SIZES),
    "LMI 16, vLLM, async": ("option.rolling_batch=disable", "option.async_mode=true", VLLM_SERVICE, *SIZES),
    "LMI 17 to 27, vLLM": ("option.rolling_batch=disable", "option.async_mode=true", VLLM_SERVICE, *SIZES),
    "LMI 17 to 27, vLLM, rolling": (
        "option.rolling_batch=vllm",
        "option.entryPoint=djl_python.huggingface",
        "option.max_rolling_batch_size=256",
    ),
    "LMI 16, TensorRT-LLM": (
        "option.rolling_batch=trtllm",
        "option.mpi_mode=true",
        "option.entryPoint=djl_python.tensorrt_llm",
        "option.max_num_tokens=16384",
        "option.max_rolling_batch_size=256",
    ),
    "LMI 17 to 20, TensorRT-LLM": (
        "option.rolling_batch=disable",
        "option.async_mode=true",
        TRT_SERVICE,
        *SIZES,
    ),
    "the guide's least": ("option.tensor_parallel_degree=max",),
}
"""What the containers of a release set for a causal language model, together."""


@pytest.mark.parametrize("release", DEFAULTS)
def test_the_defaults_of_every_release_load(tmp_path: Path, release: str) -> None:
    spec, findings = served(tmp_path, "engine=Python", *DEFAULTS[release])
    assert spec is not None, [str(each) for each in findings]
    assert spec.engine == "hf"
    runtime = [each for each in findings if "serves the model" in each.found or "OpenAI" in each.found]
    assert len(runtime) <= 1, [str(each) for each in runtime]
    is_async = "async" in " ".join(DEFAULTS[release]) or release == "the guide's least"
    assert spec.parameters.get("async_mode", "") == ("true" if is_async else "")


POSTED = {
    "a tracker, October 2023: codegen by LMI-Dist": (
        (
            "engine=MPI",
            "option.rolling_batch=lmi-dist",
            "option.max_rolling_batch_size=8",
            "option.max_rolling_batch_prefill_tokens=1088",
            "option.paged_attention=false",
            "option.model_loading_timeout = 3600",
            "option.entryPoint=djl_python.deepspeed",
            "option.tensor_parallel_degree=1",
            "option.task=text-generation",
            "option.dtype=fp16",
            "gpu.minWorkers=1",
            "gpu.maxWorkers=1",
            "log_model_metric=true",
            "metrics_aggregation=10",
        ),
        {},
        {"slots": "8", "prefill_chunk": "1088", "dtype": "fp16"},
        ("DeepSpeed was removed upstream", "removed upstream with LMI-Dist"),
    ),
    "a notebook for LMI 16: gpt-oss by variables alone": (
        (),
        {
            "OPTION_ASYNC_MODE": "true",
            "OPTION_MAX_ROLLING_BATCH_SIZE": "8",
            "OPTION_MAX_MODEL_LEN": "128",
            "OPTION_ROLLING_BATCH": "disable",
            "OPTION_ENTRYPOINT": "djl_python.lmi_vllm.vllm_async_service",
            "OPTION_TENSOR_PARALLEL_DEGREE": "max",
        },
        {"async_mode": "true", "slots": "8", "max_context": "128"},
        ("in place of vLLM",),
    ),
    "a notebook: Mixtral by LMI-Dist and variables": (
        ("option.max_model_len=64",),
        {
            "TENSOR_PARALLEL_DEGREE": "4",
            "OPTION_ROLLING_BATCH": "lmi-dist",
            "OPTION_MAX_MODEL_LEN": "25456",
        },
        {"max_context": "64"},
        ("LMI-Dist was removed upstream", "runs on one device"),
    ),
    "a notebook: Falcon, served by the scheduler": (
        (
            "engine=Python",
            "option.tensor_parallel_degree=1",
            "option.rolling_batch=scheduler",
            "option.decoding_strategy=sample",
            "option.max_sparsity=0.5",
        ),
        {},
        {},
        ("the sequence scheduler was removed", "are not padded", "by do_sample"),
    ),
}


@pytest.mark.parametrize("post", POSTED)
def test_what_people_posted_is_served(tmp_path: Path, post: str) -> None:
    settings, variables, parameters, words = POSTED[post]
    spec, findings = read(checkpoint(make(tmp_path, "m", *settings)), variables)
    assert spec is not None, [str(each) for each in findings]
    assert spec.parameters == parameters
    for word in words:
        assert sum(word in each.found for each in findings) == 1, [str(each) for each in findings]


def test_every_word_for_a_runtime_is_a_value_of_its_option() -> None:
    assert set(ROLLING_BATCHES) < set(LMI_OPTIONS["option.rolling_batch"].setting.kind.words)  # type: ignore[attr-defined]
    assert tuple(HANDLERS) == LMI_OPTIONS["option.entryPoint"].setting.kind.words  # type: ignore[attr-defined]
