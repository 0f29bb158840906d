"""Reads the sizes of a model out of its config.json, or the head of its GGUF file, without a heavy library.

Only for kinds of models whose configurations say all of it: what a class of transformers would add, or compute, is its
own to say. Then there are no sizes here, and `description` asks transformers. This is pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trivium.codecs.gguf import TOKENS, GgufHead, ListLength

ATTENTIONS = frozenset({"full_attention", "sliding_attention"})
_OWN_SCALING = frozenset({"dynamic", "longrope", "su", "yarn"})
"""Ways of scaling positions for which a class computes the context that it knows."""


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """Holds what memory and requests depend on. `cached` are the numbers that are kept of each token."""

    architecture: str
    context: int | None
    cached: int
    width: int
    vocabulary: int
    attentions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Names:
    """Holds what a kind of model calls its sizes. Heads may share keys (`has_groups`); how many do, and how wide a
    head is, some classes only know if it is said (`says_groups`, `says_head`).
    """

    width: str = "hidden_size"
    layers: str = "num_hidden_layers"
    heads: str = "num_attention_heads"
    context: str = "max_position_embeddings"
    has_groups: bool = True
    says_groups: bool = True
    says_head: bool = False


_ALONE = _Names(has_groups=False)
_KINDS: Mapping[str, _Names] = {
    "llama": _Names(says_groups=False),
    "phi3": _Names(says_groups=False),
    **dict.fromkeys(("mistral", "mixtral", "qwen2", "starcoder2"), _Names()),
    **dict.fromkeys(("qwen3", "gemma", "gemma2", "gemma3_text"), _Names(says_head=True)),
    "gpt2": _Names("n_embd", "n_layer", "n_head", "n_positions", has_groups=False),
    "gpt_neox": _ALONE,
    "opt": _ALONE,
}

_EMBEDDING = "token_embd.weight"

GGUF_CLASSES: Mapping[str, str] = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3": "Gemma3ForCausalLM",
    "starcoder2": "Starcoder2ForCausalLM",
}
"""Architectures of GGUF files that our own reader opens -> the class that computes them."""


def config_sizes(config: Mapping[str, object]) -> ModelSizes | None:
    """Return what a config.json says; None where it is a class of transformers that knows. ValueError for a size that
    is no number.
    """
    names = _KINDS.get(str(config.get("model_type")))
    classes, scaling = (
        config.get("architectures"),
        config.get("rope_parameters") or config.get("rope_scaling"),
    )
    if names is None or config.get("auto_map") or not isinstance(classes, list) or _is_own(scaling):
        return None
    needed = [names.width, names.layers, names.heads, names.context, "vocab_size"]
    needed += ["num_key_value_heads"] if names.has_groups and names.says_groups else []
    needed += ["head_dim"] if names.says_head else []
    if any(config.get(name) is None for name in needed):
        return None
    width, layers, heads, context, vocabulary = (_whole(config, name) for name in needed[:5])
    groups, head = heads, width // heads
    if names.has_groups:
        groups = _whole(config, "num_key_value_heads") if config.get("num_key_value_heads") else heads
        head = _whole(config, "head_dim") if config.get("head_dim") else head
    kinds = config.get("layer_types")
    attentions = frozenset(map(str, kinds)) if isinstance(kinds, list) else frozenset[str]()
    return ModelSizes(str(classes[0]), context, layers * groups * head * 2, width, vocabulary, attentions)


def gguf_sizes(head: GgufHead) -> ModelSizes | None:
    """Return what the head of a GGUF file says; None where our own reader does not know its architecture. ValueError
    for one that lacks a size, which every converter writes.
    """
    name = GGUF_CLASSES.get(head.architecture)
    if name is None:
        return None
    width, layers = _said(head, "embedding_length"), _said(head, "block_count")
    heads = _said(head, "attention.head_count")
    groups = head.number("attention.head_count_kv") or heads
    size = head.number("attention.key_length") or width // heads
    tokens = head.metadata.get(TOKENS)
    vocabulary = head.number("vocab_size") or (len(tokens) if isinstance(tokens, list) else _length(tokens))
    if not vocabulary:
        raise ValueError(f"it lacks {TOKENS}")
    shape = next((tensor.shape for tensor in head.tensors if tensor.name == _EMBEDDING), ())
    if shape != (vocabulary, width) or not 1 <= groups <= heads <= width or layers > len(head.tensors):
        said = (
            f"{vocabulary} words, {width} numbers of each, {heads} heads that share {groups}, {layers} layers"
        )
        raise ValueError(
            f"it says {said}, and its {len(head.tensors)} tensors, {_EMBEDDING} {shape}, say otherwise"
        )
    context = head.number("context_length")
    return ModelSizes(name, context, layers * groups * size * 2, width, vocabulary)


def _said(head: GgufHead, key: str) -> int:
    found = head.number(key)
    if found is None or found < 1:
        raise ValueError(f"it lacks {head.architecture}.{key}, or that is no whole number above 0")
    return found


def _length(tokens: object) -> int:
    return tokens if isinstance(tokens, ListLength) else 0


def _whole(config: Mapping[str, object], name: str) -> int:
    value = config[name]
    if type(value) is not int or value < 1:
        raise ValueError(f"'{name}' is {str(value)[:40]}, and a whole number above 0 is expected")
    return value


def _is_own(scaling: object) -> bool:
    """Tell whether the context depends on how positions are scaled, or that cannot be seen."""
    if scaling is None:
        return False
    if not isinstance(scaling, Mapping):
        return True
    found = [scaling, *(one for one in scaling.values() if isinstance(one, Mapping))]
    return any(one.get("rope_type", one.get("type")) in _OWN_SCALING for one in found)
