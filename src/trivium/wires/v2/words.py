"""Errors over HTTP have Trivium's own words, or those of the server that is stood in for.

Decides nothing about what is wrong.
"""

from typing import Protocol

from trivium.types.errors import ServeError
from trivium.types.wire import Target


class ErrorTranslator(Protocol):
    """Translates an error for a client: the same error, or one with another text and status."""

    def of_head(self, error: ServeError) -> ServeError:
        """Translate the error of a request that is refused by its head."""
        ...

    def of_request(
        self, error: ServeError, target: Target, text: bytes | memoryview, size: int
    ) -> ServeError:
        """Translate the error of a request that could not be decoded; `text` is its JSON, `size` that of its body."""
        ...

    def of_answer(self, error: ServeError, verb: str, model: str, request_id: str = "") -> ServeError:
        """Translate the error of a request that the core refused, or that failed."""
        ...

    def forgives(self, error: ServeError, verb: str) -> bool:
        """Is it no error at all to who asked this?"""
        ...

    def needs_body(self, verb: str) -> bool:
        """Is an empty body an error, and not an empty object?"""
        ...


class OwnErrors:
    """Errors as they are."""

    def of_head(self, error: ServeError) -> ServeError:
        """Return the same error."""
        return error

    def of_request(
        self, error: ServeError, target: Target, text: bytes | memoryview, size: int
    ) -> ServeError:
        """Return the same error."""
        return error

    def of_answer(self, error: ServeError, verb: str, model: str, request_id: str = "") -> ServeError:
        """Return the same error."""
        return error

    def forgives(self, error: ServeError, verb: str) -> bool:
        """Never."""
        return False

    def needs_body(self, verb: str) -> bool:
        """Never."""
        return False


OWN_ERRORS = OwnErrors()
