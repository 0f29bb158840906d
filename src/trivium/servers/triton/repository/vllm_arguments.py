"""Arguments of vLLM in a model.json as texts, and what they mean where the engine of our own serves the model. Pure."""

import json
from collections.abc import Mapping
from pathlib import Path

from trivium.types.findings import Finding, Severity
from trivium.types.text_engines import TextEngine

_HANDLED = ("model", "revision", "enable_lora", "disable_log_requests", "disable_log_stats", "tokenizer_mode")
"""Arguments that are read elsewhere, or wish for what is so anyway."""

_AT_HF: Mapping[str, str] = {
    "max_num_seqs": "slots",
    "max_num_batched_tokens": "prefill_chunk",
    "max_model_len": "max_context",
    "kv_cache_memory_bytes": "kv_bytes",
    "enable_prefix_caching": "prefix_cache",
    "dtype": "dtype",
    "trust_remote_code": "trust_remote_code",
    "generation_config": "generation_config",
    "max_lora_rank": "max_lora_rank",
    "max_loras": "max_loras",
    "max_cpu_loras": "max_cpu_loras",
}
_WORDS: Mapping[str, Mapping[str, str]] = {
    "dtype": {
        **dict.fromkeys(("float32", "float"), "fp32"),
        **dict.fromkeys(("float16", "half"), "fp16"),
        "bfloat16": "bf16",
    },
    "generation_config": {"vllm": "none"},
}
_CHANGES_ANSWERS = frozenset(
    {"quantization", "hf_overrides", "rope_scaling", "rope_theta", "override_generation_config", "tokenizer"}
)


def texts_of(told: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """Return each argument as a parameter: its key in the file, and its value as text. One that is null is not set."""
    return {
        name: (name, value if isinstance(value, str) else json.dumps(value))
        for name, value in told.items()
        if name not in _HANDLED
        and value is not None
        and not (name == "tokenizer" and value == told.get("model"))
    }


def at_hf(
    place: Path, texts: Mapping[str, tuple[str, str]], engine: TextEngine
) -> tuple[dict[str, tuple[str, str]], list[Finding]]:
    """Return the parameters of the engine of our own, and what is to be said of all others."""
    why = f"engine {engine.name} serves the model: {engine.why}"
    said = Finding(Severity.NOTICE, str(place), None, "model", why, "", "Install vLLM for its arguments.")
    found: dict[str, tuple[str, str]] = {}
    findings = [said]
    for name, (key, text) in texts.items():
        if name in _AT_HF:
            found[_AT_HF[name]] = key, _WORDS.get(name, {}).get(text.lower(), text)
        elif name in _CHANGES_ANSWERS:
            wrong = f"{name} {text[:80]!r} would make other answers, and means nothing to the engine {engine.name}"
            hint = "Install vLLM, or serve weights that need none of it."
            findings.append(Finding(Severity.ERROR, str(place), None, key, wrong, "no such argument", hint))
        else:
            nothing = f"{name} has no effect with the engine {engine.name}"
            findings.append(Finding(Severity.NOTICE, str(place), None, key, nothing, "", ""))
    return found, findings
