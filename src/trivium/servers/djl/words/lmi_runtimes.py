"""The runtimes by which DJL has run language models, and the words of serving.properties that ask for one.

Source: spec sheets `djl`, section 11.1, and `llm`; which release dropped a runtime is told by DJL's notes on breaking
changes and its history. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LmiRuntime:
    """One of DJL's. `removed`: the release that dropped it, empty for one that DJL still has."""

    name: str
    removed: str = ""


VLLM = LmiRuntime("vLLM")
TRTLLM = LmiRuntime("TensorRT-LLM")
ACCELERATE = LmiRuntime("Hugging Face Accelerate")
SCHEDULER = LmiRuntime("the sequence scheduler", "0.33.0 (LMI 15)")
LMI_DIST = LmiRuntime("LMI-Dist", "0.33.0 (LMI 15)")
DEEPSPEED = LmiRuntime("DeepSpeed", "0.28.0 (LMI 10)")
NEURON = LmiRuntime("Transformers-NeuronX", "0.35.0 (November 2025)")
DIFFUSION = LmiRuntime("Stable Diffusion")
EVERY_RUNTIME = LmiRuntime("LMI")
"""Stands for what belongs to none of them alone."""


@dataclass(frozen=True, slots=True)
class LmiHandler:
    """A handler of DJL's own. One that `is_async` is asked in vLLM's own form; one that `chooses` runs what
    `option.rolling_batch` names, and has no runtime of its own.
    """

    runtime: LmiRuntime
    is_async: bool = False
    chooses: bool = False


ROLLING_BATCHES: Mapping[str, LmiRuntime] = {
    "vllm": VLLM,
    "trtllm": TRTLLM,
    "lmi-dist": LMI_DIST,
    "scheduler": SCHEDULER,
    "deepspeed": DEEPSPEED,
}
"""Values of `option.rolling_batch` that name a runtime; `auto` and `disable` name none."""

HANDLERS: Mapping[str, LmiHandler] = {
    "djl_python.huggingface": LmiHandler(ACCELERATE, chooses=True),
    "djl_python.lmi_vllm.vllm_async_service": LmiHandler(VLLM, is_async=True),
    "djl_python.lmi_trtllm.trtllm_async_service": LmiHandler(TRTLLM, is_async=True),
    "djl_python.tensorrt_llm": LmiHandler(TRTLLM),
    "djl_python.deepspeed": LmiHandler(DEEPSPEED),
    "djl_python.transformers_neuronx": LmiHandler(NEURON),
    "djl_python.transformers-neuronx": LmiHandler(NEURON),
}
"""Values of `option.entryPoint` that are DJL's own handlers of language models."""
