"""Writes the parts of an answer: a handler's own status, headers and body, or tensors.

Source: spec sheet `torchserve`, sections 0, 4.3 and 4.4: an empty reason phrase, no content type but the handler's own,
a part of a stream as one chunk. Framing headers belong to the front end; no property breaks out of its line.
"""

from collections.abc import Mapping

from trivium.codecs.conversion import is_slow_to_write, negotiated
from trivium.codecs.header_text import (
    JSON,
    NOT_CACHED,
    is_name,
    reason_phrase,
    request_id_line,
    uncached_lines,
    without_controls,
)
from trivium.codecs.json_documents import indented
from trivium.servers.torchserve.wire.errors import refuse
from trivium.servers.torchserve.wire.generate_request import read_request
from trivium.servers.torchserve.wire.generated_text import end_of, text_of
from trivium.servers.torchserve.wire.openai_paths import OpenAiPaths, asks_as_openai
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.generation import Generate
from trivium.types.operations import Listing, ResponsePart
from trivium.types.payload import Raw, Tensors
from trivium.types.state import VersionState
from trivium.types.wire import NOTHING_YET, HttpAnswer, Target, costly
from trivium.wires.openai.answer import OpenAiEncoder

DEFAULT_TYPE = "application/json"
STREAMS = "ts_stream_next"
_TEXT = "text/plain; charset=utf-8"

_FRAMING = frozenset(
    {
        "connection",
        "content-length",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-request-id",
    }
)
"""Header names that a handler does not decide."""

_FAILED = VersionState.FAILED
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"


class PredictionEncoder:
    """Writes the answer to one prediction, in one part or many. `accept` and `content_type` are the request's."""

    __slots__ = (
        "_accept",
        "_begun",
        "_content_type",
        "_end",
        "_exact",
        "_openai",
        "_paths",
        "_request_id",
        "_target",
    )

    def __init__(
        self,
        request_id: str,
        target: Target,
        accept: str,
        content_type: str,
        exact: bool,
        paths: OpenAiPaths,
    ) -> None:
        self._paths = paths
        self._request_id = request_id
        self._target = target
        self._accept = accept
        self._content_type = content_type
        self._exact = exact
        self._begun = False
        self._end: bytes | None = None
        self._openai: OpenAiEncoder | None = None

    def read(self, raw: Raw, parameters: Mapping[str, str]) -> Generate:
        """Read a body for a model that generates, whose answer is text, ended by a mark, or OpenAI's. INVALID, naming
        the field; NOT_FOUND for a path that OpenAI's API has not.
        """
        if asks_as_openai(parameters):
            self._openai = self._paths.encoder(raw, self._target.model, self._request_id, self._accept)
            return self._openai.read(raw, parameters)
        self._end = end_of(parameters)
        return read_request(raw, parameters)

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """The part. An error after the first part has no body and a status of 500 or so: the front end breaks the
        answer off, so that its client sees that it is not whole.
        """
        if self._openai is not None:
            return self._openai.encode(part)
        if is_slow_to_write(part.payload) and part.final:
            return costly(lambda: self._written(part))
        return self._written(part)

    def _written(self, part: ResponsePart) -> HttpAnswer:
        try:
            answer = self._failed(part.error) if part.error is not None else self._part(part)
        except Exception as error:
            answer = self._failed(unwritable(error))
        self._begun = self._begun or answer is not NOTHING_YET
        return answer

    def _failed(self, error: ServeError) -> HttpAnswer:
        answer = refuse(error, self._request_id, self._target, self._exact)
        return HttpAnswer(answer.status, b"", (), 0, closes=True) if self._begun else answer

    def _part(self, part: ResponsePart) -> HttpAnswer:
        if self._end is not None:
            return self._text(text_of(part, self._end), part.final)
        payload = Raw(()) if part.payload is None else part.payload
        if isinstance(payload, Raw):
            return self._raw(payload, part.final)
        if isinstance(payload, Tensors):
            kind, buffers = negotiated(payload, self._accept, self._content_type, DEFAULT_TYPE)
            fields = self._fields({"Content-Type": kind}, part.final)
            return HttpAnswer(200, fields, buffers, sum(map(len, buffers)), part.final, b"")
        raise ServeError(
            Code.UNSUPPORTED,
            f"The model {part.model!r} generates text, which this route does not answer. Use one for generation.",
        )

    def _text(self, text: bytes, final: bool) -> HttpAnswer:
        if not (text or final):
            return NOTHING_YET
        fields = self._fields({"Content-Type": _TEXT}, False)
        return HttpAnswer(200, fields, (text,) if text else (), len(text), final, b"")

    def _raw(self, payload: Raw, final: bool) -> HttpAnswer:
        data = payload.parts[0].data if payload.parts else b""
        size = len(data)
        buffers = (data,) if size else ()
        status = payload.status or 200
        if not 200 <= status <= 599:
            raise ServeError(
                Code.MODEL_FAILED,
                f"The handler's answer has the status {status}; expected is one from 200 to 599.",
            )
        properties = dict(payload.properties)
        kind = payload.parts[0].content_type if payload.parts else ""
        if kind and not any(name.lower() == "content-type" for name in properties):
            properties["Content-Type"] = kind
        fields = self._fields(properties, final)
        reason = reason_phrase(payload.reason)
        # The first part decides: one behind it that closes would break the answer off, whose handler goes on.
        closes = status >= 400 and not self._begun
        return HttpAnswer(status, fields, buffers, size, final, reason, closes=closes)

    def _fields(self, properties: Mapping[str, str], final: bool) -> bytes:
        """The header lines, in front of the first part only. What the handler says goes before what is always said."""
        if self._begun:
            return b""
        if not properties and final:
            return uncached_lines(self._request_id)
        # Of names that differ in case alone the last counts.
        said = {name.lower(): (name, value) for name, value in properties.items()}
        lines = [request_id_line(self._request_id)]
        lines += [_line(name, value) for name, value in NOT_CACHED.items() if name.lower() not in said]
        lines += [_line(*field) for folded, field in said.items() if folded not in _FRAMING]
        if not final and STREAMS not in said:
            lines.append(_line(STREAMS, "true"))
        return b"".join(lines)


