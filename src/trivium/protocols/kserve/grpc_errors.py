"""Turns errors into gRPC statuses: the one table from codes to status numbers, and the text of the status.

Source: spec sheet `triton`, section 5.3; the numbers are those of gRPC's `google.rpc.Code`. Texts come with
the errors and are only made short enough for a trailer.
"""

from collections.abc import Mapping
from urllib.parse import quote

from trivium.types.errors import Code, ServeError
from trivium.types.wire import RpcAnswer

(
    OK,
    CANCELLED,
    UNKNOWN,
    INVALID_ARGUMENT,
    DEADLINE_EXCEEDED,
    NOT_FOUND,
    ALREADY_EXISTS,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION,
    ABORTED,
    OUT_OF_RANGE,
    UNIMPLEMENTED,
    INTERNAL,
    UNAVAILABLE,
    DATA_LOSS,
    UNAUTHENTICATED,
) = range(17)

STATUS: Mapping[Code, int] = {
    Code.INVALID: INVALID_ARGUMENT,
    Code.NOT_FOUND: NOT_FOUND,
    Code.UNAUTHENTICATED: UNAUTHENTICATED,
    Code.FORBIDDEN: PERMISSION_DENIED,
    Code.CONFLICT: ALREADY_EXISTS,
    Code.METHOD: UNIMPLEMENTED,
    Code.TOO_LARGE: RESOURCE_EXHAUSTED,
    Code.UNSUPPORTED_MEDIA: INVALID_ARGUMENT,
    Code.CANCELLED: CANCELLED,
    Code.MODEL_FAILED: INTERNAL,
    Code.WORKER_DIED: INTERNAL,
    Code.OUT_OF_MEMORY: RESOURCE_EXHAUSTED,
    Code.UNKNOWN: UNKNOWN,
    Code.INTERNAL: INTERNAL,
    Code.UNSUPPORTED: UNIMPLEMENTED,
    Code.NOT_READY: UNAVAILABLE,
    Code.QUEUE_FULL: UNAVAILABLE,
    Code.DRAINING: UNAVAILABLE,
    Code.LOAD_FAILED: INTERNAL,
    Code.EXPIRED: DEADLINE_EXCEEDED,
}

_OF_HTTP = {
    400: INVALID_ARGUMENT,
    401: UNAUTHENTICATED,
    403: PERMISSION_DENIED,
    404: NOT_FOUND,
    409: ABORTED,
    413: RESOURCE_EXHAUSTED,
    429: RESOURCE_EXHAUSTED,
    499: CANCELLED,
    501: UNIMPLEMENTED,
    503: UNAVAILABLE,
    504: DEADLINE_EXCEEDED,
    507: RESOURCE_EXHAUSTED,
}
"""For a status that a handler asked for, in HTTP's numbers."""

_MOST_BYTES = 4000
"""Bytes of a status's text as it travels, percent-encoded: clients take 8 KiB of trailers in all."""


class StreamRefusal(ServeError):
    """A refusal of one request of a stream that could be read far enough to know its `request_id`."""

    def __init__(self, error: ServeError, request_id: str, model: str = "") -> None:
        super().__init__(error.code, error.message, error.retry_after, error.status, error.info)
        self.request_id = request_id
        self.model = model


class TranslatedRpcError(ServeError):
    """An error in another server's words, which is sent as it is, with that status number."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(Code.INTERNAL, message)
        self.number = number


def status_of(error: ServeError) -> int:
    """Its number; what a handler asked for goes first."""
    if isinstance(error, TranslatedRpcError):
        return error.number
    if error.status is not None and error.status in _OF_HTTP:
        return _OF_HTTP[error.status]
    return STATUS[error.code]


def refuse(error: ServeError) -> RpcAnswer:
    """The end of the call."""
    return RpcAnswer(code=status_of(error), details=writable(error.message))


def writable(message: str) -> str:
    """Lone surrogates, which hostile names bring, are escaped; the middle of a long text is left out."""
    text = message.encode("utf-8", "backslashreplace").decode()
    if len(quote(text[:_MOST_BYTES])) <= _MOST_BYTES and len(text) <= _MOST_BYTES:
        return text
    half = _MOST_BYTES // 2
    while len(quote(text[:half])) + len(quote(text[-half:])) > _MOST_BYTES - 20:
        half = half * 3 // 4
    return f"{text[:half]} [...] {text[-half:]}"
