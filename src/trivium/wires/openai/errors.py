"""Errors in OpenAI's form: the one table from codes to statuses, types and codes, and the error object.

Source: OpenAI's guide to error codes. A full queue is its rate limit, with Retry-After; what a field says wrong names
the field as `param`. Texts come with the errors.
"""

from collections.abc import Mapping
from math import ceil

import msgspec

from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON
from trivium.codecs.routes import RouteRefusal
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.types.wire import HttpAnswer


class OpenAiErrorRow(msgspec.Struct, frozen=True, gc=False):
    """A status, and what the error object says as type and code; an empty code is null."""

    status: int
    type: str
    code: str = ""


_REQUEST, _SERVER = "invalid_request_error", "server_error"
TABLE: Mapping[Code, OpenAiErrorRow] = {
    Code.INVALID: OpenAiErrorRow(400, _REQUEST),
    Code.UNSUPPORTED: OpenAiErrorRow(400, _REQUEST, "unsupported_value"),
    Code.UNAUTHENTICATED: OpenAiErrorRow(401, _REQUEST, "invalid_api_key"),
    Code.FORBIDDEN: OpenAiErrorRow(403, _REQUEST, "permission_denied"),
    Code.NOT_FOUND: OpenAiErrorRow(404, _REQUEST, "model_not_found"),
    Code.METHOD: OpenAiErrorRow(405, _REQUEST, "method_not_supported"),
    Code.CONFLICT: OpenAiErrorRow(409, _REQUEST),
    Code.TOO_LARGE: OpenAiErrorRow(413, _REQUEST),
    Code.UNSUPPORTED_MEDIA: OpenAiErrorRow(415, _REQUEST),
    Code.QUEUE_FULL: OpenAiErrorRow(429, "requests", "rate_limit_exceeded"),
    Code.CANCELLED: OpenAiErrorRow(499, _REQUEST),  # nobody reads it: the client left
    Code.MODEL_FAILED: OpenAiErrorRow(500, _SERVER),
    Code.UNKNOWN: OpenAiErrorRow(500, _SERVER),
    Code.WORKER_DIED: OpenAiErrorRow(500, _SERVER),
    Code.INTERNAL: OpenAiErrorRow(500, _SERVER),
    Code.NOT_READY: OpenAiErrorRow(503, _SERVER, "model_not_ready"),
    Code.LOAD_FAILED: OpenAiErrorRow(503, _SERVER, "model_not_ready"),
    Code.DRAINING: OpenAiErrorRow(503, _SERVER),
    Code.EXPIRED: OpenAiErrorRow(504, _SERVER, "timeout"),
    Code.OUT_OF_MEMORY: OpenAiErrorRow(507, _SERVER),
}


def refuse(error: ServeError, id_line: bytes = b"") -> HttpAnswer:
    """The error as a whole answer; Retry-After in whole seconds, 1 at least. `id_line` names the request."""
    fields = id_line + JSON
    if error.retry_after is not None:
        fields += b"Retry-After: %d\r\n" % max(1, ceil(error.retry_after))
    if isinstance(error, RouteRefusal):
        fields += error.fields
    body = error_object(error)
    return HttpAnswer(error.status or TABLE[error.code].status, fields, (body,), len(body))


def error_object(error: ServeError) -> bytes:
    """The JSON object that says what is wrong."""
    row = TABLE[error.code]
    code = "unsupported_parameter" if error.reason == reasons.UNSERVED_FIELD else row.code
    field = error.metadata.get("field") if error.reason in (reasons.FIELD, reasons.UNSERVED_FIELD) else None
    is_route = isinstance(error, RouteRefusal) and error.code is Code.NOT_FOUND
    return msgspec.json.encode(
        {
            "error": {
                "message": wire_text(error.message),
                "type": row.type,
                "param": wire_text(str(field)) if field else None,
                "code": None if is_route else code or None,
            }
        }
    )
