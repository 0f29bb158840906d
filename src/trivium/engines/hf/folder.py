"""Looks at the files of a model before anything heavy opens them: what they say of it, and whether they can be served.

Only safetensors and GGUF are weights here: reading a pickle may run any code. The head of a safetensors file tells how
many numbers it has, and whether it is whole.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trivium.engines.hf.folder_code import FolderCode
from trivium.engines.hf.weight_names import name_fault
from trivium.types.errors import Code, ServeError
from trivium.types.spec import ModelSpec

CONFIG, INDEX, WEIGHTS = "config.json", "model.safetensors.index.json", "model.safetensors"
_PICKLES = ("pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt")
_MOST_JSON = 2**26
_MOST_HEAD = 100_000_000
_KINDS = ("ForCausalLM", "LMHeadModel")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model's files. `gguf` is the name of the one file, or empty; then `config` is what config.json says. The
    `weights` are files of safetensors, with `names` and `numbers`, most of them `stored` as the data type of that name:
    F32, F16, BF16.
    """

    folder: Path
    gguf: str = ""
    config: Mapping[str, object] = field(default_factory=dict)
    numbers: int = 0
    stored: str = ""
    weights: tuple[Path, ...] = ()
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StoredHead:
    """One tensor, as the head of a safetensors file tells of it."""

    dtype: str
    shape: tuple[int, ...]


def checkpoint(spec: ModelSpec, code: FolderCode, is_causal: bool = True) -> Checkpoint:
    """Return what lies at a spec's entry: a causal language model, or a model of any class. LOAD_FAILED for what is no
    whole model, UNSUPPORTED for one that needs code of its own, or has pickled weights.
    """
    path = spec.root / spec.entry
    if path.suffix.lower() == ".gguf":
        return _gguf(spec, path)
    folder = path.parent if path.name == CONFIG else path
    config = read_json(spec, folder / CONFIG)
    _judge_config(spec, config, code, is_causal)
    files = list(_weights(spec, folder))
    kinds: Counter[str] = Counter()
    names: set[str] = set()
    for file in files:
        kinds.update(_counts(spec, file, names))
    if is_causal and (fault := name_fault(config, names)):
        raise unfit(spec, fault)
    stored = max(kinds, key=lambda kind: kinds[kind], default="")
    return Checkpoint(
        folder,
        config=config,
        numbers=kinds.total(),
        stored=stored,
        weights=tuple(files),
        names=frozenset(names),
    )


def unfit(spec: ModelSpec, text: str, code: Code = Code.LOAD_FAILED) -> ServeError:
    """Return the error of a model that cannot be opened."""
    return ServeError(code, f"Model '{spec.name}': {text}")


def architecture(config: Mapping[str, object]) -> str:
    """Return the class that a configuration names; empty for none."""
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def _gguf(spec: ModelSpec, path: Path) -> Checkpoint:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise unfit(spec, f"{path} cannot be read: {error.strerror}.") from error
    if magic != b"GGUF":
        raise unfit(spec, f"{path} begins with {magic!r}; expected a GGUF file, which begins with b'GGUF'.")
    return Checkpoint(path.parent, gguf=path.name)


def _judge_config(spec: ModelSpec, config: Mapping[str, object], code: FolderCode, is_causal: bool) -> None:
    name = architecture(config)
    if is_causal and not name.endswith(_KINDS):
        raise unfit(
            spec,
            f"{CONFIG} names the architecture '{name or 'none'}'; expected a causal language model, "
            "such as LlamaForCausalLM.",
            Code.UNSUPPORTED,
        )
    if config.get("auto_map"):
        code.require(f"{CONFIG} has 'auto_map'")


def read_json(spec: ModelSpec, path: Path) -> Mapping[str, object]:
    """Return the object that a file holds. LOAD_FAILED where there is none, or it is too large."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_JSON + 1)
        if len(text) > _MOST_JSON:
            raise unfit(spec, f"{path.name} has more than {_MOST_JSON} bytes.")
        told = json.loads(text)
    except OSError as error:
        raise unfit(spec, f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise unfit(spec, f"{path} is no JSON: {error}.") from error
    if not isinstance(told, dict):
        raise unfit(spec, f"{path} holds no JSON object.")
    return told


def _weights(spec: ModelSpec, folder: Path) -> Iterator[Path]:
    if (folder / WEIGHTS).is_file():
        yield folder / WEIGHTS
        return
    if (folder / INDEX).is_file():
        mapped = read_json(spec, folder / INDEX).get("weight_map")
        names = sorted({str(name) for name in mapped.values()}) if isinstance(mapped, dict) else []
        for name in names:
            if "/" in name or "\\" in name or not (folder / name).is_file():
                raise unfit(spec, f"{INDEX} names the file '{name}', which is not in {folder}.")
            yield folder / name
        if names:
            return
    if pickles := sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern)):
        raise unfit(
            spec,
            f"its weights are pickled ({pickles[0]}), and reading a pickle may run any code. Convert them once, where "
            "you trust them: AutoModelForCausalLM.from_pretrained(folder).save_pretrained(new_folder) writes "
            "safetensors.",
            Code.UNSUPPORTED,
        )
    raise unfit(spec, f"there are no weights in {folder}; expected {WEIGHTS}, or {INDEX} and its files.")


def _counts(spec: ModelSpec, path: Path, names: set[str]) -> Mapping[str, int]:
    """Return how many numbers of each data type a safetensors file holds, and add its names. LOAD_FAILED for one that
    is not whole.
    """
    counts: Counter[str] = Counter()
    for name, tensor in read_head(spec, path).items():
        counts[tensor.dtype] += math.prod(tensor.shape)
        names.add(name)
    return counts


def read_head(spec: ModelSpec, path: Path) -> Mapping[str, StoredHead]:
    """Return what the head of a safetensors file says of its tensors. LOAD_FAILED for one that is not whole."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(_MOST_HEAD, size - 8):
                raise ValueError(f"its head would have {length} bytes, and the file has {size}")
            head = json.loads(file.read(length))
        found: dict[str, StoredHead] = {}
        for name, tensor in head.items():
            if name == "__metadata__":
                continue
            if tensor["data_offsets"][1] > size - 8 - length:
                raise ValueError(f"it ends before the tensor '{name}' does: it is truncated")
            shape = tuple(tensor["shape"])
            if not all(type(size) is int and size >= 0 for size in shape):
                raise ValueError(f"the shape of '{name}' is none")
            found[name] = StoredHead(str(tensor["dtype"]), shape)
    except OSError as error:
        raise unfit(spec, f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        text = str(error) or type(error).__name__
        raise unfit(spec, f"{path.name} is no whole safetensors file: {text}. Copy it again.") from error
    return found
