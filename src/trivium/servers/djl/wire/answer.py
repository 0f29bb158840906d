"""Writes the parts of an answer: a handler's own status, headers and body, or tensors.

Source: spec sheet `djl`, sections 4.4, 8.4 and 9.2. What a handler says becomes a header line only where it can be one:
no property breaks out of its line. Framing headers belong to the front end.
"""

from collections.abc import Mapping

from trivium.codecs.binary import Buffer
from trivium.codecs.conversion import is_slow_to_write, negotiated
from trivium.codecs.error_texts import wire_text
from trivium.codecs.generation import is_slow_to_tell
from trivium.codecs.generation_errors import in_words_of
from trivium.codecs.header_text import JSON, has_controls, is_name, reason_phrase, uncached_lines
from trivium.codecs.json_documents import indented
from trivium.servers.djl.wire.binary_answer import binary_body, unnamed
from trivium.servers.djl.wire.errors import HANDLER_FAILED, chunk, of_generation, refuse
from trivium.servers.djl.wire.generated_answer import LmiWriter, begin, piece_of
from trivium.servers.djl.wire.meter import DjlMeter
from trivium.servers.djl.wire.options import DjlOptions
from trivium.types import reasons
from trivium.types.errors import Code, ServeError, unwritable
from trivium.types.generation import Generate
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.operations import Listing, ResponsePart
from trivium.types.payload import Raw, Tensors
from trivium.types.state import VersionState
from trivium.types.wire import NOTHING_YET, HttpAnswer, costly

