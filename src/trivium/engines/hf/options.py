"""Reads what a spec's parameters mean to this engine: names, defaults and ranges, without a heavy library.

Whoever writes or judges such parameters asks here: `DESCRIPTIONS` for the names, `faults` for what cannot be.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from trivium.types.errors import Code, ServeError
from trivium.types.spec import ModelSpec

MOST_SLOTS = 1024
MOST_CHUNK = 65536
MOST_CONTEXT = 2**24
MOST_THREADS = 9999
DEFAULT_SLOTS = 32
DEFAULT_CHUNK = 256
DEFAULT_CONTEXT = 4096
DTYPES = ("auto", "fp32", "fp16", "bf16")

DESCRIPTIONS: Mapping[str, str] = {
    "slots": (
        f"sequences that are computed at once, 1 to {MOST_SLOTS}; {DEFAULT_SLOTS}, or as many as memory is free for"
    ),
    "prefill_chunk": f"tokens of prompts that one step reads, 1 to {MOST_CHUNK}; {DEFAULT_CHUNK}",
    "max_context": (
        f"tokens of a prompt and its answer, 2 to {MOST_CONTEXT}; as many as the model knows, at most {DEFAULT_CONTEXT}"
    ),
    "dtype": f"data type of weights, keys and values: {', '.join(DTYPES)}; auto",
    "threads": f"threads that compute, 1 to {MOST_THREADS}; as many as PyTorch chooses",
    "trust_remote_code": "may code of the model's folder run: true or false; false",
}
"""Parameter -> what it says, its range and its default."""

PROTOCOLS = frozenset(
    {"output_formatter", "tgi_compat", "end_of_stream_token", "max_new_tokens", "max_input_tokens"}
)
"""Parameters of such models that protocols read, and not the engine."""

_TRUTH = {"1": True, "true": True, "0": False, "false": False}
_RANGES = {
    "slots": (1, MOST_SLOTS),
    "prefill_chunk": (1, MOST_CHUNK),
    "max_context": (2, MOST_CONTEXT),
    "threads": (1, MOST_THREADS),
}


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """One model's own. None: not said, so that the model and the machine decide."""

    slots: int | None = None
    prefill_chunk: int = DEFAULT_CHUNK
    max_context: int | None = None
    dtype: str = "auto"
    threads: int | None = None
    trust_remote_code: bool = False


def faults(parameters: Mapping[str, str]) -> Mapping[str, str]:
    """Return for each parameter whose value cannot be what was expected instead."""
    found: dict[str, str] = {}
    for name, (least, most) in _RANGES.items():
        if name in parameters and _whole(parameters[name], least, most) is None:
            found[name] = f"a whole number from {least} to {most}"
    if _word(parameters, "dtype", "auto") not in DTYPES:
        found["dtype"] = f"one of {', '.join(DTYPES)}"
    if _word(parameters, "trust_remote_code", "false") not in _TRUTH:
        found["trust_remote_code"] = "true or false"
    return found


def unknown(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each parameter that means nothing to this engine."""
    return tuple(_unknown(name) for name in parameters if name not in DESCRIPTIONS and name not in PROTOCOLS)


def options(spec: ModelSpec) -> GenerationOptions:
    """Return the model's own options. LOAD_FAILED names each value that cannot be, and where it stands."""
    told = spec.parameters
    if wrong := faults(told):
        texts = (
            f"parameter '{name}' is '{told[name]}' ({spec.origin.get(f'parameters[{name}]', 'as read')}); expected "
            f"{expected}"
            for name, expected in wrong.items()
        )
        raise ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': {'; '.join(texts)}.")
    return GenerationOptions(
        slots=_number(told, "slots"),
        prefill_chunk=_number(told, "prefill_chunk") or DEFAULT_CHUNK,
        max_context=_number(told, "max_context"),
        dtype=_word(told, "dtype", "auto"),
        threads=_number(told, "threads"),
        trust_remote_code=_TRUTH[_word(told, "trust_remote_code", "false")],
    )


def _number(told: Mapping[str, str], name: str) -> int | None:
    return _whole(told[name], *_RANGES[name]) if name in told else None


def _word(told: Mapping[str, str], name: str, default: str) -> str:
    return told.get(name, default).strip().lower()


def _whole(text: str, least: int, most: int) -> int | None:
    digits = text.strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > len(str(most)):
        return None
    return int(digits) if least <= int(digits) <= most else None


def _unknown(name: str) -> str:
    near = get_close_matches(name.lower(), DESCRIPTIONS, n=1, cutoff=0.6)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return f"parameter '{name}' has no meaning to engine 'hf'; it knows: {', '.join(DESCRIPTIONS)}.{hint}"
