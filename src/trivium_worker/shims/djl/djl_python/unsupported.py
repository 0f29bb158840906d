"""Stands in for the parts of DJL's Python package that this version does not support: only using them is an error."""

from typing import Any

from trivium_worker.dialects.stand_ins import FINDER

MODULES = (
    "adapter_formatter_mixin",
    "adapter_manager_mixin",
    "async_utils",
    "chat_completions",
    "custom_handler_service",
    "deepspeed",
    "huggingface",
    "lmi_trtllm",
    "lmi_trtllm.trtllm_async_service",
    "lmi_vllm",
    "lmi_vllm.vllm_async_service",
    "properties_manager",
    "sagemaker",
    "stable_diffusion",
    "streaming_utils",
    "tensorrt_llm",
    "transformers_neuronx",
    "utils",
    "xgboost_handler",
)
"""The modules of `djl_python` that can be imported, and every name of which is a stand-in."""


class Unsupported:
    """A name without its function. Calling it, or looking anything up in it, raises NotImplementedError."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise self._refusal()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._refusal()

    def _refusal(self) -> NotImplementedError:
        return NotImplementedError(
            f"{self._name} is not supported in this version. Write the handler without it, with Input and Output."
        )


def stand_in(name: str) -> Any:
    """Return the stand-in for a class or function."""
    return Unsupported(name)


def _namespace(module: str) -> dict[str, Any]:
    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(f"{module}.{name}")

    return {"__getattr__": find}


FINDER.add({"djl_python." + module: _namespace for module in MODULES})
