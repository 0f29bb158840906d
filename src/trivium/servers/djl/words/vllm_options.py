"""Options of LMI as vLLM's arguments, for models that vLLM serves here: under which name each is passed on.

LMI passes every argument of vLLM's engine through as `option.NAME`; those that this server decides itself keep the fate
that they have with the engine of our own. Source: spec sheet `llm`, "Option map" and "LMI today". Pure.
"""

from collections.abc import Mapping

from trivium.servers.djl.words.language_model_keys import LANGUAGE_MODEL, LMI_OPTIONS
from trivium.servers.djl.words.lmi_option import PREFIX
from trivium.servers.djl.words.lmi_runtimes import LMI_DIST, VLLM
from trivium.settings.setting import Setting, Support

TENSOR = "option.tensor_parallel_degree"

RENAMED: Mapping[str, str] = {
    TENSOR: "tensor_parallel_size",
    "option.pipeline_parallel_degree": "pipeline_parallel_size",
    "option.quantize": "quantization",
    "option.quantization": "quantization",
    "option.tokens_per_block": "block_size",
    "option.kv_cache_free_gpu_mem_fraction": "gpu_memory_utilization",
    "option.cpu_offload_gb_per_gpu": "cpu_offload_gb",
}
"""Option -> the argument that has another name."""

INVERTED: Mapping[str, str] = {
    "option.use_custom_all_reduce": "disable_custom_all_reduce",
    "option.enable_cuda_graph": "enforce_eager",
}
"""Switch of a runtime that is gone -> the argument that says the opposite."""

_READ_HERE = (
    *("task", "entryPoint", "model_id", "revision", "trust_remote_code", "async_mode", "rolling_batch"),
    *("max_rolling_batch_size", "max_num_sequences", "max_num_seqs", "max_rolling_batch_prefill_tokens"),
    *("max_num_batched_tokens", "max_model_len", "n_positions", "max_tokens", "dtype", "output_formatter"),
    *("enable_lora", "max_loras", "max_cpu_loras", "max_lora_rank", "enable_prefix_caching"),
    *("generation_config", "served_model_name", "tgi_compat", "predict_timeout", "model_loading_timeout"),
)
_DECIDED_HERE = (
    *("enable_auto_tool_choice", "enable_reasoning", "tool_call_parser", "reasoning_parser", "chat_template"),
    *("chat_template_content_format", "lmcache_auto_config", "lmcache_config_file", "normalize"),
    *("image_placeholder_token", "tokenizer", "tokenizer_mode", "tokenizer_revision", "skip_tokenizer_init"),
    *("runner", "convert", "pooler_config", "override_pooler_config", "code_revision", "hf_token"),
    *("download_dir", "hf_config_path", "rope_scaling", "rope_theta", "override_generation_config"),
    *("guided_decoding_backend", "structured_outputs_config", "stream_interval", "disable_log_stats"),
    *("disable_log_requests", "enable_log_requests", "max_log_len", "use_tqdm_on_load", "enable_sleep_mode"),
    *("draft_model_id", "spec_length", "speculative_model", "num_speculative_tokens", "draft_model_tp_size"),
    *("speculative_draft_model", "speculative_length", "record_acceptance_rate", "lora_extra_vocab_size"),
    *("long_lora_scaling_factors", "enable_lora_bias", "logits_processors", "paged_attention"),
)
_OURS = frozenset(PREFIX + name for name in (*_READ_HERE, *_DECIDED_HERE))
_RUNTIMES = {VLLM.name, LMI_DIST.name}


def argument_of(key: str) -> str:
    """Return the argument of vLLM's that an option is; empty for one that is none, or is read or decided here. What LMI
    does not know may be an argument of a newer vLLM.
    """
    if key in RENAMED:
        return RENAMED[key]
    if not key.startswith(PREFIX) or key in _OURS:
        return ""
    option = LMI_OPTIONS.get(key)
    is_theirs = option is None or any(runtime.name in _RUNTIMES for runtime in option.runtimes)
    is_known_elsewhere = option is None and key in LANGUAGE_MODEL
    return key.removeprefix(PREFIX) if is_theirs and not is_known_elsewhere else ""


def _passed_on(key: str, setting: Setting) -> Setting:
    name = argument_of(key) or INVERTED[key]
    how = f"vLLM's `{name}`" + (", the other way round" if key in INVERTED else "")
    return Setting(key, setting.kind, setting.default, support=Support.YES, how=how)


VLLM_MODEL = {
    **LANGUAGE_MODEL,
    **{
        key: _passed_on(key, row)
        for key, row in LANGUAGE_MODEL.items()
        if argument_of(key) or key in INVERTED
    },
}
"""Keys of folders whose language model vLLM serves."""
