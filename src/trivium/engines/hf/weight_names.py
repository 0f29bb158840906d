"""Judges the names of a folder's weights: a missing head, and what a trainer has put in front of all of them.

This is pure. What class a name belongs to is transformers' to know; here are the faults that people meet, by looks.
"""

from collections.abc import Collection, Mapping

HEAD, EMBEDDING = "lm_head.weight", "embed_tokens.weight"
_WRAPPERS = ("module.", "_orig_mod.", "base_model.model.")
"""What DistributedDataParallel, torch.compile and PEFT put in front of each name."""

_UNTIED = frozenset({"llama", "mistral", "mixtral", "qwen2", "qwen3", "phi3"})
"""Kinds that have a head of their own, where the configuration does not say."""


def name_fault(config: Mapping[str, object], names: Collection[str]) -> str:
    """Return a sentence for what is wrong with the names of a folder's weights; empty where nothing is seen."""
    prefix = ""
    while wrapper := next((one for one in _WRAPPERS if _have(names, prefix + one)), ""):
        prefix += wrapper
    return prefix_fault(prefix, names) if prefix else _head_fault(config, names)


def missing_fault(missing: Collection[str], names: Collection[str]) -> str:
    """Return a sentence for missing weights, where all names of a model's files have something in front."""
    prefix = ""
    for part in min(names, default="").split(".")[:-1]:
        if not _have(names, f"{prefix}{part}."):
            break
        prefix += f"{part}."
    bare = {name.removeprefix(prefix) for name in names}
    return prefix_fault(prefix, names) if prefix and bare.intersection(missing) else ""


def prefix_fault(prefix: str, names: Collection[str]) -> str:
    """Return a sentence for a beginning that all names share."""
    some = min(names)
    return (
        f"all names of its weights begin with '{prefix}', such as '{some}'; expected '{some.removeprefix(prefix)}'. "
        "It was saved from a wrapped model: save the inner one (model.module, or model._orig_mod) by save_pretrained, "
        f"or take '{prefix}' off each name with safetensors.torch's load_file and save_file."
    )


def _head_fault(config: Mapping[str, object], names: Collection[str]) -> str:
    tied = config.get("tie_word_embeddings")
    is_own = tied is False or (tied is None and config.get("model_type") in _UNTIED)
    has_embedding = any(name.endswith(EMBEDDING) for name in names)
    if not is_own or not has_embedding or any("lm_head" in name or "embed_out" in name for name in names):
        return ""
    said = (
        "config.json has tie_word_embeddings false"
        if tied is False
        else "config.json does not tie it to the embedding"
    )
    return (
        f"its files have no weight '{HEAD}', and {said}; expected both embedding and head. If the model was trained "
        'with the two as one, write "tie_word_embeddings": true into config.json; else save it again with its head.'
    )


def _have(names: Collection[str], prefix: str) -> bool:
    return bool(names) and all(name.startswith(prefix) for name in names)
