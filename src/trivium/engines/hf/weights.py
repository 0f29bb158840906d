"""Brings a model's weights into memory: mapped where they are stored as they are computed, else converted, and kept.

What is converted is written to the user's cache and mapped from there, so that the workers of a model share it. Where
it cannot be kept it is converted in memory.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import safetensors
import torch
import transformers as typed_transformers

from trivium.engines.hf.description import DescribedModel
from trivium.engines.hf.gguf_model import GgufModel
from trivium.engines.hf.quantising import library_config
from trivium.engines.hf.weights_cache import StoredTensor, WeightsCache, cache_folder, cache_key
from trivium.types.errors import said_by

transformers: Any = typed_transformers  # its classes say too little of their types

log = logging.getLogger(__name__)

TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
_STORED = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
_FORM = "1"
"""Of what is kept: another one where it is written otherwise."""

Opened = tuple[Any, Any]
"""A model, and what transformers says of its weights."""


def open_weights(told: DescribedModel, config: Any, gguf: GgufModel | None, device: torch.device) -> Opened:
    """Return the model in the data type that it is computed in. Raises whatever the libraries raise."""
    dtype = TYPES[told.dtype]
    if (quantiser := library_config(told.chosen.quantize)) is not None:
        return _from_folder(
            told, told.files.folder, config, dtype, quantization_config=quantiser, device_map={"": device}
        )
    if (
        told.files.gguf and gguf is None
    ):  # its blocks are unpacked: kernels for them would be fetched from a hub
        extra = {
            "gguf_file": told.files.gguf,
            "quantization_config": transformers.GgufConfig(dequantize=True),
        }
        return _from_folder(told, told.files.folder, None, dtype, **extra)
    if gguf is None and not _is_worth_keeping(told, dtype):
        return _from_folder(told, told.files.folder, config, dtype)
    cache = WeightsCache(cache_folder(os.environ), told.chosen.weights_cache_bytes)
    key = _key(told)
    unread = transformers.GenerationConfig()  # else it would look for one beside the weights
    if (kept := cache.get(key)) is not None:
        try:
            return _from_folder(told, kept, config, dtype, generation_config=unread)
        except Exception as error:
            log.warning(
                "Weights kept in %s cannot be read, and are converted again: %s", kept, said_by(error)
            )
            cache.drop(key)
    made = None if not told.chosen.weights_cache_bytes else _kept(told, config, gguf, dtype, cache, key)
    if made is not None:
        return _from_folder(told, made, config, dtype, generation_config=unread)
    if gguf is None:
        return _from_folder(told, told.files.folder, config, dtype)
    skeleton = _skeleton(config)
    weights = {name: torch.from_numpy(numbers).to(dtype) for name, numbers in gguf.weights(skeleton)}
    opened: Opened = type(skeleton).from_pretrained(
        None,
        config=config,
        state_dict=weights,
        dtype=dtype,
        attn_implementation="eager",
        output_loading_info=True,
    )
    return opened


def _from_folder(told: DescribedModel, folder: Path, config: Any, dtype: torch.dtype, **extra: Any) -> Opened:
    opened: Opened = transformers.AutoModelForCausalLM.from_pretrained(
        folder,
        config=config,
        dtype=dtype,
        attn_implementation="eager",
        output_loading_info=True,
        use_safetensors=True,
        **told.code.of_library(),
        **extra,
    )
    return opened


def _is_worth_keeping(told: DescribedModel, dtype: torch.dtype) -> bool:
    """Tell whether all weights of a folder are converted in one way: some classes keep some of theirs in 32 bits."""
    known = getattr(transformers, told.sizes.architecture, None)
    if told.files.stored not in _STORED.values() or told.files.stored == _STORED[dtype] or known is None:
        return False
    if "auto_map" in told.files.config or "quantization_config" in told.files.config:
        return False
    kept = getattr(known, "_keep_in_fp32_modules", None), getattr(known, "_keep_in_fp32_modules_strict", None)
    return dtype == torch.float32 or not any(kept)


def _key(told: DescribedModel) -> str:
    files = told.files
    sources = [files.folder / files.gguf] if files.gguf else list(files.weights)
    return cache_key(sources, _FORM, told.dtype, transformers.__version__)


def _kept(
    told: DescribedModel,
    config: Any,
    gguf: GgufModel | None,
    dtype: torch.dtype,
    cache: WeightsCache,
    key: str,
) -> Path | None:
    """Convert the weights into the cache, and return the folder; None where they cannot be kept."""
    if gguf is None:
        tensors, data = _of_folder(told.files.weights, dtype)
    else:
        tensors, data = _of_gguf(gguf, _skeleton(config), dtype)
    try:
        made = cache.put(key, tensors, map(_bytes, data))
    except OSError as error:
        log.info(
            "Model %s: its weights are converted to %s at each load, for they cannot be kept in %s: %s",
            *(told.files.gguf or told.files.folder, told.dtype, cache_folder(os.environ), said_by(error)),
        )
        return None
    log.info("Weights converted to %s are kept in %s.", told.dtype, made)
    return made


def _skeleton(config: Any) -> Any:
    """Return a model that has the names and shapes of its weights, and no numbers."""
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")


def _of_gguf(
    gguf: GgufModel, skeleton: Any, dtype: torch.dtype
) -> tuple[list[StoredTensor], Iterator[torch.Tensor]]:
    names, shapes = gguf.names(skeleton), skeleton.state_dict()
    ours = [names[tensor.name] for tensor in gguf.head.tensors if tensor.name in names]
    tensors = [_stored(name, tuple(shapes[name].shape), dtype) for name in ours]
    return tensors, (torch.from_numpy(numbers).to(dtype) for _, numbers in gguf.weights(skeleton))


def _of_folder(
    files: Sequence[Path], dtype: torch.dtype
) -> tuple[list[StoredTensor], Iterator[torch.Tensor]]:
    opened: list[Any] = [safetensors.safe_open(path, "pt") for path in files]
    places = [(file, name) for file in opened for name in file.keys()]  # noqa: SIM118 - it is no mapping
    tensors = []
    for file, name in places:
        found = file.get_slice(name)
        kind = found.get_dtype()
        if kind not in _STORED.values():
            raise ValueError(f"'{name}' is stored as {kind}")
        tensors.append(_stored(name, tuple(found.get_shape()), dtype))
    return tensors, (file.get_tensor(name).to(dtype) for file, name in places)


def _stored(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> StoredTensor:
    size = torch.Size(shape).numel() * dtype.itemsize
    return StoredTensor(name, _STORED[dtype], shape, size)


def _bytes(tensor: torch.Tensor) -> memoryview:
    content: Any = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    return memoryview(content)
