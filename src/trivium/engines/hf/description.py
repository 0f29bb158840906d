"""Reads what a model's configuration says of its size, without its weights, and without a library where that can be.

The context is bounded where positions are scaled by the longest sequence of a step: one request would change another.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trivium.codecs.gguf import GgufFault, GgufHead, read_head
from trivium.engines.hf.folder import Checkpoint, architecture, checkpoint, unfit
from trivium.engines.hf.folder_code import FolderCode
from trivium.engines.hf.library import gguf_blocks, gguf_library, libraries, require_libraries
from trivium.engines.hf.memory import KeyValueDemand, MemoryEstimate, estimate
from trivium.engines.hf.options import DEFAULT_SLOTS, GenerationOptions, chosen_context, options
from trivium.engines.hf.quantising import judge_quantiser
from trivium.engines.hf.sizes import ATTENTIONS, ModelSizes, config_sizes, gguf_sizes
from trivium.engines.hf.text_settings import TextSettings, text_settings
from trivium.files import mapped_file
from trivium.settings.parameters import place_of
from trivium.types.errors import Code, said_by
from trivium.types.spec import ModelSpec

_DTYPES: Mapping[str, str] = {
    **{"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"},
    **{"F32": "fp32", "F16": "fp16", "BF16": "bf16"},
}
_FLAGS: Mapping[str, frozenset[str]] = {
    "bf16": frozenset({"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"}),
    "fp16": frozenset({"avx512_fp16", "amx_fp16", "asimdhp"}),
}
"""Words of /proc/cpuinfo for processors that compute in 16 bits."""


@dataclass(frozen=True, slots=True)
class DescribedModel:
    """A model that can be loaded. `context` is what a slot holds; what the model knows is among its sizes."""

    files: Checkpoint
    code: FolderCode
    chosen: GenerationOptions
    sizes: ModelSizes
    dtype: str
    context: int
    need: MemoryEstimate
    texts: TextSettings
    head: GgufHead | None = None

    def demand(self, is_gpu: bool) -> KeyValueDemand:
        """Return what the model is to hold at once."""
        return KeyValueDemand(self.chosen.slots or DEFAULT_SLOTS, self.context, self.chosen.kv_bytes, is_gpu)


def describe(spec: ModelSpec, is_gpu: bool) -> DescribedModel:
    """Return what a model's files say. LOAD_FAILED, or UNSUPPORTED, for a model that cannot be served."""
    chosen = options(spec)
    code = FolderCode(spec.name, chosen.trust_remote_code)
    files = checkpoint(spec, code)
    _judge_processors(spec, chosen, files, code)
    require_libraries()
    judge_quantiser(spec, chosen.quantize, files, is_gpu)
    head = _gguf_head(spec, files) if files.gguf else None
    numbers = files.numbers if head is None else head.numbers
    if not numbers:
        raise unfit(spec, "its files hold no weights.")
    dtype = _dtype(files, chosen.dtype, is_gpu)
    try:
        sizes = config_sizes(files.config) if head is None else gguf_sizes(head)
        sizes = sizes or _asked_sizes(files, _config(spec, files, code))
    except (AttributeError, TypeError, ValueError, ZeroDivisionError) as error:
        raise unfit(
            spec, f"its configuration lacks a size, or has one that is no number: {error}."
        ) from error
    _judge_attentions(spec, sizes)
    known = sizes.context
    if min(sizes.width, sizes.vocabulary, sizes.cached, known or 2) < 1:
        raise unfit(spec, "its configuration has a size below 1.")
    context = chosen_context(spec, chosen.max_context, known)
    need = estimate(numbers, sizes.cached, dtype)
    texts = text_settings(spec, files, chosen, sizes.vocabulary)
    return DescribedModel(files, code, chosen, sizes, dtype, context, need, texts, head)


def _judge_processors(
    spec: ModelSpec, chosen: GenerationOptions, files: Checkpoint, code: FolderCode
) -> None:
    """Raise for processors whose folder is not trusted, or has no such file."""
    for name, place in chosen.logits_processors.items():
        file = place.partition(":")[0]
        code.require(f"its parameter 'logits_processors' names {place}")
        if not (files.folder / file).is_file():
            raise unfit(
                spec,
                f"its logits processor '{name}' is {place}, and there is no file {files.folder / file}. Correct its "
                f"parameter 'logits_processors'{place_of(spec, 'logits_processors')}.",
            )


