"""Reads what a PEFT folder's adapter_config.json means: ranks, scales, and which modules of a model are changed.

Whatever would change an answer and is not computed here is refused by its key, with the way out. Which modules have
weights, the file of weights says: patterns of the configuration are only compared with that. Pure.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

FILE = "adapter_config.json"
ALL_LINEAR = "all-linear"
MOST_RANK = 4096
_MERGE = "Merge it into its base once: PeftModel.merge_and_unload(), save_pretrained(NEW), and serve NEW"
_RETRAIN = f"Train it without, or serve the merged model. {_MERGE}"

_UNSERVED: Mapping[str, str] = {
    "use_dora": f"the norms of DoRA are not computed here. {_RETRAIN}",
    "use_qalora": f"its inputs are pooled. {_RETRAIN}",
    "use_bdlora": f"its matrices are made of blocks. {_RETRAIN}",
    "lora_bias": f"a bias of its own is not added here. {_RETRAIN}",
    "modules_to_save": f"whole modules were trained, and replace those of the base. {_MERGE}",
    "trainable_token_indices": f"embeddings were trained. {_MERGE}",
    "target_parameters": f"parameters that are no module's weight are changed, such as those of experts. {_MERGE}",
    "alora_invocation_tokens": "it holds from certain tokens on alone. Train it as a plain LoRA",
    "layer_replication": f"layers are repeated, which makes another model. {_MERGE}",
    "megatron_config": "it belongs to Megatron's layers. Convert it to PEFT's",
}
"""Keys whose values change what is computed, and why each is not served."""

_NEUTRAL = frozenset(
    {
        *("task_type", "peft_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision"),
        *("inference_mode", "r", "target_modules", "exclude_modules", "lora_alpha", "lora_dropout"),
        *("fan_in_fan_out", "bias", "use_rslora", "init_lora_weights", "layers_to_transform"),
        *("layers_pattern", "rank_pattern", "alpha_pattern", "megatron_core", "runtime_config"),
        *("loftq_config", "eva_config", "qalora_group_size", "ensure_weight_tying"),
    }
)
"""Keys that are read below, or say how an adapter was trained."""

_STARTS = (True, False, None, "gaussian", "eva", "orthogonal")
_REPEATED_GROUP = re.compile(r"\)[*+{?]")
_QUANTIFIER = re.compile(r"[*+{?]")
_MOST_PATTERN, _MOST_QUANTIFIERS = 200, 3


class AdapterFault(Exception):
    """Says what is wrong with an adapter's folder, and what to do about it."""


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """Holds what a folder says of its adapter. `layers` are those that it is for, all where there are none."""

    rank: int
    alpha: float
    has_stable_rank: bool = False
    ranks: Mapping[str, int] = field(default_factory=dict)
    alphas: Mapping[str, float] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    layers: frozenset[int] = frozenset()

    @property
    def greatest_rank(self) -> int:
        """Return the greatest rank that one of its modules may have."""
        return max(self.rank, *self.ranks.values(), 1)

    def rank_of(self, module: str) -> int:
        """Return the rank of a module's matrices."""
        return next((rank for pattern, rank in self.ranks.items() if _names(pattern, module)), self.rank)

    def scale_of(self, module: str) -> float:
        """Return what the change of a module is multiplied by."""
        alpha = next((alpha for pattern, alpha in self.alphas.items() if _names(pattern, module)), self.alpha)
        rank = self.rank_of(module)
        return alpha / math.sqrt(rank) if self.has_stable_rank else alpha / rank


