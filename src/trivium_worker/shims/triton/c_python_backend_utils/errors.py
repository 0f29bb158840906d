"""The two kinds of error of pb_utils, and what each of the codes is in the words of the server.

`TritonModelException` is raised, `TritonError` is put into a response (sheet "triton", section 8.3).
"""

from c_python_backend_utils.names import Numbered, text
from trivium_worker.wire.values import Failure


class TritonModelException(Exception):
    """Raised by a call of pb_utils that cannot be served."""


class ErrorCode(Numbered):
    """The codes of a TritonError, by the original's numbers."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7


ErrorCode.__name__ = ErrorCode.__qualname__ = "__ErrorCode"  # as it is printed


class TritonError:
    """An error of one request, for `InferenceResponse(error=...)`. TypeError where `message` is no text."""

    UNKNOWN = ErrorCode.UNKNOWN
    INTERNAL = ErrorCode.INTERNAL
    NOT_FOUND = ErrorCode.NOT_FOUND
    INVALID_ARG = ErrorCode.INVALID_ARG
    UNAVAILABLE = ErrorCode.UNAVAILABLE
    UNSUPPORTED = ErrorCode.UNSUPPORTED
    ALREADY_EXISTS = ErrorCode.ALREADY_EXISTS
    CANCELLED = ErrorCode.CANCELLED

    __slots__ = ("_code", "_message")

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INTERNAL) -> None:
        self._message = text("TritonError: message", message)
        self._code = ErrorCode(code)

    def code(self) -> ErrorCode:
        """One of the class's own constants."""
        return self._code

    def message(self) -> str:
        """The text that the client reads."""
        return self._message

    def failure(self) -> Failure:
        """The error in the words of the server."""
        code, status = _TO_SERVER.get(self._code, ("model failed", None))
        return Failure(self._message, code, status)

    @classmethod
    def of_failure(cls, failure: Failure) -> "TritonError":
        """Return the server's answer to a call, in the words of pb_utils."""
        return cls(failure.message, _FROM_SERVER.get(failure.code, ErrorCode.INTERNAL))


_TO_SERVER: "dict[ErrorCode, tuple[str, int | None]]" = {
    ErrorCode.UNKNOWN: ("unknown", None),
    ErrorCode.NOT_FOUND: ("not found", None),
    ErrorCode.INVALID_ARG: ("invalid", None),
    ErrorCode.UNAVAILABLE: ("not ready", None),
    ErrorCode.UNSUPPORTED: ("unsupported", None),
    ErrorCode.ALREADY_EXISTS: ("invalid", 409),
    ErrorCode.CANCELLED: ("cancelled", None),
}
"""Code of the server, and the HTTP status where that code's own one is not meant."""

_FROM_SERVER = {
    "not found": ErrorCode.NOT_FOUND,
    "invalid": ErrorCode.INVALID_ARG,
    "too large": ErrorCode.INVALID_ARG,
    "unsupported media": ErrorCode.INVALID_ARG,
    "unsupported": ErrorCode.UNSUPPORTED,
    "method": ErrorCode.UNSUPPORTED,
    "not ready": ErrorCode.UNAVAILABLE,
    "queue full": ErrorCode.UNAVAILABLE,
    "expired": ErrorCode.UNAVAILABLE,
    "draining": ErrorCode.UNAVAILABLE,
    "cancelled": ErrorCode.CANCELLED,
    "unknown": ErrorCode.UNKNOWN,
}