def _config(spec: ModelSpec, files: Checkpoint, code: FolderCode) -> Any:
    _, transformers = libraries()
    extra = {"gguf_file": files.gguf} if files.gguf else {}
    if files.gguf:
        gguf_library()
    try:
        return transformers.AutoConfig.from_pretrained(files.folder, **code.of_library(), **extra)
    except Exception as error:
        raise unfit(
            spec, f"transformers {transformers.__version__} cannot read its configuration: {said_by(error)}"
        ) from error


def read_config(spec: ModelSpec, told: DescribedModel) -> Any:
    """Return a model's configuration as transformers has it. LOAD_FAILED for one that it cannot read."""
    return _config(spec, told.files, told.code)


def _asked_sizes(files: Checkpoint, config: Any) -> ModelSizes:
    """Return what a class of transformers knows of the sizes."""
    text = config.get_text_config()
    return ModelSizes(
        architecture(files.config) or _class_of(config),
        _context(text),
        _cache_numbers(text),
        int(text.hidden_size),
        int(text.vocab_size),
        frozenset(map(str, getattr(text, "layer_types", None) or ())),
    )


def _class_of(config: Any) -> str:
    """Return the class that serves a GGUF file's configuration, which names none."""
    _, transformers = libraries()
    known = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return str(known.get(config.model_type, type(config).__name__))


def _gguf_head(spec: ModelSpec, files: Checkpoint) -> GgufHead:
    path = files.folder / files.gguf
    try:
        return read_head(mapped_file(path), gguf_blocks())
    except OSError as error:
        raise unfit(spec, f"{path} cannot be read: {error.strerror}.") from error
    except GgufFault as error:
        raise unfit(spec, f"{files.gguf} is no whole GGUF file: {error}. Copy it again.") from error


def _dtype(files: Checkpoint, asked: str, is_gpu: bool) -> str:
    """Return the data type: as asked for, else the checkpoint's, but fp32 where a processor has no 16 bits."""
    if asked != "auto":
        return asked
    told = files.config.get("dtype", files.config.get("torch_dtype"))
    found = _DTYPES.get(str(told), _DTYPES.get(files.stored, "fp32"))
    if found == "fp32" or is_gpu or processor_flags() & _FLAGS[found]:
        return found
    return "fp32"


def processor_flags(path: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Return what the first processor can do; nothing where the system does not tell."""
    try:
        with path.open() as file:
            for line in file:
                name, _, words = line.partition(":")
                if name.strip() in ("flags", "Features"):
                    return frozenset(words.split())
    except OSError:
        pass
    return frozenset()


def _context(text: Any) -> int | None:
    known = getattr(text, "max_position_embeddings", None)
    told = getattr(text, "rope_parameters", None) or {}
    ropes = [rope for rope in (told, *told.values()) if isinstance(rope, dict) and "rope_type" in rope]
    for rope in ropes:
        if rope["rope_type"] in ("dynamic", "longrope"):
            original = rope.get("original_max_position_embeddings")
            original = original or getattr(text, "original_max_position_embeddings", None)
            known = min(int(original), known or int(original)) if original else known
    return None if known is None else int(known)


def _cache_numbers(text: Any) -> int:
    """Return how many numbers are kept of each token."""
    heads = int(text.num_attention_heads)
    nope, rope = getattr(text, "qk_nope_head_dim", None), getattr(text, "qk_rope_head_dim", None)
    if getattr(text, "kv_lora_rank", None) and nope is not None and rope is not None:
        return int(text.num_hidden_layers) * heads * (int(nope) + int(rope) + int(text.v_head_dim))
    size = getattr(text, "head_dim", None) or text.hidden_size // heads
    shared = getattr(text, "num_key_value_heads", None) or heads
    return int(text.num_hidden_layers) * int(shared) * int(size) * 2


def _judge_attentions(spec: ModelSpec, sizes: ModelSizes) -> None:
    if kinds := sizes.attentions - ATTENTIONS:
        raise unfit(
            spec,
            f"its layers are of the kind {', '.join(sorted(kinds))}, and this engine computes "
            "full_attention and sliding_attention. Serve it with vLLM, or with a handler in Python that calls "
            "generate.",
            Code.UNSUPPORTED,
        )
