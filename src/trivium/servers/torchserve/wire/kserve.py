"""Answers the probes of KServe's own server, which stands before a TorchServe in KServe's image and not here.

Source: KServe's v1 and v2 protocols, and what its Python client expects: a model that is not ready is a 503.
"""

from collections.abc import Sequence
from enum import StrEnum

from trivium.codecs.error_texts import wire_text
from trivium.codecs.header_text import JSON, uncached_lines
from trivium.codecs.json_documents import indented
from trivium.codecs.routes import HttpRoute, endpoints, with_slash
from trivium.servers.torchserve.wire.errors import refuse
from trivium.servers.torchserve.wire.routes import SERVER_PROBES
from trivium.types.access import AccessScope, Endpoint
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Live, Operation, Readiness, Ready, ResponsePart
from trivium.types.wire import HttpAnswer, Target


class KServeVerb(StrEnum):
    """The probe that a target stands for; the value is `Target.verb`."""

    ALIVE = "KServe alive"
    MODEL_READY = "KServe model ready"


OWN: Sequence[HttpRoute] = (
    HttpRoute("GET", "/", KServeVerb.ALIVE, AccessScope.OPEN),
    *with_slash([HttpRoute("GET", "/v2/models/{model}/ready", KServeVerb.MODEL_READY, AccessScope.INFER)]),
)
PROBES: Sequence[HttpRoute] = (*OWN, *SERVER_PROBES)
"""The routes that are answered where one of KServe's envelopes is on."""

ENDPOINTS: Sequence[Endpoint] = endpoints(OWN)
"""What is answered beside the probes that the open inference protocol has, too."""


def probe(target: Target, request_id: str) -> tuple[Operation, "ProbeEncoder"]:
    """Return the operation of a probe, and what writes its answer."""
    operation = Ready(target.model) if target.verb == KServeVerb.MODEL_READY else Live()
    return operation, ProbeEncoder(request_id, target.model)


class ProbeEncoder:
    """Writes whether the server is alive, or whether the `model` that is named is ready."""

    __slots__ = ("_model", "_request_id")

    def __init__(self, request_id: str, model: str) -> None:
        self._request_id = request_id
        self._model = model

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer."""
        error = part.error
        if error is None and not isinstance(part.answer, Readiness):
            error = ServeError(Code.INTERNAL, "The server did not say whether it is there. Report it.")
        if error is not None:
            return refuse(error, self._request_id)
        assert isinstance(part.answer, Readiness)
        if not self._model:
            status, document = 200, dict[str, object](status="alive")
        else:
            is_ready = part.answer.ready
            status, document = 200 if is_ready else 503, {"name": wire_text(self._model), "ready": is_ready}
        body = indented(document)
        fields = uncached_lines(self._request_id) + JSON
        return HttpAnswer(status, fields, (body,), len(body), closes=status >= 400)
