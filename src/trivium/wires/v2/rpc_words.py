"""Errors over gRPC have Trivium's own words, or those of the server that is stood in for. See `words`."""

from typing import Protocol

from trivium.types.errors import Code, ServeError

_BY_MODEL = frozenset({Code.MODEL_FAILED, Code.WORKER_DIED, Code.OUT_OF_MEMORY, Code.UNKNOWN})


class RpcErrorTranslator(Protocol):
    """Translates an error for a client: the same error, or one with another text and status."""

    def told(self, error: ServeError, method: str, model: str = "", request_id: str = "") -> ServeError:
        """Translate an error of a call to this method, which is known by its name alone."""
        ...

    def blames_model(self, error: ServeError) -> bool:
        """Did the model fail, rather than refuse, or be refused?"""
        ...

    def forgives(self, error: ServeError, method: str) -> bool:
        """Is it no error at all to who asked this?"""
        ...


class OwnRpcErrors:
    """Errors as they are."""

    def told(self, error: ServeError, method: str, model: str = "", request_id: str = "") -> ServeError:
        """Return the same error."""
        return error

    def blames_model(self, error: ServeError) -> bool:
        """Decide by the error's code."""
        return error.code in _BY_MODEL

    def forgives(self, error: ServeError, method: str) -> bool:
        """Never."""
        return False


OWN_RPC_ERRORS = OwnRpcErrors()
