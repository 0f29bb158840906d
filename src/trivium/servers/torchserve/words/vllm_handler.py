"""The settings of TorchServe's `vllm_handler`, in the words of the built-in handler for language models.

Each argument of vLLM is used, reported, or refused: reported is what changes no answer, refused what would.
Source: the original's handler, with model_path, vllm_engine_config, adapters and chat_template below `handler`. Pure.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from trivium.codecs.near_names import near
from trivium.servers.torchserve.words.language_model import BLOCK
from trivium.servers.torchserve.words.model_config import ModelConfig
from trivium.types.findings import Finding, Severity

VLLM = "vllm_handler"
ENGINE_CONFIG = "vllm_engine_config"
NAMES = "served_model_name"

USED: Mapping[str, str] = {
    "model": "MODEL_PATH",
    "max_num_seqs": "SLOTS",
    "max_model_len": "MAX_CONTEXT",
    "dtype": "DTYPE",
    "trust_remote_code": "TRUST_REMOTE_CODE",
}
"""Arguments of vLLM -> our setting."""

REPORTED = frozenset(
    {
        *("gpu_memory_utilization", "enforce_eager", "swap_space", "cpu_offload_gb", "block_size", "seed"),
        *("max_num_batched_tokens", "enable_chunked_prefill", "enable_prefix_caching", "disable_log_stats"),
        *(
            "disable_log_requests",
            "max_logprobs",
            "kv_cache_dtype",
            "tensor_parallel_size",
            "pipeline_parallel_size",
        ),
        *(
            "distributed_executor_backend",
            "num_scheduler_steps",
            "use_v2_block_manager",
            "max_seq_len_to_capture",
        ),
        *(
            "disable_custom_all_reduce",
            "max_parallel_loading_workers",
            "load_format",
            "download_dir",
            "revision",
        ),
        *(
            "device",
            "worker_use_ray",
            "max_context_len_to_capture",
            "preemption_mode",
            "scheduler_delay_factor",
        ),
    }
)
"""Arguments without which the same is answered: they are about vLLM's own memory, processes and speed."""

_DTYPES = {"half": "float16", "float": "float32"}
_ADAPTERS = "Merge the adapter into the weights, and name those: adapters are not served in this version."
_WAYS_OUT = {
    "adapters": _ADAPTERS,
    "enable_lora": f"Write false. {_ADAPTERS}",
    "chat_template": "Write it into chat_template.jinja in the model's folder.",
    "quantization": "Serve the weights as they are, by dtype, or a .gguf file.",
    "tokenizer": "Put the tokenizer into the model's folder.",
}


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """Holds our settings by name, the key that each was written under, the names that clients call the model by, and
    what there is to say.
    """

    block: Mapping[str, object]
    shown: Mapping[str, str]
    names: tuple[str, ...]
    findings: tuple[Finding, ...]


def translated(config: ModelConfig) -> VllmSettings:
    """Read the settings below `handler`. Faults are among the findings."""
    given = config.document.get(BLOCK)
    block = given if isinstance(given, Mapping) else {}
    arguments = block.get(ENGINE_CONFIG)
    findings = []
    if arguments is not None and not isinstance(arguments, Mapping):
        findings.append(_fault(config, ENGINE_CONFIG, f"{arguments!r}"[:80], "Write one argument per line."))
    arguments = arguments if isinstance(arguments, Mapping) else {}
    ours: dict[str, object] = {}
    shown: dict[str, str] = {}
    if block.get("model_path"):
        ours["MODEL_PATH"], shown["MODEL_PATH"] = block["model_path"], "model_path"
    for key, value in arguments.items():
        name = USED.get(key)
        if name is not None and value not in (None, ""):
            ours[name] = _DTYPES.get(str(value), value) if name == "DTYPE" else value
            shown[name] = f"{ENGINE_CONFIG}.{key}"
    findings += _others(config, _without(block, ("model_path", ENGINE_CONFIG)))
    findings += _others(config, _without(arguments, (*USED, NAMES)), f"{ENGINE_CONFIG}.")
    names = arguments.get(NAMES) or ours.get("MODEL_PATH") or ()
    named = tuple(map(str, names)) if isinstance(names, list | tuple) else (str(names),)
    return VllmSettings(ours, shown, named, tuple(findings))


def _without(given: Mapping[str, object], known: Collection[str]) -> Mapping[str, object]:
    return {key: value for key, value in given.items() if key not in known}


def _others(config: ModelConfig, given: Mapping[str, object], place: str = "") -> Iterator[Finding]:
    """Report what changes no answer, and refuse what would; a value that means nothing is not worth a word."""
    for key, value in given.items():
        if value in (None, False, {}, []):
            continue
        if key in _WAYS_OUT:
            yield _fault(config, place + key, f"{value!r}"[:80], _WAYS_OUT[key])
        elif key in REPORTED:
            yield _note(config, place + key, "it has no effect: it is about vLLM's own engine")
        else:
            meant = near(key, (*USED, NAMES, *REPORTED, *_WAYS_OUT))
            hint = f"Did you mean {meant}?" if meant else ""
            yield _note(config, place + key, "it is not known here, and has no effect", hint)


def _fault(config: ModelConfig, key: str, found: str, hint: str) -> Finding:
    line = config.lines.get(BLOCK)
    return Finding(Severity.ERROR, config.file, line, f"{BLOCK}.{key}", found, "", hint)


def _note(config: ModelConfig, key: str, found: str, hint: str = "") -> Finding:
    line = config.lines.get(BLOCK)
    return Finding(Severity.NOTICE, config.file, line, f"{BLOCK}.{key}", found, "", hint)
