"""Language models in the form of Hugging Face, computed by vLLM: one engine for a model, over one GPU or several.

Always in a process of its own, which starts others: they compute, and end with it. See docs/llm.md, "vLLM".
"""

from trivium.engines.hf.vllm.facts import vllm_facts
from trivium.types.interfaces import StepOutlet, StepRunner
from trivium.types.payload import PayloadKind
from trivium.types.running import Placement
from trivium.types.spec import Isolation, ModelFacts, ModelSpec


class VllmEngine:
    """The descriptor."""

    name = "vllm"
    takes: frozenset[PayloadKind] = frozenset({PayloadKind.GENERATE})
    isolation: tuple[Isolation, ...] = (Isolation.PROCESS,)
    has_facts = True

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Return what the files say. Raises as `Engine.facts` says: UNSUPPORTED where vLLM is not installed."""
        return vllm_facts(spec)

    def open_steps(self, spec: ModelSpec, placement: Placement, outlet: StepOutlet) -> StepRunner:
        """See `OpensStepRunner`."""
        from trivium.engines.hf.vllm.opening import open_vllm

        return open_vllm(spec, placement, outlet)


ENGINE = VllmEngine()
