"""Says of a model that vLLM is to serve what its files tell, for a probe process: without vLLM, and without PyTorch."""

from trivium.codecs.generation import OUTPUTS
from trivium.engines.hf.facts import ends_detail, inputs, origin_of, sampling_detail
from trivium.engines.hf.lora.files import read_adapter
from trivium.engines.hf.text_settings import text_faults
from trivium.engines.hf.vllm.arguments import without_effect
from trivium.engines.hf.vllm.description import DescribedVllm, describe_vllm, shown
from trivium.engines.hf.vllm.installed import version
from trivium.types.adapters import SOURCE
from trivium.types.spec import ModelFacts, ModelSpec


def vllm_facts(spec: ModelSpec) -> ModelFacts:
    """Raises as `Engine.facts` says."""
    told = describe_vllm(spec)
    faults = text_faults(told.files, told.vocabulary, None) if told.vocabulary else ()
    warnings = (*without_effect(spec), *told.texts.warnings, *faults)
    details = _details(spec, told)
    return ModelFacts(
        inputs(told.width or -1), OUTPUTS, False, warnings, details=details, context=told.context
    )


def _details(spec: ModelSpec, told: DescribedVllm) -> dict[str, tuple[str, str]]:
    """Return what people want to know of a model, each with where it comes from."""
    own = {} if not spec.functions else {"adapters": _adapters(spec, told)}
    knows = "config.json" if told.context else "vLLM finds it when it opens the model"
    slots = told.arguments.get("max_num_seqs")
    return {
        **own,
        "architecture": (told.architecture, "config.json (architectures)"),
        "vllm": (version(), "the installed package"),
        "arguments": (shown(told.arguments), "the model's parameters, under vLLM's names"),
        "slots": (str(slots or "vLLM's own choice"), origin_of(spec, "slots", "max_num_seqs")),
        "context": (f"{told.context or 'unknown'} tokens", origin_of(spec, "max_context", knows)),
        "ends": ends_detail(told.texts, ""),
        "sampling": sampling_detail(spec, told.texts, told.chosen.generation_config),
    }


def _adapters(spec: ModelSpec, told: DescribedVllm) -> tuple[str, str]:
    """Return the adapters that are there from the start, and their bounds. LOAD_FAILED for one that is not served."""
    limits = told.adapters
    found = [
        f"{one.name} (rank {one.rank})"
        for call in spec.standing
        for one in [read_adapter(spec, call.topic, call.properties.get(SOURCE, ""), limits.rank)]
    ]
    said = f"{len(found)}: {', '.join(found)}; " if found else "none yet; "
    bounds = f"at most {limits.number}, of rank {limits.rank}"
    return said + bounds, "the folder adapters; max_cpu_loras, max_loras, max_lora_rank"
