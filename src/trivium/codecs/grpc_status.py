"""Statuses of gRPC: their numbers, the one table from codes of errors to them, and texts as trailers can carry them.

Source: `google.rpc.Code`, and the gRPC protocol over HTTP/2 for the text. Pure.
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

OF_HTTP = {
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


def number_of(error: ServeError) -> int:
    """The number of an error's status; what a handler asked for goes first."""
    if error.status is not None and error.status in OF_HTTP:
        return OF_HTTP[error.status]
    return STATUS[error.code]


def ending(error: ServeError) -> RpcAnswer:
    """The end of a call with an error."""
    return RpcAnswer(code=number_of(error), details=writable(error.message))


def writable(message: str) -> str:
    """Lone surrogates, which hostile names bring, are escaped; the middle of a long text is left out."""
    data = message.encode("utf-8", "backslashreplace")
    text = data.decode()
    if 3 * len(data) <= _MOST_BYTES:  # as long as it may become: not worth writing it to see
        return text
    if len(quote(text[:_MOST_BYTES])) <= _MOST_BYTES and len(text) <= _MOST_BYTES:
        return text
    half = _MOST_BYTES // 2
    while len(quote(text[:half])) + len(quote(text[-half:])) > _MOST_BYTES - 20:
        half = half * 3 // 4
    return f"{text[:half]} [...] {text[-half:]}"
