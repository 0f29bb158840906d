"""Refusals over HTTP: of what is none, and of any other error by a protocol."""

import logging

import msgspec

from trivium.codecs.error_table import CHALLENGE
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import WireProtocol
from trivium.types.wire import HttpAnswer

_log = logging.getLogger(__name__)

_UNAUTHORIZED = 401

LAST_RESORT = HttpAnswer(500, b"", (), 0)
"""Where a protocol cannot even refuse."""


def malformed(message: str) -> ServeError:
    """The bytes are not HTTP/1.1 as RFC 9110 and RFC 9112 write it."""
    return ServeError(Code.INVALID, message, status=400, info=ErrorInfo.of(reasons.NOT_HTTP))


def refusal_of(error: ServeError, protocol: WireProtocol) -> HttpAnswer:
    """The error in the protocol's form; LAST_RESORT, and a line in the log, where that raises. A status that the error
    has goes before what the protocol makes of its code, unless the protocol knows its reason.
    """
    try:
        answer = protocol.refuse(error)
    except Exception:
        _log.exception("refusing a request raised")
        return LAST_RESORT
    if error.code is Code.UNAUTHENTICATED and answer.status == _UNAUTHORIZED:
        return msgspec.structs.replace(answer, fields=answer.fields + CHALLENGE)
    if error.status is not None and error.reason in ("", reasons.NOT_HTTP):
        return msgspec.structs.replace(answer, status=error.status)
    return answer
