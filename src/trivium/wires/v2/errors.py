"""Errors in this protocol: the one table from codes to statuses, and the body `{"error": text}`.

Source: the Open Inference Protocol v2's error object; the statuses are our own judgement by RFC 9110,
section 15. Texts come with the errors and are not changed here, but for what no UTF-8 can hold.
"""

from collections.abc import Mapping

import msgspec

from trivium.codecs.error_table import ErrorRow, ErrorTable, Refusal, Told, header_lines
from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON
from trivium.types.errors import Code, ServeError
from trivium.types.wire import HttpAnswer
from trivium.wires.v2 import request_reasons

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
EVENTS = b"Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
"""Of an answer in events; and of an error that is told by one, even where it is the first."""

TABLE = ErrorTable(
    {
        **{code: ErrorRow(status) for code, status in STATUS.items()},
        request_reasons.NO_CODING: ErrorRow(415, fields=b"Accept-Encoding: gzip, deflate\r\n"),
    }
)


def in_words(told: Told, text: str, retry_after: float | None = None) -> Refusal:
    """Return an error in another server's words, which is answered as it is told."""
    return Refusal(Code.INTERNAL, text, told, retry_after)


def json_answer(status: int, body: bytes) -> HttpAnswer:
    """A whole answer with one JSON text."""
    return HttpAnswer(status, JSON, (body,), len(body))


def refuse(error: ServeError) -> HttpAnswer:
    """The error's status, text and header lines; Retry-After in whole seconds, rounded up."""
    told = TABLE.told(error)
    fields = told.content_type + header_lines(error) + told.fields
    body = error_text(error)
    return HttpAnswer(error.status or told.status, fields, (body,), len(body), reason=told.phrase)


def error_text(error: ServeError) -> bytes:
    """The JSON object that says what is wrong."""
    return msgspec.json.encode({"error": wire_text(error.message)})
