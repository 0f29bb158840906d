"""Errors in OpenAI's form: the one table from codes to statuses and OpenAI's own codes, and the error object.

Source: OpenAI's guide to error codes. A full queue is its rate limit, with Retry-After; what a field says wrong names
the field as `param`. Texts come with the errors.
"""

import msgspec

from trivium.codecs.error_table import OWN_ROWS, ErrorRow, ErrorTable, header_lines
from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.wire import HttpAnswer

TABLE = ErrorTable(
    {
        **OWN_ROWS,
        reasons.NO_ROUTE: ErrorRow(404),
        reasons.UNSERVED_FIELD: ErrorRow(400, "unsupported_parameter"),
        reasons.TOO_LONG: ErrorRow(400, "context_length_exceeded"),
        Code.UNSUPPORTED: ErrorRow(400, "unsupported_value"),
        Code.UNAUTHENTICATED: ErrorRow(401, "invalid_api_key"),
        Code.FORBIDDEN: ErrorRow(403, "permission_denied"),
        Code.NOT_FOUND: ErrorRow(404, "model_not_found"),
        Code.METHOD: ErrorRow(405, "method_not_supported"),
        Code.QUEUE_FULL: ErrorRow(429, "rate_limit_exceeded"),
        Code.NOT_READY: ErrorRow(503, "model_not_ready"),
        Code.LOAD_FAILED: ErrorRow(503, "model_not_ready"),
        Code.EXPIRED: ErrorRow(504, "timeout"),
    }
)
"""What the error object says as code is the row's type; without one it is null."""


_OF_FIELDS = (reasons.FIELD, reasons.UNSERVED_FIELD, reasons.GENERATION_FIELD, reasons.TOO_LONG)


def refuse(error: ServeError, id_line: bytes = b"") -> HttpAnswer:
    """The error as a whole answer; Retry-After in whole seconds, 1 at least. `id_line` names the request."""
    body = error_object(error)
    fields = id_line + JSON + header_lines(error, 1)
    return HttpAnswer(error.status or TABLE.wording(error).status, fields, (body,), len(body))


def error_object(error: ServeError) -> bytes:
    """The JSON object that says what is wrong."""
    told = TABLE.wording(error)
    field = error.metadata.get("field") if error.reason in _OF_FIELDS else None
    return msgspec.json.encode(
        {
            "error": {
                "message": wire_text(error.message),
                "type": _type_of(told.status),
                "param": wire_text(str(field)) if field else None,
                "code": told.type_name or None,
            }
        }
    )


def _type_of(status: int) -> str:
    if status == TABLE.rows[Code.QUEUE_FULL].status:
        return "requests"
    return "server_error" if status >= 500 else "invalid_request_error"
