"""Stands in for the parts of TorchServe that this version does not support: handlers can import them, not use them."""

from typing import Any

from trivium_worker.dialects.stand_ins import FINDER

CLASSES = {
    "ts.torch_handler.dali_image_classifier": "DALIImageClassifier",
    "ts.torch_handler.vllm_handler": "VLLMHandler",
    "ts.torch_handler.trt_llm_handler": "TRTLLMHandler",
    "ts.torch_handler.distributed.base_pippy_handler": "BasePippyHandler",
    "ts.torch_handler.distributed.base_deepspeed_handler": "BaseDeepSpeedHandler",
}
"""Module -> its class, which can be extended; making an object of it, or of a subclass, raises."""

FUNCTIONS = ("ts.handler_utils.distributed.pt_pippy", "ts.handler_utils.distributed.deepspeed")
"""Modules in which every name is a function that raises when it is called."""

PACKAGES = ("ts.torch_handler.distributed", "ts.handler_utils.distributed")


_WAYS_OUT = {
    "ts.torch_handler.dali_image_classifier": "Extend ts.torch_handler.image_classifier.ImageClassifier",
    "ts.torch_handler.vllm_handler": "Name the built-in handler llm_api for a language model",
    "ts.torch_handler.trt_llm_handler": "Name the built-in handler llm_api for a language model",
    "ts.torch_handler.distributed": "Fit the model to one device, and extend BaseHandler",
    "ts.handler_utils.distributed": "Fit the model to one device, and extend BaseHandler",
}


class NotSupported(NotImplementedError):
    """Raised by a part of TorchServe that this version does not support."""


def refusal(name: str) -> NotSupported:
    """Return the error for a name."""
    ways = (way for module, way in _WAYS_OUT.items() if name.startswith(module))
    way = next(ways, "Write what you need from it into the handler")
    return NotSupported(f"{name} of TorchServe is not supported in this version. {way}.")


def _class(module: str) -> dict[str, Any]:
    name = CLASSES[module]

    def make(cls: Any, *arguments: Any, **named: Any) -> Any:
        raise refusal(f"{module}.{name}")

    return {name: type(name, (), {"__new__": make, "__module__": module})}


def _functions(module: str) -> dict[str, Any]:
    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*arguments: Any, **named: Any) -> Any:
            raise refusal(f"{module}.{name}")

        return call

    return {"__getattr__": find}


def _nothing(module: str) -> dict[str, Any]:
    return {}


FINDER.add(
    {
        **dict.fromkeys(CLASSES, _class),
        **dict.fromkeys(FUNCTIONS, _functions),
        **dict.fromkeys(PACKAGES, _nothing),
    }
)
