"""Each wire says of an error what its table has: rows, the one way to ask for them, and the header lines of refusals.

A wire is a table and what writes a body. Its rows are found by reason and verb, else by reason, else by code and verb,
else by code; a verb is what was asked for, or which case of a reason it is. Pure.
"""

from collections.abc import Callable, Mapping
from math import ceil
from typing import Final

import msgspec

from trivium.codecs.header_text import JSON
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError

SAID: Final = "said"  # words: what the server that is stood in for says of it

HTTP_STATUS: Mapping[Code, int] = {
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
"""Our own judgement by RFC 9110, section 15, for protocols that have none."""

CHALLENGE = b'WWW-Authenticate: Bearer realm="trivium"\r\n'
"""Who has not said who it is hears how to (RFC 9110 11.6.1)."""

Facts = Mapping[str, object]
Form = Callable[[Facts], str]
_NOTHING: Facts = {}


class ErrorRow(msgspec.Struct, frozen=True, gc=False):
    """Says what a wire answers to an error. The text has facts in braces, or is what makes one of them."""

    status: int = 0  # in the numbers of the wire
    type_name: str = ""
    text: str | Form = ""  # empty: the error's own sentence
    fields: bytes = b""  # header lines besides those of the error itself
    content_type: bytes = JSON  # a whole header line
    phrase: bytes | None = None  # the status's own where there is none


class Wording(msgspec.Struct, frozen=True, gc=False):
    """Says what a row does, of one error: its text is written. Empty: the error's own sentence."""

    status: int = 0
    type_name: str = ""
    text: str = ""
    fields: bytes = b""
    content_type: bytes = JSON
    phrase: bytes | None = None


_NO_ROW = ErrorRow()

Key = str | Code | tuple[str | Code, str]
"""A reason or a code, alone or with a verb."""

Rows = Mapping[Key, ErrorRow]


class Refusal(ServeError):
    """An error whose answer has been decided: its wire says the `wording`, whatever its table would."""

    def __init__(
        self,
        code: Code,
        message: str,
        wording: Wording,
        retry_after: float | None = None,
        info: ErrorInfo | None = None,
    ) -> None:
        super().__init__(code, message, retry_after, info=info)
        self.wording = wording


class ErrorTable(msgspec.Struct, frozen=True, gc=False):
    """Holds the rows of one wire."""

    rows: Rows

    def find(self, error: ServeError, verb: str = "") -> ErrorRow:
        """Return the row of an error; an empty one where it has none."""
        rows, reason = self.rows, error.reason
        row = None
        if reason:
            row = (rows.get((reason, verb)) if verb else None) or rows.get(reason)
        if row is None and verb:
            row = rows.get((error.code, verb))
        return rows.get(error.code, _NO_ROW) if row is None else row

    def wording(self, error: ServeError, verb: str = "", about: Facts = _NOTHING) -> Wording:
        """Return what is said of an error; nothing where it has no row. `about`: facts for the texts that the error
        itself does not know.
        """
        if isinstance(error, Refusal):
            return error.wording
        return written(self.find(error, verb), error, about)


def written(row: ErrorRow, error: ServeError, about: Facts = _NOTHING) -> Wording:
    """Return what a row says of an error. The error's own facts go before those `about` its request."""
    text = row.text
    if text:
        facts = {**about, **error.metadata}
        text = text.format_map(facts) if isinstance(text, str) else text(facts)
    assert isinstance(text, str), "it is empty, or has been made one"
    return Wording(row.status, row.type_name, text, row.fields, row.content_type, row.phrase)


OWN_ROWS: Rows = {code: ErrorRow(status) for code, status in HTTP_STATUS.items()}
"""Rows with a status of ours and nothing else."""


def rows_of(status: int, texts: Mapping[str, str | Form], content_type: bytes = JSON) -> Rows:
    """Return the rows of reasons that have one status, and nothing else but a text."""
    return {reason: ErrorRow(status, text=text, content_type=content_type) for reason, text in texts.items()}


def said(code: Code, message: str, words: str = "", reason: str = SAID) -> ServeError:
    """Return an error that has a sentence of the server that is stood in for, besides our own."""
    return ServeError(code, message, info=ErrorInfo.of(reason, words=words))


def header_lines(error: ServeError, least_wait: int = 0) -> bytes:
    """Return the header lines of an error itself: Retry-After, in whole seconds rounded up, and Allow."""
    if error.retry_after is None:
        return allow_line(error)
    return b"Retry-After: %d\r\n%b" % (max(least_wait, ceil(error.retry_after)), allow_line(error))


def allow_line(error: ServeError) -> bytes:
    """Return the header line that lists the methods of a path; empty but for the refusal of a method."""
    if error.reason != reasons.NO_METHOD:
        return b""
    return b"Allow: %b\r\n" % str(error.metadata["allow"]).encode()
