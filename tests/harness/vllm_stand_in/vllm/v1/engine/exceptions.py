"""What the engine raises for its requests."""

from vllm.exceptions import VLLMServerError


class EngineGenerateError(VLLMServerError):
    """One request failed."""


class EngineDeadError(VLLMServerError):
    """The engine is no more."""
