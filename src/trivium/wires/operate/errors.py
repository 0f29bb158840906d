"""Refusals of the console: a JSON object with the sentence, and the header lines that each of its answers has."""

import msgspec

from trivium.codecs.error_table import OWN_ROWS, ErrorRow, ErrorTable, header_lines
from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON
from trivium.types.errors import Code, ServeError
from trivium.types.wire import HttpAnswer

TABLE = ErrorTable({**OWN_ROWS, Code.UNSUPPORTED: ErrorRow(409), Code.LOAD_FAILED: ErrorRow(422)})
"""What does not load, or may not be changed here, is no fault of the server's."""

_POLICY = (
    b"Content-Security-Policy: default-src 'self'; img-src 'self' data: blob:; %bframe-ancestors 'none'\r\n"
)
_OTHERS = b"X-Content-Type-Options: nosniff\r\nReferrer-Policy: same-origin\r\n"
GUARDS = _POLICY % b"" + _OTHERS
"""Header lines of every answer: nothing runs but the page's own files, in nobody's frame."""

DOCS_GUARDS = _POLICY % b"style-src 'self' 'unsafe-inline'; " + _OTHERS
"""Those of the page at /docs, whose Swagger UI styles what it shows by attributes."""

NOT_STORED = b"Cache-Control: no-store\r\n"


def refuse(error: ServeError) -> HttpAnswer:
    """Return the error as a whole answer."""
    body = msgspec.json.encode({"error": wire_text(error.message)})
    fields = JSON + header_lines(error, 1) + NOT_STORED + GUARDS
    return HttpAnswer(error.status or TABLE.wording(error).status, fields, (body,), len(body))


def document(value: object) -> HttpAnswer:
    """Return a document as a whole answer."""
    body = msgspec.json.encode(value)
    return HttpAnswer(200, JSON + NOT_STORED + GUARDS, (body,), len(body))
