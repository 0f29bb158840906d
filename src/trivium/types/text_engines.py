"""Chooses which engine generates text with a model's weights, and says why.

What the operator named goes first, then what lies in the folder, then what the machine has. Pure.
"""

from dataclasses import dataclass
from enum import Enum

HF, OPENVINO, VLLM = "hf", "openvino-llm", "vllm"
"""The engines, by their names in the catalogue."""

AUTO = "auto"
WORDS = {AUTO: "", "hf": HF, "openvino": OPENVINO, "vllm": VLLM}
"""What `--text-engine` may say, and the engine that it names."""


class WeightForm(Enum):
    """Names the form in which a model's weights lie, which decides who can open them."""

    SAFETENSORS = "safetensors"
    GGUF = "a .gguf file"
    OPENVINO = "files of OpenVINO"


OPENS = {
    HF: (WeightForm.SAFETENSORS, WeightForm.GGUF),
    OPENVINO: (WeightForm.OPENVINO, WeightForm.GGUF),
    VLLM: (WeightForm.SAFETENSORS,),
}
"""Engine -> the forms that it opens."""


@dataclass(frozen=True, slots=True)
class TextEngine:
    """The engine that was chosen, by its name in the catalogue, and why, in words that end a sentence."""

    name: str
    why: str


def choose_text_engine(asked: str, form: WeightForm, gpus: int, has_vllm: bool) -> TextEngine:
    """Return the engine for weights of this form on a machine with so many GPUs; `asked` is the name of an engine, or
    empty where nobody named one.

    What was asked for and does not open this form is no choice: the engine that does is, and `why` says so.
    """
    if asked and form in OPENS[asked]:
        return TextEngine(asked, "it was named")
    instead = f"the engine {asked} does not open {form.value}; " if asked else ""
    if form is WeightForm.OPENVINO:
        return TextEngine(OPENVINO, f"{instead}the weights are {form.value}")
    if not asked and has_vllm and gpus and form in OPENS[VLLM]:
        return TextEngine(VLLM, f"vLLM is installed, and there is a GPU ({gpus} of them)")
    lack = "vLLM is not installed" if not has_vllm else "there is no GPU"
    if form not in OPENS[VLLM] and has_vllm and gpus:
        lack = f"vLLM does not open {form.value}"
    return TextEngine(HF, f"{instead}{lack}" if lack not in instead else instead.rstrip("; "))