def read(document: Mapping[str, object]) -> AdapterConfig:
    """Return what a configuration says. Raises AdapterFault for what is not served here, or cannot be."""
    kind = document.get("peft_type")
    if kind != "LORA":
        raise _fault(
            "peft_type", kind, "expected LORA, the one kind that is served. Merge it, and serve the model"
        )
    task = document.get("task_type")
    if task not in (None, "CAUSAL_LM"):
        raise _fault("task_type", task, "expected CAUSAL_LM: only text is generated here")
    if document.get("bias", "none") != "none":
        raise _fault("bias", document["bias"], f"expected none: biases were trained, too. {_MERGE}")
    for key, why in _UNSERVED.items():
        if document.get(key):
            raise _fault(key, document[key], why)
    for key, value in document.items():
        if value and key not in _NEUTRAL and key not in _UNSERVED:
            raise _fault(key, value, f"this version does not know what it changes. {_MERGE}")
    if (start := document.get("init_lora_weights")) not in _STARTS:
        way = "Save it with path_initial_model_for_weight_conversion, which makes it a plain LoRA"
        raise _fault("init_lora_weights", start, f"such a start changes the weights of the base. {way}")
    targets = document.get("target_modules")
    return AdapterConfig(
        _rank("r", document.get("r")),
        _number("lora_alpha", document.get("lora_alpha", 8)),
        bool(document.get("use_rslora")),
        {name: _rank(f"rank_pattern.{name}", rank) for name, rank in _pattern(document, "rank_pattern")},
        {
            name: _number(f"alpha_pattern.{name}", alpha)
            for name, alpha in _pattern(document, "alpha_pattern")
        },
        tuple(str(one) for one in targets) if isinstance(targets, list) else (),
        _layers(document),
    )


def judge_modules(config: AdapterConfig, changed: Iterator[str] | list[str], known: list[str]) -> None:
    """Compare the modules that have weights with those that the configuration is for. Raises AdapterFault."""
    found = list(changed)
    for name in found:
        if config.layers and not any(int(one) in config.layers for one in name.split(".") if one.isdecimal()):
            raise AdapterFault(
                f"{FILE}: layers_to_transform does not hold the layer of '{name}', which has weights. Save the adapter "
                "anew with PEFT."
            )
        if config.targets and ALL_LINEAR not in config.targets and not _is_meant(name, config.targets):
            raise AdapterFault(
                f"{FILE}: target_modules does not name '{name}', which has weights. Save the adapter anew with PEFT."
            )
    for target in config.targets:
        lacks = not any(_is_meant(name, (target,)) for name in found)
        if target != ALL_LINEAR and lacks and any(_is_meant(name, (target,)) for name in known):
            raise AdapterFault(
                f"{FILE}: target_modules names '{target}', of which there are no weights. Copy the folder again."
            )


def _is_meant(module: str, targets: tuple[str, ...]) -> bool:
    return any(module == target or module.endswith(f".{target}") for target in targets)


def _names(pattern: str, module: str) -> bool:
    """Tell whether a key of a pattern means a module, as PEFT does: by its end, or as an expression."""
    return re.match(rf"(.*\.)?({pattern})$", module) is not None


def _pattern(document: Mapping[str, object], key: str) -> Iterator[tuple[str, object]]:
    found = document.get(key) or {}
    if not isinstance(found, dict):
        raise _fault(
            key, found, "expected an object from modules to numbers. Save the adapter anew with PEFT"
        )
    for name, value in found.items():
        simple = len(name) <= _MOST_PATTERN and not _REPEATED_GROUP.search(name)
        if not simple or len(_QUANTIFIER.findall(name)) > _MOST_QUANTIFIERS:
            raise _fault(key, name, "expected names of modules, or short expressions. Write the names")
        try:
            re.compile(name)
        except (re.error, RecursionError, OverflowError) as error:
            raise _fault(key, name, f"it is no expression ({error}). Write the names") from error
        yield name, value


def _layers(document: Mapping[str, object]) -> frozenset[int]:
    found = document.get("layers_to_transform")
    if found is None or found == []:
        return frozenset()
    layers = found if isinstance(found, list) else [found]
    if not all(type(one) is int and one >= 0 for one in layers):
        raise _fault(
            "layers_to_transform", found, "expected numbers of layers. Save the adapter anew with PEFT"
        )
    return frozenset(layers)


def _rank(key: str, value: object) -> int:
    if type(value) is not int or not 1 <= value <= MOST_RANK:
        raise _fault(key, value, f"expected a rank from 1 to {MOST_RANK}. Save the adapter anew with PEFT")
    return value


def _number(key: str, value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(number := _as_float(value)):
        raise _fault(key, value, "expected a number. Save the adapter anew with PEFT")
    return number


def _as_float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf


def _fault(key: str, value: object, why: str) -> AdapterFault:
    try:
        shown = repr(value)[:80]
    except (ValueError, RecursionError):
        shown = f"a {type(value).__name__} that is too large to print"
    said = "missing" if value is None else f"is {shown}"
    return AdapterFault(f"{FILE}: {key[:100]} {said}; {why}.")
