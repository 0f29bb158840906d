"""Reads what a spec's parameters mean to this engine: names, defaults and ranges, without a heavy library.

Whoever writes or judges such parameters asks here: `DESCRIPTIONS` for the names, `faults` for what cannot be.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from trivium.codecs.near_names import near
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
    "logits_processors": (
        "what a request may choose by its logits_processor, NAME=FILE.py:OBJECT with ; between, of files beside the "
        "model; none"
    ),
}
"""Parameter -> what it says, its range and its default."""

PROTOCOLS = frozenset(
    {"output_formatter", "tgi_compat", "end_of_stream_token", "max_new_tokens", "max_input_tokens"}
)
"""Parameters of such models that protocols read, and not the engine."""

_PROCESSOR = re.compile(r"([\w.-]{1,100})\s*=\s*([A-Za-z_]\w{0,99}\.py:[A-Za-z_]\w{0,99})", re.ASCII)
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
    logits_processors: Mapping[str, str] = field(default_factory=dict)


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
    if _processors(parameters) is None:
        found["logits_processors"] = (
            "NAME=FILE.py:OBJECT, with ; between several: each name once, and the files beside the model"
        )
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
        logits_processors=_processors(told) or {},
    )


def _processors(told: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the place of each processor by its name; None where they cannot be read."""
    texts = [one.strip() for one in told.get("logits_processors", "").split(";") if one.strip()]
    found = {match[1]: match[2] for one in texts if (match := _PROCESSOR.fullmatch(one))}
    return found if len(found) == len(texts) else None


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
    meant = near(name.lower(), DESCRIPTIONS)
    hint = f" Did you mean '{meant}'?" if meant else ""
    return f"parameter '{name}' has no meaning to engine 'hf'; it knows: {', '.join(DESCRIPTIONS)}.{hint}"
