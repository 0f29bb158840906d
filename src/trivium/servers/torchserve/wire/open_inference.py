"""Answers what TorchServe says of itself in the words of the open inference protocol, whatever it serves.

Source: spec sheet `torchserve`, section 4.1, the row of `/v2`; the misspelt member is the original's.
"""

from collections.abc import Mapping
from typing import Any

from trivium.codecs.header_text import JSON, uncached_lines
from trivium.codecs.json_documents import indented
from trivium.servers.torchserve.wire.errors import refuse
from trivium.servers.torchserve.wire.routes import TorchServeVerb
from trivium.servers.torchserve.words.original import SERVER_VERSION
from trivium.types.errors import Code, ServeError
from trivium.types.operations import ResponsePart
from trivium.types.wire import HttpAnswer

ANSWERS: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    TorchServeVerb.OPEN_SERVER: (
        200,
        {"name": "Torchserve", "version": SERVER_VERSION, "extenstion": ["kserve", "kubeflow"]},
    ),
    TorchServeVerb.OPEN_LIVE: (200, {"live": True}),
    TorchServeVerb.OPEN_READY: (200, {"ready": True}),
    TorchServeVerb.OPEN_VERSIONS: (501, {"error": "Model versioning is not yet supported."}),
}
"""Verb -> status and document."""


class OpenInferenceEncoder:
    """Writes one of `ANSWERS`."""

    __slots__ = ("_document", "_request_id", "_status")

    def __init__(self, request_id: str, status: int, document: Mapping[str, Any]) -> None:
        self._request_id = request_id
        self._status = status
        self._document = document

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """One whole answer."""
        error = part.error
        if error is None and not part.final:
            error = ServeError(Code.INTERNAL, "The server did not say whether it is there. Report it.")
        if error is not None:
            return refuse(error, self._request_id)
        body = indented(self._document)
        fields = uncached_lines(self._request_id) + JSON
        return HttpAnswer(self._status, fields, (body,), len(body), closes=self._status >= 400)
