"""Opens a model: judges its memory, loads weights and tokenizer, and tests it before it serves.

Nothing is fetched, no pickle is read, and code of the folder runs only where that is allowed. Whatever a broken or
hostile file makes a library raise is LOAD_FAILED.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from trivium.engines.hf.answers import TokenReading
from trivium.engines.hf.attention import StepAttention
from trivium.engines.hf.description import DescribedModel, read_config
from trivium.engines.hf.folder import unfit
from trivium.engines.hf.gguf_model import GgufModel, open_gguf
from trivium.engines.hf.lora.layers import AdaptedLayers, adaptable
from trivium.engines.hf.memory import KeyValueBudget, budget, shortage
from trivium.engines.hf.options import BITS_4, BITS_8, NONE
from trivium.engines.hf.plan import StepSettings
from trivium.engines.hf.pool import open_storage
from trivium.engines.hf.prefix_cache import MOST_KEPT
from trivium.engines.hf.prompt_work import TokenizerSource
from trivium.engines.hf.quantising import quantised
from trivium.engines.hf.requests import GenerationLimits
from trivium.engines.hf.self_test import self_test
from trivium.engines.hf.text_loading import open_tokenizer, text_work, token_reading, unopened
from trivium.engines.hf.token_length_policy import TokenLength
from trivium.engines.hf.weight_names import missing_fault
from trivium.engines.hf.weights import open_weights
from trivium.machine.control_group import bound_threads
from trivium.machine.helper_process import WorkOpener
from trivium.machine.memory import FreeMemory
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Device, ModelSpec

log = logging.getLogger(__name__)

_LIGHT = 2**31
"""Bytes of weights below which one thread tests a model."""

_OTHERS = "Serve it with vLLM, or with a handler in Python that calls generate."


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that has passed its test, and all that serving it takes."""

    model: Any
    attention: StepAttention
    tokenizer: Any
    reading: TokenReading
    limits: GenerationLimits
    settings: StepSettings
    budget: KeyValueBudget
    length: TokenLength
    work: WorkOpener
    """Opens the tokenizer again, in a process that reads texts."""
    sampling: Mapping[str, float]
    """The model's own, where a request says nothing."""
    layers: AdaptedLayers
    """What adapters may change; nothing of a model that takes none."""
    kept: int = 0
    """Beginnings that may be kept at once."""


