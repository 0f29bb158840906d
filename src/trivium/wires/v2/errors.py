"""Errors in this protocol: our own statuses, and the body `{"error": text}`.

Source: the Open Inference Protocol v2's error object. Texts come with the errors and are not changed here, but for what
no UTF-8 can hold.
"""

import msgspec

from trivium.codecs.error_table import OWN_ROWS, ErrorRow, ErrorTable, Refusal, Wording, header_lines
from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON
from trivium.types.errors import Code, ServeError
from trivium.types.wire import HttpAnswer
from trivium.wires.v2 import request_reasons

EVENTS = b"Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
"""Of an answer in events; and of an error that is told by one, even where it is the first."""

TABLE = ErrorTable(
    {
        **OWN_ROWS,
        request_reasons.NO_CODING: ErrorRow(415, fields=b"Accept-Encoding: gzip, deflate\r\n"),
    }
)


def in_words(wording: Wording, text: str, retry_after: float | None = None) -> Refusal:
    """Return an error in another server's words, which is answered with that wording."""
    refusal = Refusal(Code.INTERNAL, text, wording, retry_after)
    refusal.is_reworded = True
    return refusal


def json_answer(status: int, body: bytes) -> HttpAnswer:
    """A whole answer with one JSON text."""
    return HttpAnswer(status, JSON, (body,), len(body))


def refuse(error: ServeError) -> HttpAnswer:
    """The error's status, text and header lines; Retry-After in whole seconds, rounded up."""
    told = TABLE.wording(error)
    fields = told.content_type + header_lines(error) + told.fields
    body = error_text(error)
    return HttpAnswer(error.status or told.status, fields, (body,), len(body), reason=told.phrase)


def error_text(error: ServeError) -> bytes:
    """The JSON object that says what is wrong."""
    return msgspec.json.encode({"error": wire_text(error.message)})
