"""Answers that are put off: asked for with a request, and fetched in pages by a token.

Source: spec sheet `djl`, section 4.7. A token is that of the answer, with the number of its next part behind it. What a
model generates is kept as it will be read, a part for each piece.
"""

import re
from collections.abc import Mapping

from trivium.codecs.conversion import is_slow_to_write
from trivium.codecs.error_table import said
from trivium.codecs.header_text import uncached_lines
from trivium.servers.djl.wire.answer import DjlInferEncoder
from trivium.servers.djl.wire.errors import of_generation, refuse
from trivium.servers.djl.wire.generated_answer import LmiWriter, begin, piece_of
from trivium.servers.djl.wire.options import DjlOptions
from trivium.types import reasons
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.generation import Generate
from trivium.types.operations import Deferred, Fetch, Fetched, ResponsePart
from trivium.types.payload import Raw, RawPart
from trivium.types.wire import Head, HttpAnswer, costly

_SYNCHRONOUS, _TOKEN, _MOST = b"x-synchronous", b"x-starting-token", b"x-max-items"
_TOKEN_CHARACTERS = 36
_TOKEN_FORM = re.compile(r"[0-9A-Za-z-]{36}")
_NOT_YET = b"The model result is not yet available"


def is_deferred(head: Head) -> bool:
    """Tell whether a request's answer is to be fetched later."""
    return head.headers.get(_SYNCHRONOUS, b"").strip().lower() == b"false"


def read_fetch(head: Head) -> Fetch | None:
    """Return what a request fetches; None for one that has no token. INVALID for a token or a number that is none."""
    value = head.headers.get(_TOKEN)
    if value is None:
        return None
    text = value.strip().decode("latin-1")
    token, index = text[:_TOKEN_CHARACTERS], text[_TOKEN_CHARACTERS:]
    if not _TOKEN_FORM.fullmatch(token) or not _is_number(index or "0"):
        raise said(
            Code.INVALID,
            f"The header x-starting-token is {text[:80]!r}; expected is what x-next-token said.",
            f"Invalid x-starting-token: {text[:80]}",
        )
    most = head.headers.get(_MOST, b"").strip().decode("latin-1")
    if most and not _is_number(most):
        raise ServeError(
            Code.INVALID, f"The header x-max-items is {most[:40]!r}; expected is a whole number, such as 10."
        )
    return Fetch(token, int(index or 0), int(most or 0))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


class KeptText:
    """Makes what is kept of an answer: the text of a model that generates, as LMI writes it; any other as it is."""

    __slots__ = ("_has_begun", "_options", "_request_id", "_writer")

    def __init__(self, request_id: str, options: DjlOptions) -> None:
        self._request_id = request_id
        self._options = options
        self._has_begun = False
        self._writer: LmiWriter | None = None

    def read(self, raw: Raw, parameters: Mapping[str, str]) -> Generate:
        """Read a body for a model that generates. INVALID, naming the field."""
        generate, self._writer = begin(raw, parameters, self._request_id, self._options.epoch())
        return generate

    def write(self, part: ResponsePart) -> ResponsePart | None:
        """Return what is kept of a part; None for one that is written with a later one."""
        writer = self._writer
        if writer is None:
            return part
        error, piece = part.error, b""
        if error is None:
            try:
                piece = piece_of(part, writer)
            except Exception as failure:
                error = unwritable(failure)
        if error is not None:
            if not self._has_begun:
                return ResponsePart(error=of_generation(error), model=part.model, version=part.version)
            piece = writer.failed(error)
        if not piece and not part.final:
            return None
        self._has_begun = True
        kept = Raw((RawPart(piece, writer.kind),))
        is_last = part.final or error is not None
        return ResponsePart(kept, final=is_last, model=part.model, version=part.version)


class DjlDeferEncoder:
    """Writes the token of an answer that will be fetched."""

    __slots__ = ("_options", "_request_id")

    def __init__(self, request_id: str, options: DjlOptions) -> None:
        self._request_id = request_id
        self._options = options

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer, without a body."""
        if part.error is not None or not isinstance(part.answer, Deferred):
            error = part.error or ServeError(Code.INTERNAL, "The server named no token. Report it.")
            answer = refuse(error, self._request_id, self._options.exact, statuses=self._options.statuses)
            self._options.meter.refused(error, answer.status)
            return answer
        return HttpAnswer(200, uncached_lines(self._request_id) + _token_lines(part.answer.token), (), 0)


class DjlFetchEncoder:
    """Writes one page of an answer. `accept` and `content_type` are those of the request that fetches it."""

    __slots__ = ("_accept", "_content_type", "_fetch", "_options", "_request_id")

    def __init__(
        self, request_id: str, fetch: Fetch, accept: str, content_type: str, options: DjlOptions
    ) -> None:
        self._request_id = request_id
        self._fetch = fetch
        self._accept = accept
        self._content_type = content_type
        self._options = options

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer: 202 while there is nothing to be read yet."""
        if part.error is not None or not isinstance(part.answer, Fetched):
            error = part.error or ServeError(Code.INTERNAL, "The server gave no parts. Report it.")
            if error.reason == reasons.UNKNOWN_TOKEN:
                asked = f"{self._fetch.token}{self._fetch.first or ''}"
                error = said(Code.INVALID, error.message, f"Invalid x-starting-token: {asked}")
            return refuse(error, self._request_id, self._options.exact)
        fetched = part.answer
        if any(is_slow_to_write(each.payload) for each in fetched.parts):
            return costly(lambda: self._written(fetched))
        return self._written(fetched)

    def _written(self, fetched: Fetched) -> HttpAnswer:
        try:
            return self._page(fetched)
        except Exception as error:
            return refuse(unwritable(error), self._request_id, self._options.exact)

    def _page(self, fetched: Fetched) -> HttpAnswer:
        more = b"" if fetched.is_last else _token_lines(f"{self._fetch.token}{fetched.following or ''}")
        if not fetched.parts and not fetched.is_last:
            return HttpAnswer(202, uncached_lines(self._request_id) + more, (), 0, reason=_NOT_YET)
        encoder = DjlInferEncoder(self._request_id, self._accept, self._content_type, self._options)
        opening = HttpAnswer(200, uncached_lines(self._request_id), (), 0)
        if self._fetch.first:
            encoder.written(ResponsePart(final=False))  # the status and the head went with the first page
        pieces = [encoder.written(_stored(part)) for part in fetched.parts]
        if pieces and not self._fetch.first:
            opening = pieces[0]
        buffers = tuple(buffer for piece in pieces for buffer in piece.buffers)
        return HttpAnswer(
            opening.status,
            opening.fields + more,
            buffers,
            sum(piece.size for piece in pieces),
            reason=opening.reason,
            closes=opening.status >= 400,
        )


def _stored(part: ResponsePart) -> ResponsePart:
    """Return a part as it was kept: what went wrong while nobody waited is an error of the server."""
    if part.error is None or part.error.status is not None:
        return part
    error = ServeError(part.error.code, part.error.message, status=500)
    return ResponsePart(error=error, model=part.model, version=part.version)


def _token_lines(token: str) -> bytes:
    line = token.encode("latin-1", "replace")
    return b"x-next-token: %b\r\nX-Amzn-SageMaker-Custom-Attributes: x-next-token=%b\r\n" % (line, line)
