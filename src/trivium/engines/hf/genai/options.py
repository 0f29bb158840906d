"""Reads what a spec's parameters mean to this engine: rows that it shares with `hf`, and its own, by name."""

from collections.abc import Mapping
from dataclasses import dataclass

from trivium.engines.hf import options as shared
from trivium.settings.kinds import OneOf
from trivium.settings.parameters import place_of, read_parameters, unknown_parameters
from trivium.settings.setting import Setting
from trivium.types.errors import Code, ServeError
from trivium.types.spec import ModelSpec

NAME = "openvino-llm"
OWN, EXACT = "own", "exact"
"""Ways of computing: as OpenVINO chooses for the processor and the model, and in 32 bits."""

_FP32 = "fp32"
_SHARED = frozenset(
    {
        *("slots", "kv_bytes", "prefix_cache", "prefill_chunk", "max_context", "threads"),
        *("generation_config", "eos_token_id"),
    }
)
SETTINGS = (
    *(row for row in shared.SETTINGS if row.name in _SHARED),
    Setting(
        "precision",
        OneOf((OWN, EXACT), any_case=True),
        OWN,
        "Whether OpenVINO chooses how it computes, and keeps keys and values, or does both in 32 bits.",
    ),
)
"""What the engine knows; of what is not said the model and the machine decide, where there is no default."""

_IDLE: Mapping[str, frozenset[str]] = {
    "trust_remote_code": frozenset({"false", "0"}),
    "enable_lora": frozenset({"false", "0"}),
    "quantize": frozenset({"none"}),
    "dtype": frozenset({"auto", _FP32}),
}
"""Parameters of `hf` that ask for nothing by these values, but a data type of 32 bits for `exact`."""


@dataclass(frozen=True, slots=True)
class GenaiOptions:
    """One model's own. None: not said, so that the model and the machine decide."""

    slots: int | None = None
    kv_bytes: int | None = None
    prefix_cache: bool = True
    prefill_chunk: int = shared.DEFAULT_CHUNK
    max_context: int | None = None
    threads: int | None = None
    generation_config: str = "auto"
    eos_token_id: tuple[int, ...] | None = None
    precision: str = OWN


def options(spec: ModelSpec) -> GenaiOptions:
    """Return the model's own options. LOAD_FAILED names each that is unknown here, or has a value that cannot be, and
    where it stands.
    """
    given = {
        name: text
        for name, text in spec.parameters.items()
        if text.strip().lower() not in _IDLE.get(name, frozenset())
    }
    others = frozenset(row.name for row in shared.SETTINGS) - _SHARED
    wrong = [
        f"parameter '{name}'{place_of(spec, name)} is the engine hf's, and '{NAME}' cannot honour it: {_ways(name)}."
        for name in given
        if name in others
    ]
    known = [row.name for row in SETTINGS]
    wrong += [
        f"{sentence.removesuffix('.')} ({where})." if (where := place_of(spec, name).strip()) else sentence
        for name in given
        for sentence in unknown_parameters({name: given[name]}, NAME, known, {*shared.PROTOCOLS, *others})
    ]
    is_fp32 = spec.parameters.get("dtype", "").strip().lower() == _FP32
    if is_fp32 and spec.parameters.get("precision", EXACT).strip().lower() == OWN:
        words = "parameters 'dtype' (fp32) and 'precision' (own) contradict each other: remove one of them."
        wrong.append(words)
    if wrong:
        raise ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': {' '.join(wrong)}")
    found = read_parameters(spec, SETTINGS)
    return GenaiOptions(**({"precision": EXACT} | found if is_fp32 else found))


def _ways(name: str) -> str:
    if name in ("dtype", "quantize"):
        return (
            "its files say how weights are kept, and 'precision' how it computes. Remove it, or serve with hf"
        )
    return "remove it, or serve the model's safetensors with hf"
