"""Says whether the server serves, and which version it is."""

from trivium.codecs.chat_answers import encode_json
from trivium.codecs.header_text import JSON, request_id_line
from trivium.types.operations import Readiness, ResponsePart
from trivium.types.wire import HttpAnswer
from trivium.wires.openai.errors import refuse


class HealthEncoder:
    """Answers a probe by a status alone, as vLLM's /health does: 200 where all models serve that were to, else 503."""

    __slots__ = ("_id",)

    def __init__(self, request_id: str) -> None:
        self._id = request_id_line(request_id)

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer."""
        if part.error is not None:
            return refuse(part.error, self._id)
        is_ready = isinstance(part.answer, Readiness) and part.answer.ready
        return HttpAnswer(200 if is_ready else 503, self._id, (), 0)


class VersionEncoder:
    """Writes the version of the server, where vLLM has its own."""

    __slots__ = ("_id", "_version")

    def __init__(self, request_id: str, version: str) -> None:
        self._id = request_id_line(request_id)
        self._version = version

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer."""
        if part.error is not None:
            return refuse(part.error, self._id)
        body = encode_json({"version": self._version})
        return HttpAnswer(200, self._id + JSON, (body,), len(body))
