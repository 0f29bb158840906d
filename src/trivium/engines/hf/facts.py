"""Says what a model's files tell, for a probe process: sizes, memory, and a request as tensors."""

from dataclasses import replace

from trivium.codecs.generation import EMBEDS, INPUTS, OUTPUTS
from trivium.engines.hf.description import DescribedModel, describe
from trivium.engines.hf.lora.files import adapter_error, read_adapter
from trivium.engines.hf.lora.limits import limits_of
from trivium.engines.hf.memory import BYTES, budget
from trivium.engines.hf.options import unknown
from trivium.engines.hf.text_settings import GENERATION, TextSettings, text_faults
from trivium.machine.memory import FreeMemory
from trivium.types.adapters import SOURCE
from trivium.types.spec import Device, ModelFacts, ModelSpec, TensorSpec


def inputs(width: int) -> tuple[TensorSpec, ...]:
    """Return a request as a client of tensors sends it; `width` is that of an embedding."""
    return tuple(replace(spec, dims=(-1, width)) if spec.name == EMBEDS else spec for spec in INPUTS)


def facts(spec: ModelSpec, is_gpu: bool) -> ModelFacts:
    """Raises as `Engine.facts` says."""
    told = describe(spec, is_gpu)
    faults = text_faults(told.files, told.sizes.vocabulary, told.head)
    warnings = (*unknown(spec.parameters), *told.texts.warnings, *faults)
    found = details(spec, told, is_gpu, _free(is_gpu))
    return ModelFacts(inputs(told.sizes.width), OUTPUTS, False, warnings, details=found, context=told.context)


def _free(is_gpu: bool) -> int | None:
    """Return the free bytes where the model is to lie; None where nobody can tell."""
    wanted = Device.GPU if is_gpu else Device.CPU
    free = FreeMemory().read(with_gpus=is_gpu)
    return min((count for (device, _), count in free.items() if device is wanted), default=None)


def details(
    spec: ModelSpec, told: DescribedModel, is_gpu: bool, free: int | None
) -> dict[str, tuple[str, str]]:
    """Return what people want to know of a model, each with where it comes from."""
    need = told.need
    source = told.files.gguf or "config.json"
    demand = told.demand(is_gpu)
    held = budget(need, demand, free)
    known = told.sizes.context
    knows = "the model does not say" if known is None else f"the model knows {known}"
    memory = (
        f"at most {need.total(held.bytes) / 1e9:.2f} GB: weights {need.weights / 1e9:.2f} GB, keys and values "
        f"{held.bytes / 1e9:.2f} GB ({held.tokens} tokens, {need.per_token} bytes for each token)"
    )
    share = "default: a share of what is free, at most what the slots can fill"
    own = {} if not spec.functions else {"adapters": _adapters(spec, told)}
    return {
        **own,
        "architecture": (told.sizes.architecture, f"{source} (architectures)"),
        "vocabulary": (f"{told.sizes.vocabulary} tokens", source),
        "slots": (str(demand.slots), origin_of(spec, "slots", "default")),
        "kv_bytes": (f"{held.bytes}, which is {held.tokens} tokens", origin_of(spec, "kv_bytes", share)),
        "context": (f"{told.context} tokens per slot", origin_of(spec, "max_context", f"default; {knows}")),
        "dtype": (told.dtype, origin_of(spec, "dtype", "the checkpoint's, as the processor can compute it")),
        "memory": (memory, "an estimate; what keys and values take grows with their tokens, up to kv_bytes"),
        "ends": ends_detail(told.texts, told.files.gguf),
        "sampling": sampling_detail(spec, told.texts, told.chosen.generation_config),
    }


def _adapters(spec: ModelSpec, told: DescribedModel) -> tuple[str, str]:
    """Return the adapters that are there from the start, and their bounds. LOAD_FAILED for one that is not served."""
    limits = limits_of(told.chosen)
    found: list[str] = []
    held = 0
    for call in spec.standing:
        one = read_adapter(spec, call.topic, call.properties.get(SOURCE, ""), limits.rank)
        size = one.numbers * BYTES[told.dtype]
        if short := limits.shortage(len(found), held, size):
            raise adapter_error(spec, call.topic, short)
        held += size
        found.append(f"{call.topic} (rank {one.rank}, {size} bytes)")
    named = f"{len(found)}: {', '.join(found)}; " if found else "none yet; "
    bounds = f"at most {limits.number}, of rank {limits.rank}, in {limits.bytes} bytes"
    return named + bounds, "the folder adapters; max_cpu_loras, max_loras, max_lora_rank, lora_bytes"


def ends_detail(texts: TextSettings, gguf: str) -> tuple[str, str]:
    """Return the tokens that end a text, and where each of them is named."""
    origins = [f"{one}: {origin}" for one, origin in texts.ends.items()]
    if gguf and not texts.is_chosen:
        origins.append(f"those of {gguf}, when it is loaded")
    return ", ".join(map(str, texts.ends)) or "none known yet", "; ".join(origins) or "no file names one"


def sampling_detail(spec: ModelSpec, texts: TextSettings, chosen: str) -> tuple[str, str]:
    """Return how tokens are chosen where a request says nothing; `chosen` is the option generation_config."""
    if chosen == "none":
        return "as each request says", origin_of(spec, "generation_config", "")
    own = ", ".join(f"{name} {value:g}" for name, value in texts.sampling.items())
    if not own:
        return "as each request says", f"{GENERATION} says nothing of it"
    return own, f"{GENERATION}, unless a request says; generation_config=none switches it off"


def origin_of(spec: ModelSpec, parameter: str, default: str) -> str:
    """Return where a parameter was said; the default where it was not, or is `auto`."""
    if spec.parameters.get(parameter, "auto").strip().lower() == "auto":
        return default
    return str(spec.origin.get(f"parameters[{parameter}]", "parameter"))
