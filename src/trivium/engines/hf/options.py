"""Reads what a spec's parameters mean to this engine: names, defaults and ranges, without a heavy library."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from trivium.settings.kinds import DIGIT_SWITCH, Form, OneOf, Size, Whole
from trivium.settings.parameters import place_of, read_parameters, unknown_parameters
from trivium.settings.setting import Setting
from trivium.types.adapters import adapter_folders
from trivium.types.errors import Code, ServeError
from trivium.types.spec import ModelSpec

DEFAULT_SLOTS = 32
DEFAULT_CHUNK = 256
DEFAULT_CONTEXT = 4096
DEFAULT_WEIGHTS_CACHE = 16 * 2**30
DEFAULT_LORA_RANK = 16
DEFAULT_LORA_BYTES = 2**30

NONE, BITS_8, BITS_4, DYNAMIC = "none", "bitsandbytes8", "bitsandbytes4", "dynamic_int8"
QUANTISERS = (NONE, BITS_8, BITS_4, DYNAMIC)

PROTOCOLS = frozenset(
    {
        "output_formatter",
        "tgi_compat",
        "async_mode",
        "served_model_name",
        "openai_paths",
        "end_of_stream_token",
        "max_new_tokens",
        "max_input_tokens",
    }
)
"""Parameters of such models that protocols read, and not the engine."""

_PROCESSOR = re.compile(r"([\w.-]{1,100})\s*=\s*([A-Za-z_]\w{0,99}\.py:[A-Za-z_]\w{0,99})", re.ASCII)


def _processors(text: str) -> Mapping[str, str] | None:
    """Return the place of each processor by its name; None where they cannot be read."""
    texts = [one.strip() for one in text.split(";") if one.strip()]
    found = {match[1]: match[2] for one in texts if (match := _PROCESSOR.fullmatch(one))}
    return found if len(found) == len(texts) else None


_NUMBERS = re.compile(r"\d{1,9}(\s*[;,\s]\s*\d{1,9})*", re.ASCII)


def _tokens(text: str) -> tuple[int, ...] | None:
    """Return the ids of tokens; None where they cannot be read."""
    if text.strip().lower() == "none":
        return ()
    return tuple(map(int, re.findall(r"\d+", text))) if _NUMBERS.fullmatch(text.strip()) else None


SETTINGS = (
    Setting("slots", Whole(1, 1024), help="Sequences that are computed at once."),
    Setting("kv_bytes", Size(1, 2**50), help="Memory for the keys and values of all sequences, in bytes."),
    Setting(
        "prefix_cache",
        DIGIT_SWITCH,
        True,
        "Whether keys and values of ended requests are kept for others that begin like them.",
    ),
    Setting("prefill_chunk", Whole(1, 65536), DEFAULT_CHUNK, "Tokens of prompts that one step reads."),
    Setting("max_context", Whole(2, 2**24), help="Tokens of a prompt and its answer."),
    Setting(
        "dtype",
        OneOf(("auto", "fp32", "fp16", "bf16"), any_case=True),
        "auto",
        "Data type of weights, keys and values.",
    ),
    Setting(
        "quantize",
        OneOf(QUANTISERS, any_case=True),
        NONE,
        "Whether the weights are kept in 8 or 4 bits: by the library bitsandbytes, or by PyTorch.",
    ),
    Setting("threads", Whole(1, 9999), help="Threads that compute."),
    Setting(
        "trust_remote_code",
        DIGIT_SWITCH,
        False,
        "May code of the model's folder run.",
    ),
    Setting(
        "logits_processors",
        Form(
            "NAME=FILE.py:OBJECT, with ; between several: each name once, and the files beside the model",
            _processors,
        ),
        help="What a request may choose by its logits_processor.",
    ),
    Setting(
        "generation_config",
        OneOf(("auto", "none"), any_case=True),
        "auto",
        "Whether the sampling settings of generation_config.json hold where a request says nothing.",
    ),
    Setting(
        "eos_token_id",
        Form("ids of tokens, with ; between, or none", _tokens),
        help="The tokens that end a text, in place of those that the model's files name.",
    ),
    Setting(
        "weights_cache_bytes",
        Size(0, 2**50),
        DEFAULT_WEIGHTS_CACHE,
        "Bytes of converted weights that are kept in the user's cache; 0 keeps none.",
    ),
    Setting("enable_lora", DIGIT_SWITCH, False, "Whether adapters may be registered while the model serves."),
    Setting(
        "adapters",
        Form("NAME=FOLDER, with ; between several: each name once", adapter_folders),
        help="Adapters that are there from the start, beside those in the model's folder adapters.",
    ),
    Setting(
        "max_lora_rank", Whole(1, 4096), DEFAULT_LORA_RANK, "The greatest rank that an adapter may have."
    ),
    Setting("max_loras", Whole(1, 65536), help="Adapters that are held at once."),
    Setting("max_cpu_loras", Whole(1, 65536), help="The same, where both are set."),
    Setting("lora_bytes", Size(1, 2**50), DEFAULT_LORA_BYTES, "Bytes of the weights of all adapters."),
)
"""What the engine knows; of what is not said the model and the machine decide, where there is no default."""


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
    generation_config: str = "auto"
    eos_token_id: tuple[int, ...] | None = None
    kv_bytes: int | None = None
    weights_cache_bytes: int = DEFAULT_WEIGHTS_CACHE
    quantize: str = NONE
    prefix_cache: bool = True
    enable_lora: bool = False
    adapters: Mapping[str, str] = field(default_factory=dict)
    max_lora_rank: int = DEFAULT_LORA_RANK
    max_loras: int | None = None
    max_cpu_loras: int | None = None
    lora_bytes: int = DEFAULT_LORA_BYTES


def unknown(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each parameter that means nothing to this engine."""
    return unknown_parameters(parameters, "hf", (row.name for row in SETTINGS), PROTOCOLS)


def options(spec: ModelSpec) -> GenerationOptions:
    """Return the model's own options. LOAD_FAILED names each value that cannot be, and where it stands."""
    return GenerationOptions(**read_parameters(spec, SETTINGS))


def chosen_context(spec: ModelSpec, asked: int | None, known: int | None) -> int:
    """Return the tokens of a prompt and its answer: as asked, else what the model knows, up to a default. LOAD_FAILED
    where more is asked for than the model knows.
    """
    if asked is None:
        return DEFAULT_CONTEXT if known is None else min(known, DEFAULT_CONTEXT)
    if known is not None and asked > known:
        where = place_of(spec, "max_context")
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': parameter 'max_context' is {asked}{where}; expected at most {known}, which the "
            "model knows.",
        )
    return asked