class TorchServePingEncoder:
    """Writes the health of the server: unhealthy, once a model was given up."""

    __slots__ = ("_request_id",)

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer, of status 200 or 500. While models load, and without any, it is healthy."""
        if part.error is not None:
            return refuse(part.error, self._request_id)
        if not isinstance(part.answer, Listing):
            error = ServeError(Code.INTERNAL, "The server did not say how its models are. Report it.")
            return refuse(error, self._request_id)
        health = health_of(part.answer)
        body, is_healthy = indented({"status": health}), health == HEALTHY
        fields = uncached_lines(self._request_id) + JSON
        return HttpAnswer(200 if is_healthy else 500, fields, (body,), len(body), closes=not is_healthy)


def health_of(listing: Listing) -> str:
    """Return the health of the server: unhealthy once a model was given up that had loaded, or was registered. One that
    did not load with the server is not there.
    """
    is_given_up = any(
        row.state is _FAILED and (row.is_loaded or not row.at_start) for row in listing.versions
    )
    return UNHEALTHY if is_given_up else HEALTHY


def _line(name: str, value: str) -> bytes:
    """A header line. MODEL_FAILED for a name that is none; what would end the line in a value becomes a space."""
    if not is_name(name):
        raise ServeError(
            Code.MODEL_FAILED,
            f"The handler sets the response header {name[:80]!r}, which is no header name. Use letters, digits and -.",
        )
    clean = without_controls(value).strip()
    try:
        raw = clean.encode("latin-1")
    except UnicodeEncodeError:
        raw = clean.encode("utf-8", "backslashreplace")
    return b"%b: %b\r\n" % (name.encode(), raw)
