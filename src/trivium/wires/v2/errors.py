"""Errors in this protocol: the one table from codes to statuses, and the body `{"error": text}`.

Source: the Open Inference Protocol v2's error object; the statuses are our own judgement by RFC 9110,
section 15. Texts come with the errors and are not changed here, but for what no UTF-8 can hold.
"""

from collections.abc import Mapping
from math import ceil

import msgspec

from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON
from trivium.codecs.routes import RouteRefusal
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.wire import HttpAnswer

STATUS: Mapping[Code, int] = {
    Code.INVALID: 400,
    Code.NOT_FOUND: 404,
    Code.UNAUTHENTICATED: 401,
    Code.FORBIDDEN: 403,
    Code.METHOD: 405,
    Code.CONFLICT: 409,
    Code.TOO_LARGE: 413,
    Code.UNSUPPORTED_MEDIA: 415,
    Code.CANCELLED: 499,  # nobody reads it: the client left. The number that access logs know
    Code.MODEL_FAILED: 500,
    Code.WORKER_DIED: 500,
    Code.OUT_OF_MEMORY: 507,
    Code.UNKNOWN: 500,
    Code.INTERNAL: 500,
    Code.UNSUPPORTED: 501,
    Code.NOT_READY: 503,
    Code.QUEUE_FULL: 503,
    Code.DRAINING: 503,
    Code.LOAD_FAILED: 503,
    Code.EXPIRED: 504,
}

_PLAIN_FIELDS = b"Content-Type: text/plain\r\n"


class WireRefusal(ServeError):
    """A refusal with header lines of its own in `fields`, each with its CRLF."""

    def __init__(self, code: Code, message: str, fields: bytes, facts: ErrorInfo | None = None) -> None:
        super().__init__(code, message, info=facts)
        self.fields = fields


class TranslatedError(ServeError):
    """An error in another server's words, which is answered as it is: status, text, content type, reason phrase;
    `as_event`, on a stream of events, as the first of them.
    """

    def __init__(
        self,
        status: int,
        message: str,
        is_plain: bool = False,
        phrase: bytes | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(Code.INTERNAL, message, retry_after, status)
        self.as_event = False
        self.fields = _PLAIN_FIELDS if is_plain else JSON
        self.phrase = phrase


def json_answer(status: int, body: bytes) -> HttpAnswer:
    """A whole answer with one JSON text."""
    return HttpAnswer(status, JSON, (body,), len(body))


def refuse(error: ServeError) -> HttpAnswer:
    """The error's status, text and header lines; Retry-After in whole seconds, rounded up."""
    fields = error.fields if isinstance(error, TranslatedError) else JSON
    if error.retry_after is not None:
        fields += b"Retry-After: %d\r\n" % ceil(error.retry_after)
    if isinstance(error, WireRefusal | RouteRefusal):
        fields += error.fields
    body = error_text(error)
    phrase = error.phrase if isinstance(error, TranslatedError) else None
    return HttpAnswer(error.status or STATUS[error.code], fields, (body,), len(body), reason=phrase)


def error_text(error: ServeError) -> bytes:
    """The JSON object that says what is wrong."""
    return msgspec.json.encode({"error": wire_text(error.message)})
