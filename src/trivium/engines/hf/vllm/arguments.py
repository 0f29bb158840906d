"""Turns a model's parameters into the arguments of vLLM's engine: our own words for them, and vLLM's own names.

Which arguments there are the installed version says (`installed`). This is pure.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trivium.codecs.near_names import near
from trivium.engines.hf.options import PROTOCOLS
from trivium.settings.kinds import DIGIT_SWITCH, Form, Kind, Number
from trivium.settings.parameters import place_of
from trivium.types.errors import Code, ServeError
from trivium.types.spec import ModelSpec

_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_QUANTISERS = {"none": None}
_NO_QUANTISERS = frozenset(
    {"bitsandbytes", "bitsandbytes4", "bitsandbytes8", "dynamic_int8", "static_int8", "smoothquant"}
)
"""Ways of keeping weights in fewer bits that runtimes of DJL's know, and vLLM does not, or no longer."""


@dataclass(frozen=True, slots=True)
class RenamedArgument:
    """An argument of vLLM's under a name of ours; `words` are values that it calls otherwise."""

    name: str
    words: Mapping[str, str | None] | None = None


RENAMED: Mapping[str, RenamedArgument] = {
    "slots": RenamedArgument("max_num_seqs"),
    "prefill_chunk": RenamedArgument("max_num_batched_tokens"),
    "max_context": RenamedArgument("max_model_len"),
    "kv_bytes": RenamedArgument("kv_cache_memory_bytes"),
    "prefix_cache": RenamedArgument("enable_prefix_caching"),
    "quantize": RenamedArgument("quantization", _QUANTISERS),
    "dtype": RenamedArgument("dtype", _DTYPES),
}
"""Our parameter -> the argument. All others have vLLM's names."""

OWN = frozenset(
    {
        *("generation_config", "eos_token_id"),
        *("adapters", "enable_lora", "max_lora_rank", "max_loras", "max_cpu_loras"),
    }
)
"""Parameters that are read here, and by vLLM not at all, or otherwise."""

_HERE = "this server reads texts itself"
_COMMON = "a request says it, or the server"
TAKEN: Mapping[str, str] = {
    "model": "the folder is the model",
    "model_weights": "the folder is the model",
    "tokenizer": f"{_HERE}, by the tokenizer beside the weights",
    "tokenizer_mode": f"{_HERE}, by the tokenizer beside the weights",
    "tokenizer_revision": f"{_HERE}, by the tokenizer beside the weights",
    "skip_tokenizer_init": _HERE,
    "runner": "text is generated, and nothing else",
    "convert": "text is generated, and nothing else",
    "pooler_config": "text is generated, and nothing else",
    "enable_log_requests": _COMMON,
    "reasoning_parser": _HERE,
    "reasoning_parser_plugin": _HERE,
    "stream_interval": "parts are put together for each reader",
    "device_ids": "the instance's GPU is the first",
}
"""Arguments that cannot be chosen, and why."""

HARMLESS: Mapping[str, frozenset[str]] = {
    "tokenizer_mode": frozenset({"auto", "hf"}),
    "skip_tokenizer_init": frozenset({"true", "false"}),
    "runner": frozenset({"auto", "generate"}),
    "convert": frozenset({"auto", "none"}),
    "stream_interval": frozenset({"1"}),
    "enable_log_requests": frozenset({"true", "false"}),
    "reasoning_parser": frozenset({""}),
}
"""Their values that wish for what is so anyway, or for nothing that a client could see."""

CODE = frozenset(
    {
        "worker_cls",
        "worker_extension_cls",
        "scheduler_cls",
        "logits_processors",
        "io_processor_plugin",
        "model_class_overrides",
        "kv_transfer_config",
        "ec_transfer_config",
        "ec_manager_config",
        "weight_transfer_config",
        "speculative_config",
        "compilation_config",
    }
)
"""Arguments that may name code, or weights of another place, which run only where the operator trusts the folder."""

SAFE_FORMATS = frozenset({"auto", "safetensors", "dummy", "fastsafetensors"})
"""Values of `load_format` that open no pickle: a folder without safetensors is refused before."""

_GONE = "vLLM no longer has it"
RETIRED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("swap_space", "use_v2_block_manager", "device", "preemption_mode", "worker_use_ray"),
            *(
                "num_scheduler_steps",
                "multi_step_stream_outputs",
                "scheduler_delay_factor",
                "num_lookahead_slots",
            ),
            *(
                "disable_async_output_proc",
                "cuda_graph_sizes",
                "max_seq_len_to_capture",
                "calculate_kv_scales",
            ),
            *("max_num_partial_prefills", "max_long_partial_prefills", "disable_mm_preprocessor_cache"),
            *(
                "disable_frontend_multiprocessing",
                "engine_use_ray",
                "enable_lora_bias",
                "lora_extra_vocab_size",
            ),
            *("long_lora_scaling_factors", "guided_decoding_backend", "max_context_len_to_capture", "task"),
        ),
        _GONE,
    ),
    "disable_log_requests": "requests are logged by the server's own settings",
    "disable_log_stats": "its counters are the server's metrics",
    "max_log_len": "requests are logged by the server's own settings",
}
"""Arguments of earlier vLLMs, or of its servers, without which answers are the same: they are reported."""

_WITHOUT_EFFECT: Mapping[str, str] = {
    **RETIRED,
    "threads": "vLLM binds its threads itself: set VLLM_CPU_OMP_THREADS_BIND for the server",
    "weights_cache_bytes": "vLLM opens the weights itself",
    "lora_bytes": "vLLM takes the memory of adapters by their number and rank",
}
_HUMAN = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([kKmMgGtT]?)", re.ASCII)
_FACTORS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
    "T": 2**40,
}
_MOST_TEXT = 2**16


