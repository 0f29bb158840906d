"""TorchServe's inference protocol over HTTP: the wire's face to a front end.

Decides which operation a request is and which encoder writes its answer. Knows no socket, no model and no handler.
Source: spec sheet `torchserve`, sections 0 and 4.
"""

from collections.abc import Callable, Mapping, Sequence

from trivium.protocols.torchserve.answer import PredictionEncoder, TorchServePingEncoder
from trivium.protocols.torchserve.errors import refuse
from trivium.protocols.torchserve.request import decode_infer
from trivium.protocols.torchserve.routes import ENDPOINTS as ENDPOINTS
from trivium.protocols.torchserve.routes import TorchServeVerb, find_target
from trivium.types.errors import ServeError
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.listeners import Role
from trivium.types.operations import List, Operation
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head, HttpAnswer, Target

ROUTES: Mapping[Role, Sequence[str]] = {
    Role.INFERENCE: ("", "predictions", "explanations", "invocations", "models", "ping")
}
"""The first segments of the paths that this protocol can serve, by role."""

COSTLY_FORM_BYTES = 128 * 2**10


class TorchServeHttp:
    """Implements `types.interfaces.WireProtocol`. `make_id` gives each request its id: a client's own is not taken.

    With `exact_texts` an error says what the original says, and no more.
    """

    def __init__(self, make_id: Callable[[], str], exact_texts: bool = False) -> None:
        self._make_id = make_id
        self._exact = exact_texts

    def head(self, head: Head) -> Target:
        """The route, by `routes.find_target`."""
        return find_target(head)

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """Forms are searched for their fields; any other body is only viewed."""
        if len(data) <= COSTLY_FORM_BYTES:
            return False
        kind = head.headers.get(b"content-type", b"").lstrip().lower()
        return kind.startswith((b"multipart/form-data", b"application/x-www-form-urlencoded"))

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """The operation of a target that `head` returned, and the encoder for its answer."""
        request_id = self._make_id()
        if target.verb == TorchServeVerb.PING:
            return List(), TorchServePingEncoder(request_id)
        accept = head.headers.get(b"accept", b"").decode("latin-1")
        content_type = head.headers.get(b"content-type", b"").decode("latin-1")
        encoder = PredictionEncoder(request_id, target, accept, content_type, self._exact)
        return decode_infer(head, target, body, request_id, encoder.read), encoder

    def refuse(self, error: ServeError) -> HttpAnswer:
        """The error's JSON with the status of `errors.TABLE`; the connection closes behind it."""
        return refuse(error, self._make_id(), exact=self._exact)


def make(context: ProtocolContext) -> WireProtocol:
    """The protocol for one listener."""
    return TorchServeHttp(context.make_id, context.as_original)
