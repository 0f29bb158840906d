"""Errors have Trivium's own words, or those of the server that is stood in for: over HTTP, and over gRPC.

Decides nothing about what is wrong.
"""

from trivium.types.errors import Code, ServeError
from trivium.types.wire import Target

_BY_MODEL = frozenset({Code.MODEL_FAILED, Code.WORKER_DIED, Code.OUT_OF_MEMORY, Code.UNKNOWN})


class ErrorTranslator:
    """Translates an error for a client over HTTP: here into the same error. Who stands in for another server has it
    told with another text and status.
    """

    def of_head(self, error: ServeError) -> ServeError:
        """Translate the error of a request that is refused by its head."""
        return error

    def of_request(
        self, error: ServeError, target: Target, text: bytes | memoryview, size: int
    ) -> ServeError:
        """Translate the error of a request that could not be decoded; `text` is its JSON, `size` that of its body."""
        return error

    def of_answer(self, error: ServeError, verb: str, model: str, request_id: str = "") -> ServeError:
        """Translate the error of a request that the core refused, or that failed."""
        return error

    def forgives(self, error: ServeError, verb: str) -> bool:
        """Is it no error at all to who asked this?"""
        return False

    def needs_body(self, verb: str) -> bool:
        """Is an empty body an error, and not an empty object?"""
        return False


class RpcErrorTranslator:
    """Translates an error over gRPC likewise."""

    def told(self, error: ServeError, method: str, model: str = "", request_id: str = "") -> ServeError:
        """Translate an error of a call to this method, which is known by its name alone."""
        return error

    def blames_model(self, error: ServeError) -> bool:
        """Did the model fail, rather than refuse, or be refused?"""
        return error.code in _BY_MODEL

    def forgives(self, error: ServeError, method: str) -> bool:
        """Is it no error at all to who asked this?"""
        return False


OWN_ERRORS, OWN_RPC_ERRORS = ErrorTranslator(), RpcErrorTranslator()