def engine_arguments(spec: ModelSpec, forms: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments that a model's parameters are; `forms` are those that there are, with their annotations.
    LOAD_FAILED names each that cannot be, and where it stands; UNSUPPORTED for one that runs code nobody trusts.
    """
    trusts = _trusts(spec)
    made: dict[str, Any] = {}
    given: dict[str, str] = {}
    wrong: list[str] = []
    for parameter, text in spec.parameters.items():
        if parameter in OWN or parameter in _WITHOUT_EFFECT or parameter in PROTOCOLS:
            continue
        row = RENAMED.get(parameter, RenamedArgument(parameter))
        if text.strip().lower() in HARMLESS.get(row.name, ()):
            continue
        fault = _fault(spec, row, parameter, text, forms, trusts)
        if fault:
            wrong.append(fault)
            continue
        value = _value(row, text, forms)
        if row.name in made and made[row.name] != value:
            wrong.append(
                f"parameters '{given[row.name]}'{place_of(spec, given[row.name])} and '{parameter}'"
                f"{place_of(spec, parameter)} are both vLLM's {row.name}, with two values; expected one of them"
            )
        made[row.name], given[row.name] = value, parameter
    if wrong:
        raise ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': {'; '.join(wrong)}.")
    return {name: value for name, value in made.items() if value is not None}


def without_effect(spec: ModelSpec) -> tuple[str, ...]:
    """Return a sentence for each parameter that changes nothing with this engine."""
    return tuple(
        f"parameter '{name}'{place_of(spec, name)} changes nothing with engine 'vllm': {why}."
        for name, why in _WITHOUT_EFFECT.items()
        if name in spec.parameters
    )


def _trusts(spec: ModelSpec) -> bool:
    text = spec.parameters.get("trust_remote_code", "false").strip()
    return not DIGIT_SWITCH.refuses(text) and bool(DIGIT_SWITCH.read(text))


def _fault(
    spec: ModelSpec, row: RenamedArgument, parameter: str, text: str, forms: Mapping[str, str], trusts: bool
) -> str:
    """Return what is wrong with a parameter; empty for nothing."""
    where = f"parameter '{parameter}'{place_of(spec, parameter)}"
    if row.name in TAKEN:
        return f"{where} cannot be chosen: {TAKEN[row.name]}; leave it out"
    if row.name not in forms:
        meant = near(parameter, {*forms, *RENAMED, *OWN})
        hint = f"; did you mean '{meant}'?" if meant else ""
        return f"{where} is no argument of vLLM's engine as it is installed{hint}"
    if not trusts and (row.name in CODE or (row.name == "load_format" and text.strip() not in SAFE_FORMATS)):
        return (
            f"{where} may run code, or open weights that do: it takes trust_remote_code=true, which says that you "
            "trust it"
        )
    if row.name == "quantization" and text.strip().lower() in _NO_QUANTISERS:
        return (
            f"{where} is '{text.strip()}', which vLLM does not do; expected none, fp8 or int8_per_channel_weight_only "
            "for plain weights, or no such line for weights that are quantised already"
        )
    kind = _kind(forms[row.name])
    if len(text) > _MOST_TEXT or ((word := _word(row, text)) is not None and kind.refuses(word)):
        return f"{where} is '{text[:80]}'; expected {kind.expected}"
    return ""


def _word(row: RenamedArgument, text: str) -> str | None:
    words = row.words or {}
    plain = text.strip()
    return words.get(plain.lower(), plain)


def _value(row: RenamedArgument, text: str, forms: Mapping[str, str]) -> Any:
    word = _word(row, text)
    return None if word is None else _kind(forms[row.name]).read(word)


def _human(text: str) -> int | None:
    """Read a number as vLLM's own command line does: 1k is 1000, 1K is 1024. None where it is none."""
    found = _HUMAN.fullmatch(text)
    if found is None or (not found[2] and "." in found[1]):
        return None
    return int(float(found[1]) * _FACTORS[found[2]]) if found[2] else int(found[1])


def _document(text: str) -> Any:
    """Read JSON: an object or a list. None where it is none."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict | list) else None


def _loose(text: str) -> Any:
    """Read what vLLM's own types take: JSON of an object, a list or a number, and any other text as it is."""
    if text[:1] in "{[":
        return _document(text)
    return int(text) if text.isascii() and text.isdigit() else text


def _list(text: str) -> Any:
    return (
        _document(text)
        if text[:1] in "{["
        else [one.strip() for one in text.split(",") if one.strip()] or None
    )


_COUNT = Form("a whole number, or one with k, K, m, M, g or G behind it", _human)
_JSON = Form("JSON, an object or a list", _document)
_LOOSE = Form("a word, a number or JSON", _loose)
_TEXT = Form("a text", lambda text: text)
_LIST = Form("JSON of a list, or words with commas between", _list)


def _kind(annotation: str) -> Kind:
    """Return what reads an argument with this annotation."""
    parts = {part.strip() for part in annotation.split("|")} - {"None"}
    if len(parts) == 1:
        only = parts.pop()
        if only in ("bool", "int", "float", "str"):
            return {"bool": DIGIT_SWITCH, "int": _COUNT, "float": Number(), "str": _TEXT}[only]
        if only.startswith(("list", "set")):
            return _LIST
        if only.startswith("dict") or only.endswith("Config"):
            return _JSON
    return _LOOSE
