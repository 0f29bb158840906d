"""Looks at the folder of an adapter before anything of it is computed: its configuration, and the head of its weights.

Only safetensors are weights here, as for models. It imports no library, so that `trivium check` can judge an adapter.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trivium.engines.hf.folder import StoredHead, read_head, read_json, unfit
from trivium.engines.hf.lora.config import FILE, AdapterConfig, AdapterFault, read
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.spec import ModelSpec

WEIGHTS = "adapter_model.safetensors"
_PICKLED = "adapter_model.bin"
_PREFIX = "base_model.model."
_A, _B = ".lora_A.weight", ".lora_B.weight"
_DTYPES = ("F32", "F16", "BF16")
_MOST_TENSORS = 2**18


@dataclass(frozen=True, slots=True)
class AdapterFiles:
    """One adapter's folder. `shapes` are the rank, the inputs and the outputs of each module that it changes."""

    name: str
    folder: Path
    config: AdapterConfig
    shapes: Mapping[str, tuple[int, int, int]]

    @property
    def rank(self) -> int:
        """Return the greatest rank of its matrices."""
        return max(rank for rank, _, _ in self.shapes.values())

    @property
    def numbers(self) -> int:
        """Return how many numbers its matrices have."""
        return sum(rank * (inputs + outputs) for rank, inputs, outputs in self.shapes.values())


def read_adapter(spec: ModelSpec, name: str, source: str, most_rank: int) -> AdapterFiles:
    """Return what lies in an adapter's folder, whose path is absolute or begins at the model's. LOAD_FAILED, naming the
    file and the key, for what cannot be served.
    """
    try:
        folder = spec.root / source
        if not source or not folder.is_dir():
            raise AdapterFault(
                f"there is no folder {folder}. Give the path of one with {FILE} and {WEIGHTS}."
            )
        if not (folder / FILE).is_file():
            raise AdapterFault(
                f"{folder} has no {FILE}. Give the folder that PEFT's save_pretrained has written."
            )
        config = read(read_json(spec, folder / FILE))
        if config.greatest_rank > most_rank:
            raise AdapterFault(
                f"{FILE}: its rank is {config.greatest_rank}, and max_lora_rank is {most_rank}. Set max_lora_rank to "
                f"{config.greatest_rank}."
            )
        return AdapterFiles(name, folder, config, _shapes(config, _head(spec, folder)))
    except AdapterFault as fault:
        raise adapter_error(spec, name, str(fault)) from fault
    except (OSError, ValueError) as error:
        raise adapter_error(spec, name, f"{source[:200]!r} cannot be read: {said_by(error)}.") from error


def tensor_names(module: str) -> tuple[str, str]:
    """Return what the file of weights calls a module's two matrices."""
    return f"{_PREFIX}{module}{_A}", f"{_PREFIX}{module}{_B}"


def adapter_error(spec: ModelSpec, name: str, text: str, code: Code = Code.LOAD_FAILED) -> ServeError:
    """Return the error of an adapter that cannot be served."""
    return unfit(spec, f"adapter '{name[:200]}': {text}", code)


def _head(spec: ModelSpec, folder: Path) -> Mapping[str, StoredHead]:
    if not (folder / WEIGHTS).is_file():
        if (folder / _PICKLED).is_file():
            raise AdapterFault(
                f"its weights are pickled ({_PICKLED}), and reading a pickle may run any code. Convert them once, "
                "where you trust them: load it with PeftModel.from_pretrained, then save_pretrained(NEW) writes "
                f"{WEIGHTS}."
            )
        raise AdapterFault(f"{folder} has no {WEIGHTS}. Copy the folder again.")
    return read_head(spec, folder / WEIGHTS)


def _shapes(config: AdapterConfig, head: Mapping[str, StoredHead]) -> Mapping[str, tuple[int, int, int]]:
    """Return the sizes of each module's two matrices, which have to fit one another and the configuration."""
    if len(head) > _MOST_TENSORS:
        raise AdapterFault(f"{WEIGHTS} has {len(head)} tensors; expected at most {_MOST_TENSORS}.")
    pairs: dict[str, dict[str, StoredHead]] = {}
    for key, tensor in head.items():
        module, part = _parsed(key)
        if tensor.dtype not in _DTYPES:
            raise AdapterFault(
                f"{WEIGHTS}: '{key[:200]}' is stored as {tensor.dtype[:20]}; expected one of {', '.join(_DTYPES)}. "
                "Save the adapter in one of them."
            )
        pairs.setdefault(module, {})[part] = tensor
    if not pairs:
        raise AdapterFault(f"{WEIGHTS} holds no weights. Copy the folder again.")
    return {module: _pair(config, module, pair) for module, pair in pairs.items()}


def _pair(config: AdapterConfig, module: str, pair: Mapping[str, StoredHead]) -> tuple[int, int, int]:
    shown = module[:200]
    for part in (_A, _B):
        if part not in pair:
            raise AdapterFault(f"{WEIGHTS} lacks '{_PREFIX}{shown}{part}'. Copy the folder again.")
        if len(pair[part].shape) != 2 or not math.prod(pair[part].shape):
            raise AdapterFault(
                f"{WEIGHTS}: '{_PREFIX}{shown}{part}' has the shape {list(pair[part].shape)[:8]}; expected a matrix."
            )
    (rank, inputs), (outputs, other) = pair[_A].shape, pair[_B].shape
    said = config.rank_of(module)
    if rank != other or rank != said:
        raise AdapterFault(
            f"{WEIGHTS}: the matrices of '{shown}' have the ranks {rank} and {other}, and {FILE} says {said} (r, "
            "rank_pattern). Copy both files of one adapter."
        )
    return rank, inputs, outputs


def _parsed(key: str) -> tuple[str, str]:
    """Return the module of a tensor, and which of its matrices it is. Raises AdapterFault for what is no such."""
    if key.startswith(_PREFIX):
        for part in (_A, _B):
            if key.endswith(part) and len(key) > len(_PREFIX) + len(part):
                return key[len(_PREFIX) : -len(part)], part
    shown = f"{WEIGHTS} holds '{key[:200]}'"
    if "lora_embedding" in key:
        raise AdapterFault(f"{shown}: embeddings were trained, which is not served. Merge it into its base.")
    if "lora_magnitude_vector" in key:
        raise AdapterFault(f"{shown}: the norms of DoRA are not computed here. Merge it into its base.")
    if key.startswith(_PREFIX) and ".lora_" not in key:
        raise AdapterFault(
            f"{shown}, a whole weight, which would replace that of the base. If it is the base's own, save the adapter "
            "anew with save_pretrained(NEW, save_embedding_layers=False); else merge it into its base."
        )
    raise AdapterFault(
        f"{shown}; expected keys as PEFT writes them: {_PREFIX}MODULE{_A} and {_B[1:]}. Save it anew with PEFT."
    )
