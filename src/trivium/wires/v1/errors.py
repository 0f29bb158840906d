"""Errors of KServe's v1 protocol: our own statuses, and the body `{"error": text}`, as TensorFlow Serving has it."""

import msgspec

from trivium.codecs.error_table import OWN_ROWS, ErrorTable, header_lines
from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON
from trivium.types.errors import ServeError
from trivium.types.wire import HttpAnswer

TABLE = ErrorTable(OWN_ROWS)


def refuse(error: ServeError, id_line: bytes = b"") -> HttpAnswer:
    """Return the error as a whole answer; Retry-After in whole seconds, 1 at least. `id_line` names the request."""
    body = msgspec.json.encode({"error": wire_text(error.message)})
    fields = id_line + JSON + header_lines(error, 1)
    return HttpAnswer(error.status or TABLE.wording(error).status, fields, (body,), len(body))
