"""Language models by OpenVINO GenAI: an OpenVINO folder, or a GGUF file of Llama and Qwen, without PyTorch.

Always in a process of its own: a step holds the interpreter, and takes as long as it takes.
"""

import logging

from trivium.engines.hf.genai import description
from trivium.engines.hf.genai.options import NAME
from trivium.types.hazards import isolation_by
from trivium.types.interfaces import StepOutlet, StepRunner
from trivium.types.payload import PayloadKind
from trivium.types.running import Placement
from trivium.types.spec import Device, Isolation, ModelFacts, ModelSpec

log = logging.getLogger(__name__)


class GenaiEngine:
    """The descriptor."""

    name = NAME
    takes: frozenset[PayloadKind] = frozenset({PayloadKind.GENERATE})
    isolation: tuple[Isolation, ...] = isolation_by(description.HAZARDS)
    has_facts = True

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Return what the files say: sizes, memory, and the tensors that stand for a request. Raises as `Engine.facts`
        says.
        """
        return description.facts(spec)

    def open_steps(self, spec: ModelSpec, placement: Placement, outlet: StepOutlet) -> StepRunner:
        """See `OpensStepRunner`."""
        if placement.device is Device.GPU:
            words = "instance %s of model '%s' is placed on a GPU, and the engine %s computes on the CPU"
            log.warning(words, placement.name, spec.name, NAME)
        told = description.describe(spec)

        from trivium.engines.hf.genai.loading import open_runner

        return open_runner(spec, told, outlet)


ENGINE = GenaiEngine()
