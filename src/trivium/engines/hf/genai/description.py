"""Says what a model's files and options come to: its sizes, the memory that it takes, and how it is opened.

Reads files, and imports no heavy library.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trivium.codecs.generation import EMBEDS, OUTPUTS
from trivium.engines.hf.facts import ends_detail, inputs, origin_of, sampling_detail
from trivium.engines.hf.genai.model_files import GenaiFiles, model_files
from trivium.engines.hf.genai.options import EXACT, NAME, GenaiOptions, options
from trivium.engines.hf.library import require_libraries
from trivium.engines.hf.memory import KeyValueDemand, MemoryEstimate, budget
from trivium.engines.hf.options import DEFAULT_SLOTS, chosen_context
from trivium.engines.hf.text_settings import TextSettings, text_faults, text_settings
from trivium.machine.control_group import threads
from trivium.machine.memory import FreeMemory
from trivium.types.hazards import Hazard, placed_by
from trivium.types.spec import Device, ModelFacts, ModelSpec

HAZARDS = (Hazard.HOLDS, Hazard.QUARRELS, Hazard.ENDS)
WHAT = "Language models of OpenVINO"
_LIBRARIES = ("openvino_genai", "openvino_tokenizers", "openvino", "transformers")
_COPIES = {False: 2, True: 3}
"""Times that the weights of a file are in memory at most: as they are, and as they are computed with. A GGUF file's are
taken apart in between.
"""


@dataclass(frozen=True, slots=True)
class DescribedGenai:
    """A model that can be opened. `context` bounds a prompt and its answer."""

    files: GenaiFiles
    chosen: GenaiOptions
    context: int
    need: MemoryEstimate
    texts: TextSettings

    @property
    def is_exact(self) -> bool:
        """Return whether all is computed, and kept, in 32 bits."""
        return self.chosen.precision == EXACT

    @property
    def demand(self) -> KeyValueDemand:
        """Return what the model is to hold at once."""
        return KeyValueDemand(self.chosen.slots or DEFAULT_SLOTS, self.context, self.chosen.kv_bytes)

    @property
    def properties(self) -> Mapping[str, object]:
        """Return what OpenVINO compiles the model with."""
        made: dict[str, object] = {"ENABLE_CPU_PINNING": False}
        if self.is_exact:
            made |= {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
        count = threads() if self.chosen.threads is None else self.chosen.threads
        if count is not None:
            made["INFERENCE_NUM_THREADS"] = count
        return made


def describe(spec: ModelSpec) -> DescribedGenai:
    """Return what a model's files say. LOAD_FAILED, or UNSUPPORTED, for a model that cannot be served."""
    chosen = options(spec)
    require_libraries(_LIBRARIES, WHAT, NAME)
    files = model_files(spec)
    sizes = files.sizes
    context = chosen_context(spec, chosen.max_context, sizes.context)
    width = 4 if chosen.precision == EXACT else 2
    copies = _COPIES[bool(files.checkpoint.gguf)] + (chosen.precision == EXACT)
    need = MemoryEstimate(files.weights * copies, sizes.cached * width)
    texts = text_settings(spec, files.checkpoint, chosen, sizes.vocabulary)
    return DescribedGenai(files, chosen, context, need, texts)


def facts(spec: ModelSpec) -> ModelFacts:
    """Raises as `Engine.facts` says."""
    told = describe(spec)
    sizes = told.files.sizes
    faults = text_faults(told.files.checkpoint, sizes.vocabulary, told.files.head)
    warnings = (*told.texts.warnings, *faults)
    found = details(spec, told, FreeMemory().read(with_gpus=False).get((Device.CPU, 0)))
    taken = tuple(one for one in inputs(-1) if one.name != EMBEDS)
    return ModelFacts(taken, OUTPUTS, False, warnings, details=found, context=told.context)


def details(spec: ModelSpec, told: DescribedGenai, free: int | None) -> dict[str, tuple[str, str]]:
    """Return what people want to know of a model, each with where it comes from."""
    need, demand, sizes, source = told.need, told.demand, told.files.sizes, told.files.source
    held = budget(need, demand, free)
    known = "the model does not say" if sizes.context is None else f"the model knows {sizes.context}"
    memory = (
        f"at most {need.total(held.bytes) / 1e9:.2f} GB: weights {need.weights / 1e9:.2f} GB, keys and values "
        f"{held.bytes / 1e9:.2f} GB ({held.tokens} tokens, {need.per_token} bytes for each token)"
    )
    how = "in 32 bits" if told.is_exact else "as OpenVINO chooses for this processor and model"
    share = "default: a share of what is free, at most what the slots can fill"
    gguf = told.files.checkpoint.gguf
    return {
        **placed_by(HAZARDS),
        "architecture": (sizes.architecture, gguf or "config.json (architectures)"),
        "vocabulary": (f"{sizes.vocabulary} tokens", source),
        "slots": (str(demand.slots), origin_of(spec, "slots", "default")),
        "kv_bytes": (f"{held.bytes}, which is {held.tokens} tokens", origin_of(spec, "kv_bytes", share)),
        "context": (
            f"{told.context} tokens per slot",
            origin_of(spec, "max_context", f"default; {known}"),
        ),
        "precision": (how, origin_of(spec, "precision", "default")),
        "memory": (memory, "an estimate; what keys and values take grows with their tokens, up to kv_bytes"),
        "ends": ends_detail(told.texts, gguf),
        "sampling": sampling_detail(spec, told.texts, told.chosen.generation_config),
    }
