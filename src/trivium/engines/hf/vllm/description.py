"""Reads what a model's files and parameters say before vLLM is imported: sizes, texts, and the engine's arguments."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trivium.engines.hf.folder import Checkpoint, architecture, checkpoint, unfit
from trivium.engines.hf.folder_code import FolderCode
from trivium.engines.hf.lora.limits import AdapterLimits, limits_of
from trivium.engines.hf.options import SETTINGS, GenerationOptions
from trivium.engines.hf.sizes import config_sizes
from trivium.engines.hf.text_settings import TextSettings, text_settings
from trivium.engines.hf.vllm.arguments import OWN, engine_arguments
from trivium.engines.hf.vllm.installed import argument_forms
from trivium.settings.parameters import read_parameters
from trivium.types.errors import Code
from trivium.types.spec import ModelSpec

_READ = frozenset({*OWN, "trust_remote_code"})
_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Greatest ranks of adapters that vLLM can be opened for."""
_AT_ONCE = 4
"""Adapters in one step of vLLM's, where nobody says: as LMI has it."""
_CONTEXTS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")


@dataclass(frozen=True, slots=True)
class DescribedVllm:
    """A model that can be given to vLLM. `context` is 0 where only vLLM can tell; `per_token` the bytes of keys and
    values, if that is known; `vocabulary` and `width` 0 likewise.
    """

    files: Checkpoint
    code: FolderCode
    chosen: GenerationOptions
    arguments: Mapping[str, Any]
    architecture: str
    context: int
    vocabulary: int
    width: int
    numbers_per_token: int
    texts: TextSettings
    adapters: AdapterLimits


def describe_vllm(spec: ModelSpec) -> DescribedVllm:
    """Return what a model's files say. LOAD_FAILED, or UNSUPPORTED, for a model that cannot be served."""
    rows = [row for row in SETTINGS if row.name in _READ]
    chosen = GenerationOptions(**read_parameters(spec, rows))
    code = FolderCode(spec.name, chosen.trust_remote_code)
    if spec.entry.lower().endswith(".gguf"):
        raise unfit(
            spec,
            f"{spec.entry} is a GGUF file, which vLLM does not open without a plug-in. Serve it with the engine hf, or "
            "serve the folder that it was made of.",
            Code.UNSUPPORTED,
        )
    files = checkpoint(spec, code)
    arguments = {**engine_arguments(spec, argument_forms()), **_of_adapters(spec, chosen)}
    try:
        sizes = config_sizes(files.config)
    except (ValueError, ZeroDivisionError) as error:
        raise unfit(
            spec, f"its configuration lacks a size, or has one that is no number: {error}."
        ) from error
    known = sizes.context if sizes else _number(files.config, *_CONTEXTS)
    vocabulary = sizes.vocabulary if sizes else _number(files.config, "vocab_size") or 0
    context = arguments.get("max_model_len") or known or 0
    return DescribedVllm(
        *(files, code, chosen, arguments, architecture(files.config)),
        *(int(context), vocabulary),
        width=sizes.width if sizes else _number(files.config, "hidden_size", "n_embd") or 0,
        numbers_per_token=sizes.cached if sizes else 0,
        texts=text_settings(spec, files, chosen, vocabulary or 2**31),
        adapters=limits_of(chosen),
    )


def _of_adapters(spec: ModelSpec, chosen: GenerationOptions) -> dict[str, Any]:
    """Return the arguments by which vLLM keeps room for adapters: all that may be held, and one that is replaced."""
    if not spec.functions:
        return {}
    limits = limits_of(chosen)
    rank = next((one for one in _RANKS if one >= limits.rank), None)
    if rank is None:
        raise unfit(
            spec, f"max_lora_rank is {limits.rank}; expected at most {_RANKS[-1]}, which vLLM computes."
        )
    return {
        "enable_lora": True,
        "max_lora_rank": rank,
        "max_loras": min(chosen.max_loras or _AT_ONCE, limits.number),
        "max_cpu_loras": limits.number + 1,
    }


def _number(config: Mapping[str, object], *names: str) -> int | None:
    """Return the first size of a configuration, or of that of its texts, under one of these names."""
    inner = config.get("text_config")
    for told in (config, inner):
        for name in names:
            value = told.get(name) if isinstance(told, Mapping) else None
            if type(value) is int and value > 0:
                return value
    return None


def shown(arguments: Mapping[str, Any]) -> str:
    """Return arguments as people write them."""
    texts = (
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in arguments.items()
    )
    return ", ".join(sorted(texts)) or "none: vLLM's own defaults"
