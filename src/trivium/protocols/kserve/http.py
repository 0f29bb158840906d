"""The Open Inference Protocol v2 over HTTP, as served by KServe and Triton: the wire's face to a front end.

Decides which operation a request is and which encoder writes its answer. Knows no socket and no model; an
operation's own meaning is the core's.
"""

from trivium.protocols.kserve import errors
from trivium.protocols.kserve.documents import DocumentEncoder, Identity
from trivium.protocols.kserve.infer_answer import InferEncoder, KnownAnswers
from trivium.protocols.kserve.infer_request import decode_infer, header_length
from trivium.protocols.kserve.known_headers import KnownHeaders
from trivium.protocols.kserve.routes import Verb, find_target
from trivium.types.errors import ServeError
from trivium.types.interfaces import Encoder
from trivium.types.operations import Describe, Live, Operation, Ready, Statistics
from trivium.types.wire import Body, Head, HttpAnswer, Target

EXTENSIONS = ("binary_tensor_data", "parameters", "statistics", "model_configuration")
COSTLY_JSON_BYTES = 128 * 2**10


class KServeHttp:
    """Implements `types.interfaces.WireProtocol`. Name, version and extensions are those of `GET /v2`."""

    def __init__(
        self, server_name: str, server_version: str, extensions: tuple[str, ...] = EXTENSIONS
    ) -> None:
        self._identity = Identity(server_name, server_version, extensions)
        self._known = KnownHeaders()
        self._answers = KnownAnswers()

    def head(self, head: Head) -> Target:
        """The route, by `routes.find_target`. NOT_FOUND, METHOD, or INVALID for a name that is no UTF-8."""
        return find_target(head)

    def is_costly(self, head: Head, size: int) -> bool:
        """JSON above 128 KiB takes a millisecond; binary tensors are only viewed."""
        if size <= COSTLY_JSON_BYTES:
            return False
        try:
            length = header_length(head)
        except ServeError:
            return False  # `decode` refuses it at once
        return length is None or length > COSTLY_JSON_BYTES

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """The operation of a target that `head` returned, and the encoder for its answer."""
        if target.takes_body:  # no other route does
            request = decode_infer(head, target, body, self._known)
            return request.operation, InferEncoder(
                request.operation.id, request.forms, request.binary_output, self._answers
            )
        return _read(target), DocumentEncoder(target, self._identity)

    def refuse(self, error: ServeError) -> HttpAnswer:
        """`{"error": text}` with the status of `errors.STATUS`."""
        return errors.refuse(error)


def _read(target: Target) -> Operation:
    match target.verb:
        case Verb.LIVE:
            return Live()
        case Verb.READY:
            return Ready(target.model, target.version)
        case Verb.STATISTICS:
            return Statistics(target.model, target.version)
        case _:
            assert target.verb in (Verb.METADATA, Verb.CONFIG), "a target of another protocol"
            return Describe(target.model, target.version)