def free_memory(device: torch.device) -> int | None:
    """Return how many bytes are free where a model is to lie; None where nobody can tell."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return FreeMemory().read(with_gpus=False).get((Device.CPU, 0))


def load(spec: ModelSpec, told: DescribedModel, device: torch.device, free: int | None) -> LoadedModel:
    """Return the opened model. LOAD_FAILED, OUT_OF_MEMORY, or UNSUPPORTED with what would serve it."""
    demand = told.demand(device.type == "cuda")
    if short := shortage(told.need, demand, free, told.dtype):
        raise unfit(spec, short, Code.OUT_OF_MEMORY)
    if told.chosen.threads is not None:
        torch.set_num_threads(told.chosen.threads)
    else:
        bound_threads(torch)
    with _few_threads(told.need.weights):
        return _loaded(spec, told, device, budget(told.need, demand, free))


@contextmanager
def _few_threads(weights: int) -> Iterator[None]:
    """Compute what a load computes by one thread, where that is little: several would wait for one another actively,
    which costs more processor time than all the rest of the load.
    """
    threads = torch.get_num_threads()
    if weights < _LIGHT:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _loaded(spec: ModelSpec, told: DescribedModel, device: torch.device, held: KeyValueBudget) -> LoadedModel:
    gguf = _gguf(spec, told)
    source = TokenizerSource(
        str(told.files.folder), told.files.gguf, told.chosen.trust_remote_code, gguf is not None
    )
    tokenizer = open_tokenizer(spec, source, gguf)
    model = _model(spec, told, gguf, device)
    if not model._supports_attention_backend:
        raise unfit(
            spec,
            f"{type(model).__name__} computes its attention in a way of its own, which cannot be done in "
            f"steps. {_OTHERS}",
            Code.UNSUPPORTED,
        )
    demand = told.demand(device.type == "cuda")
    slots = demand.slots
    kept = min(MOST_KEPT, held.blocks) if told.chosen.prefix_cache else 0
    attention = StepAttention(open_storage(device, demand, held, kept))
    transformers.AttentionInterface.register(attention.name, attention.attend)
    width = int(model.get_input_embeddings().weight.shape[1])
    limits = GenerationLimits(spec.name, told.context, told.sizes.vocabulary, width, held)
    layers = _layers(spec, model, limits, device)
    _test(spec, model, attention, limits, slots, told.chosen.quantize != NONE)
    log.info(
        "model '%s': %s in %s, weights %.2f GB, keys and values at most %.2f GB: %d tokens, in %d slots of at most %d",
        *(spec.name, told.sizes.architecture, told.dtype, told.need.weights / 1e9),
        *(held.bytes / 1e9, held.tokens, slots, told.context),
    )
    settings = StepSettings(slots, told.chosen.prefill_chunk, held.blocks)
    length, work = text_work(spec, source, tokenizer, limits)
    reading = token_reading(tokenizer, _ends(model, tokenizer, told))
    return LoadedModel(
        *(model, attention, tokenizer, reading, limits, settings, held, length, work, told.texts.sampling),
        layers=layers,
        kept=kept,
    )


def _model(spec: ModelSpec, told: DescribedModel, gguf: GgufModel | None, device: torch.device) -> Any:
    try:
        config = gguf.config() if gguf is not None else None
        config = config or read_config(spec, told)
        model, info = open_weights(told, config, gguf, device)
    except ServeError:
        raise
    except Exception as error:
        raise unopened(spec, "weights", error) from error
    if missing := sorted(info["missing_keys"]):
        lacking = (
            f"its files lack {len(missing)} of the weights, such as '{missing[0]}'. Copy the folder again."
        )
        raise unfit(spec, missing_fault(missing, told.files.names) or lacking)
    try:
        placed = model if told.chosen.quantize in (BITS_8, BITS_4) else model.to(device)
        return quantised(placed.eval().requires_grad_(False), told.chosen.quantize)
    except Exception as error:
        raise unopened(spec, "weights", error) from error


def _gguf(spec: ModelSpec, told: DescribedModel) -> GgufModel | None:
    """Return what our own reader has read of a GGUF file; None where there is none, or it is transformers' to read."""
    try:
        return open_gguf(told.files.folder / told.files.gguf) if told.files.gguf else None
    except Exception as error:
        raise unopened(spec, "GGUF file", error) from error


def _test(
    spec: ModelSpec,
    model: Any,
    attention: StepAttention,
    limits: GenerationLimits,
    slots: int,
    is_rough: bool,
) -> None:
    try:
        with torch.inference_mode():
            differs = self_test(model, attention, limits, slots > 1, is_rough)
    except ServeError as error:
        raise unfit(spec, error.message, error.code) from error
    except Exception as error:
        raise unopened(spec, "layers", error) from error
    if differs:
        raise unfit(
            spec,
            f"{type(model).__name__} computes something that this engine does not know: {differs}. {_OTHERS}",
            Code.UNSUPPORTED,
        )


def _layers(spec: ModelSpec, model: Any, limits: GenerationLimits, device: torch.device) -> AdaptedLayers:
    """Return what adapters may change, of a model that takes any. It still has the attention of its own."""
    try:
        return AdaptedLayers(
            adaptable(model, limits.vocabulary, limits.context, device) if spec.functions else {}
        )
    except Exception as error:
        raise unopened(spec, "layers", error) from error


def _ends(model: Any, tokenizer: Any, told: DescribedModel) -> frozenset[int]:
    """Return the tokens with which the model ends by itself: those that any of its files names."""
    named = {"the tokenizer (eos_token)": tokenizer.eos_token_id}
    if told.files.gguf:
        named["its configuration (eos_token_id)"] = model.config.eos_token_id
    ends = told.texts.with_ends(named, told.sizes.vocabulary)
    if ends or told.texts.is_chosen:
        return ends
    return told.texts.with_ends(
        {"the class": getattr(model.config, "eos_token_id", None)}, told.sizes.vocabulary
    )  # the class's own
