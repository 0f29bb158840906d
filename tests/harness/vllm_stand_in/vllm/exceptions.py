"""What vLLM raises."""


class VLLMError(Exception):
    """Any of them."""


class VLLMClientError(VLLMError):
    """A request is at fault."""


class VLLMServerError(VLLMError):
    """The engine is at fault."""


class VLLMValidationError(VLLMClientError):
    """A request cannot be served, and its parameter is named."""

    def __init__(self, message, *, parameter=None, value=None):
        super().__init__(message)
        self.parameter = parameter
        self.value = value
