"""Language models in the form of Hugging Face: a folder, or a GGUF file, served in rolling batches.

Always in a process of its own: a step holds the interpreter, and takes as long as it takes. What is computed when is
`plan`'s to say.
"""

from trivium.engines.hf.description import DescribedModel, describe
from trivium.engines.hf.facts import facts
from trivium.engines.hf.folder import unfit
from trivium.engines.hf.options import options
from trivium.types.errors import ServeError
from trivium.types.interfaces import StepOutlet, StepRunner
from trivium.types.payload import PayloadKind
from trivium.types.running import Placement
from trivium.types.spec import Device, Isolation, ModelFacts, ModelSpec


class HfEngine:
    """The descriptor."""

    name = "hf"
    takes: frozenset[PayloadKind] = frozenset({PayloadKind.GENERATE})
    isolation: tuple[Isolation, ...] = (Isolation.PROCESS,)
    has_facts = True

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Return what the files say: sizes, memory, and the tensors that stand for a request. Raises as `Engine.facts`
        says.
        """
        return facts(spec, any(group.device is Device.GPU for group in spec.groups))

    def runs_folder_code(self, spec: ModelSpec) -> bool:
        """See `RunsFolderCode`: where its operator trusts the folder, and there is any."""
        try:
            is_trusted = options(spec).trust_remote_code
        except ServeError:  # the engine says so when it is asked
            return False
        return is_trusted and any((spec.root / spec.entry).parent.glob("*.py"))

    def open_steps(self, spec: ModelSpec, placement: Placement, outlet: StepOutlet) -> StepRunner:
        """See `OpensStepRunner`."""
        told = describe(spec, placement.device is Device.GPU)
        return _open(spec, told, placement, outlet)


def _open(spec: ModelSpec, told: DescribedModel, placement: Placement, outlet: StepOutlet) -> StepRunner:
    import torch

    from trivium.engines.hf.loading import free_memory, load
    from trivium.engines.hf.lora.adapters import Adapters
    from trivium.engines.hf.lora.limits import limits_of
    from trivium.engines.hf.processors import load_processors
    from trivium.engines.hf.prompts import PromptTokenizer
    from trivium.engines.hf.runner import RollingRunner
    from trivium.engines.hf.slots import SlotTable
    from trivium.engines.hf.text_loading import prompt_reader
    from trivium.engines.hf.weights import TYPES

    device = torch.device("cpu")
    if placement.device is Device.GPU:
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if placement.device_id >= count:
            raise unfit(
                spec,
                f"instance {placement.name} is to run on GPU {placement.device_id}, and this PyTorch sees {count} "
                "GPUs. Install a PyTorch for CUDA, name another GPU, or use the CPU.",
            )
        device = torch.device("cuda", placement.device_id)
    processors = load_processors(spec.name, told.chosen.logits_processors, told.files.folder, told.code)
    loaded = load(spec, told, device, free_memory(device))
    texts = PromptTokenizer(loaded.tokenizer, loaded.limits, loaded.length)
    adapters = Adapters(spec, loaded.layers, limits_of(told.chosen), TYPES[told.dtype], device)
    return RollingRunner(
        loaded.model,
        loaded.attention,
        SlotTable(loaded.settings.slots, loaded.attention.storage, loaded.budget, loaded.kept),
        prompt_reader(spec, texts, loaded.work, loaded.settings.slots, outlet.wake),
        loaded.reading,
        loaded.limits,
        loaded.settings,
        loaded.sampling,
        processors,
        adapters,
        outlet,
    )


ENGINE = HfEngine()
