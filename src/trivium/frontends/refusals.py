"""Refusals of HTTP itself, whose statuses no neutral code tells apart, and how any refusal is refusal_of."""

import logging

import msgspec

from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import WireProtocol
from trivium.types.wire import HttpAnswer

_log = logging.getLogger(__name__)

_CHALLENGE = b'WWW-Authenticate: Bearer realm="trivium"\r\n'

_UNAUTHORIZED = 401

LAST_RESORT = HttpAnswer(500, b"", (), 0)
"""Where a protocol cannot even refuse."""


class HttpRefusal(ServeError):
    """Answered with `status`, whatever the protocol makes of the code; the body is the protocol's own form. A protocol
    that has a text of its own for the reason in `info` has a status of its own, too.
    """

    def __init__(
        self,
        status: int,
        code: Code,
        message: str,
        info: ErrorInfo | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code, message, retry_after, status, info)


def malformed(message: str) -> HttpRefusal:
    """The bytes are not HTTP/1.1 as RFC 9110 and RFC 9112 write it."""
    return HttpRefusal(400, Code.INVALID, message, ErrorInfo.of(reasons.NOT_HTTP))


def refusal_of(error: ServeError, protocol: WireProtocol) -> HttpAnswer:
    """The error in the protocol's form; LAST_RESORT, and a line in the log, where that raises. Who has not said who it
    is hears how to (RFC 9110 11.6.1), whatever the protocol.
    """
    try:
        answer = protocol.refuse(error)
    except Exception:
        _log.exception("refusing a request raised")
        return LAST_RESORT
    if error.code is Code.UNAUTHENTICATED and answer.status == _UNAUTHORIZED:
        return msgspec.structs.replace(answer, fields=answer.fields + _CHALLENGE)
    if isinstance(error, HttpRefusal) and error.reason in ("", reasons.NOT_HTTP):
        return msgspec.structs.replace(answer, status=error.status)
    return answer
