"""Which engine generates text: a table of what was named, what lies there, and what the machine has."""

import pytest

from trivium.types.text_engines import HF, OPENVINO, VLLM, WeightForm, choose_text_engine

TENSORS, GGUF, FOLDER = WeightForm.SAFETENSORS, WeightForm.GGUF, WeightForm.OPENVINO


@pytest.mark.parametrize(
    ("asked", "form", "gpus", "has_vllm", "chosen", "why"),
    [
        ("", TENSORS, 0, False, HF, "vLLM is not installed"),
        ("", TENSORS, 0, True, HF, "there is no GPU"),
        ("", TENSORS, 2, False, HF, "vLLM is not installed"),
        ("", TENSORS, 2, True, VLLM, "vLLM is installed, and there is a GPU (2 of them)"),
        ("", GGUF, 1, True, HF, "vLLM does not open a .gguf file"),
        (VLLM, GGUF, 1, True, HF, "the engine vllm does not open a .gguf file"),
        ("", FOLDER, 2, True, OPENVINO, "the weights are files of OpenVINO"),
        (HF, TENSORS, 2, True, HF, "it was named"),
        (VLLM, TENSORS, 0, True, VLLM, "it was named"),
        (OPENVINO, GGUF, 0, False, OPENVINO, "it was named"),
        (OPENVINO, TENSORS, 0, False, HF, "openvino-llm does not open safetensors; vLLM is not installed"),
        (VLLM, FOLDER, 1, True, OPENVINO, "vllm does not open files of OpenVINO; the weights are files of"),
    ],
)
def test_what_was_named_goes_first_then_the_files_then_the_machine(asked, form, gpus, has_vllm, chosen, why):
    choice = choose_text_engine(asked, form, gpus, has_vllm)
    assert choice.name == chosen
    assert why in choice.why