_FRAMING = {"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
_OURS = frozenset(_FRAMING | {"x-request-id", "pragma", "cache-control", "expires"})
"""Header names that a handler does not decide: framing, and what every answer carries."""

_FAILED, _HEALTHY, _PENDING = "FAILED", "Healthy", "PENDING"
_HEALTH = {
    VersionState.FAILED: _FAILED,
    VersionState.READY: _HEALTHY,
    VersionState.COLD: _HEALTHY,  # no worker is wanted, and none lacks
    VersionState.REGISTERED: _PENDING,
    VersionState.LOADING: _PENDING,
}
_WORST_FIRST = (_FAILED, _PENDING, _HEALTHY)


class DjlInferEncoder:
    """Writes the answer to one prediction, in one part or many. `accept` and `content_type` are the request's.
    `unknown` is answered in place of the usual words where there is no such model.
    """

    __slots__ = (
        "_accept",
        "_begun",
        "_content_type",
        "_ignored",
        "_model",
        "_options",
        "_request_id",
        "_writer",
        "unknown",
    )

    def __init__(
        self,
        request_id: str,
        accept: str,
        content_type: str,
        options: DjlOptions,
        model: str = "",
        unknown: ServeError | None = None,
    ) -> None:
        self._model = model
        self.unknown = unknown
        self._options = options
        self._request_id = request_id
        self._accept = accept
        self._content_type = content_type
        self._begun = False
        self._writer: LmiWriter | None = None
        self._ignored = b""

    def read(self, raw: Raw, parameters: Mapping[str, str]) -> Generate:
        """Read a body for a model that generates; its answer is then written in the form asked for. INVALID, naming the
        field.
        """
        log = self._options.ignored
        ignored = None if log is None else IgnoredFields()
        generate, self._writer = begin(raw, parameters, self._request_id, self._options.epoch(), ignored)
        if log is not None and ignored is not None and ignored.found:
            self._ignored = log.told(self._model, ignored)
        return generate

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """The part. An error after the first part is the last piece of the body, since the status is out."""
        if part.final and (is_slow_to_tell(part.payload) or is_slow_to_write(part.payload)):
            return costly(lambda: self.written(part))
        return self.written(part)

    def written(self, part: ResponsePart) -> HttpAnswer:
        """Write a part, however long it takes."""
        try:
            if part.error is None:
                answer = self._part(part)
                if not self._begun and answer is not NOTHING_YET:
                    self._options.meter.answered(answer.status)
            else:
                answer = self._failed(part.error)
        except Exception as error:
            answer = self._failed(unwritable(error))
        self._begun = self._begun or answer is not NOTHING_YET
        return answer

    def _failed(self, error: ServeError) -> HttpAnswer:
        if not self._begun:
            if self.unknown is not None and error.reason == reasons.UNKNOWN_MODEL:
                error = self.unknown
            error = error if self._writer is None else of_generation(in_words_of(error, self._writer.names))
            options = self._options
            answer = refuse(error, self._request_id, options.exact, statuses=options.statuses)
            options.meter.refused(error, answer.status)
            return answer
        writer = self._writer
        body = chunk(error) if writer is None else writer.failed(in_words_of(error, writer.names))
        return HttpAnswer(200, b"", (body,), len(body))

    def _generated(self, part: ResponsePart, writer: LmiWriter) -> HttpAnswer:
        body = piece_of(part, writer)
        if not body and not part.final:
            return NOTHING_YET
        kind = writer.kind.encode()
        fields = b""
        if not self._begun:
            fields = b"%b%bContent-Type: %b\r\n" % (uncached_lines(self._request_id), self._ignored, kind)
        return HttpAnswer(200, fields, (body,) if body else (), len(body), part.final)

    def _part(self, part: ResponsePart) -> HttpAnswer:
        payload = part.payload
        if self._writer is not None:
            return self._generated(part, self._writer)
        if isinstance(payload, Raw):
            return self._raw(payload, part.final)
        if isinstance(payload, Tensors):
            kind, buffers = self._tensors(payload)
            size = sum(map(len, buffers))
            if self._begun:
                return HttpAnswer(200, b"", buffers, size, part.final)
            fields = uncached_lines(self._request_id) + (_line("Content-Type", kind) if kind else b"")
            return HttpAnswer(200, fields, buffers, size, part.final)
        if payload is None:
            return HttpAnswer(
                200, b"" if self._begun else uncached_lines(self._request_id), (), 0, part.final
            )
        raise ServeError(
            Code.UNSUPPORTED,
            f"The model {part.model!r} generates text, which this route does not answer. Use one for generation.",
        )

    def _tensors(self, payload: Tensors) -> tuple[str, tuple[Buffer, ...]]:
        """Return a content type, or none, and a body: as the original has it where that is stood in for."""
        if self._options.exact:
            return binary_body(payload, self._accept, self._content_type)
        options = self._options
        return negotiated(payload, self._accept, self._content_type, options.tensors_as, unnamed(payload))

    def _raw(self, payload: Raw, final: bool) -> HttpAnswer:
        data = payload.parts[0].data if payload.parts else b""
        size = len(data)
        buffers = (data,) if size else ()
        if self._begun:
            return HttpAnswer(200, b"", buffers, size, final)
        status = payload.status or 200
        if not 200 <= status <= 999:
            raise ServeError(
                Code.MODEL_FAILED,
                f"The handler's answer has the status {status}; expected is one from 200 to 999.",
            )
        kind = payload.parts[0].content_type if payload.parts else ""
        fields = uncached_lines(self._request_id) + _lines(payload, kind)
        is_usual = not payload.reason or (status == 200 and payload.reason == "OK")
        reason = None if is_usual else reason_phrase(payload.reason)
        return HttpAnswer(status, fields, buffers, size, final, reason, closes=status >= 400)


class DjlPingEncoder:
    """Writes the health of every model; `OPTIONS` is answered by an empty description."""

    __slots__ = ("_is_ping", "_options", "_request_id")

    def __init__(self, request_id: str, is_ping: bool, options: DjlOptions) -> None:
        self._options = options
        self._request_id = request_id
        self._is_ping = is_ping

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer: 503 once errors came too fast, 500 where a model failed. An unhealthy one alone changes
        nothing.
        """
        if part.error is not None:
            return refuse(part.error, self._request_id)
        if part.answer is None or (self._is_ping and not isinstance(part.answer, Listing)):
            error = ServeError(Code.INTERNAL, "The server did not say how its models are. Report it.")
            return refuse(error, self._request_id)
        status = 200
        health: dict[str, str] = {}
        if self._is_ping and isinstance(part.answer, Listing):
            status, health = ping_of(part.answer, self._options.multi_status, self._options.meter)
        body = indented({model: {"status": state} for model, state in health.items()})
        fields = uncached_lines(self._request_id) + JSON
        return HttpAnswer(status, fields, (body,), len(body), closes=status >= 400)


def health_of(state: VersionState) -> str:
    """Return DJL's word for the state of a version; empty for one that was unloaded on purpose."""
    return _HEALTH.get(state, "")


def ping_of(listing: Listing, multi_status: bool, meter: DjlMeter) -> tuple[int, dict[str, str]]:
    """Return the code of a ping, and the worst state among each model's versions; those unloaded on purpose do not
    count. `multi_status`: 207 while a model is being loaded, or may still come at the start. Once errors came too fast
    it is 503.
    """
    found: dict[str, set[str]] = {}
    for row in listing.versions:
        state = _HEALTH.get(row.state)
        if state is not None:
            found.setdefault(wire_text(row.model), set()).add(state)
    health = {
        model: next(state for state in _WORST_FIRST if state in states) for model, states in found.items()
    }
    states = set(health.values())
    is_loading = listing.is_starting or _PENDING in states
    code = 207 if multi_status and is_loading else 200
    code = 500 if _FAILED in states else code
    return (503 if meter.is_exceeded else code), health


def _lines(payload: Raw, content_type: str) -> bytes:
    """Properties as header lines; the part's content type where no property says one. Of names that differ in case
    alone the last counts.
    """
    lines = {
        lower: _line(name, value)
        for name, value in payload.properties.items()
        if (lower := name.lower()) not in _OURS
    }
    if content_type and "content-type" not in lines:
        lines["content-type"] = _line("Content-Type", content_type)
    return b"".join(lines.values())


def _line(name: str, value: str) -> bytes:
    value = value.strip()
    if not is_name(name) or has_controls(value):
        raise ServeError(
            Code.MODEL_FAILED,
            f"The handler's property {name[:80]!r} cannot be a header line ({HANDLER_FAILED}): expected is a name of "
            "letters, digits and dashes, and a value on one line.",
        )
    return b"%b: %b\r\n" % (name.encode(), value.encode("utf-8", "replace"))
