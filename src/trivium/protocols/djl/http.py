"""DJL Serving's inference protocol over HTTP: the wire's face to a front end.

Decides which operation a request is and which encoder writes its answer. Knows no socket, no model and no handler.
Source: spec sheet `djl`, section 4.
"""

from collections.abc import Callable, Mapping, Sequence, Set

from trivium.protocols.djl.answer import DjlInferEncoder, DjlPingEncoder
from trivium.protocols.djl.errors import DjlRefusal, exactly, refuse
from trivium.protocols.djl.management import decode_management
from trivium.protocols.djl.request import decode_infer
from trivium.protocols.djl.routes import ENDPOINTS as ENDPOINTS
from trivium.protocols.djl.routes import DjlVerb, find_target
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.listeners import Role
from trivium.types.operations import Describe, List, Live, Operation
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head, HttpAnswer, Target

ROUTES: Mapping[Role, Sequence[str]] = {
    Role.INFERENCE: ("", "predictions", "invocations", "models", "ping"),
    Role.MANAGEMENT: ("", "models", "workflows", "server", "ping"),
}
"""The first segments of the paths that this protocol can serve, by role."""

COSTLY_FORM_BYTES = 128 * 2**10
_REQUEST_ID = b"x-request-id"


class DjlHttp:
    """Implements `types.interfaces.WireProtocol`. `make_id` gives an id to each request that comes without one;
    `tensors_as` is the content type of tensors for a client that asks for none. `exact`: errors have the original's
    texts. What is for other `roles` is not there; with `may_change` clients may change what is served.
    """

    def __init__(
        self,
        make_id: Callable[[], str],
        tensors_as: str = "tensor/ndlist",
        exact: bool = False,
        roles: Set[Role] = frozenset(Role),
        may_change: bool = True,
    ) -> None:
        self._make_id = make_id
        self._tensors_as = tensors_as
        self._exact = exact
        self._roles = roles
        self._may_change = may_change

    def head(self, head: Head) -> Target:
        """The route, by `routes.find_target`."""
        try:
            target = find_target(head, self._roles)
            if target.scope is AccessScope.MANAGE and not self._may_change:
                raise _not_from_here()
            return target
        except ServeError as error:
            raise self._known(error, self._id(head)) from error

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """Forms are searched for their fields; any other body is only viewed."""
        if len(data) <= COSTLY_FORM_BYTES:
            return False
        kind = head.headers.get(b"content-type", b"").lstrip().lower()
        return kind.startswith((b"multipart/form-data", b"application/x-www-form-urlencoded"))

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """The operation of a target that `head` returned, and the encoder for its answer."""
        request_id = self._id(head)
        if target.verb == DjlVerb.PING:
            return List(), DjlPingEncoder(request_id, True)
        if target.verb == DjlVerb.OPTIONS:
            operation = Describe(target.model, target.version) if target.model else Live()
            return operation, DjlPingEncoder(request_id, False)
        try:
            if target.verb != DjlVerb.INFER:
                return decode_management(head, target, body, request_id, self._exact)
            infer = decode_infer(head, target, body, request_id)
        except ServeError as error:
            raise self._known(error, request_id) from error
        accept = head.headers.get(b"accept", b"").decode("latin-1")
        content_type = head.headers.get(b"content-type", b"").decode("latin-1")
        return infer, DjlInferEncoder(request_id, accept, content_type, self._tensors_as, self._exact)

    def refuse(self, error: ServeError) -> HttpAnswer:
        """The error's JSON with the status of `errors.TABLE`; the connection closes behind it."""
        request_id = error.request_id if isinstance(error, DjlRefusal) else ""
        return refuse(error, request_id or self._make_id(), self._exact)

    def _id(self, head: Head) -> str:
        return head.headers.get(_REQUEST_ID, b"").decode("latin-1") or self._make_id()

    def _known(self, error: ServeError, request_id: str) -> DjlRefusal:
        """Return the same refusal, under the id that its request came with."""
        own = error if isinstance(error, DjlRefusal) else None
        refusal = DjlRefusal(
            error.code,
            error.message,
            own.fields if own else b"",
            own.type_name if own else "",
            request_id,
            exactly(error),
        )
        refusal.status, refusal.retry_after = error.status, error.retry_after
        return refusal


def make(context: ProtocolContext) -> WireProtocol:
    """The protocol for one listener: tensors go out as NDLists where DJL's own clients are served, else as JSON."""
    tensors_as = "tensor/ndlist" if context.as_original else "application/json"
    return DjlHttp(context.make_id, tensors_as, context.as_original, context.roles, context.may_change)


def _not_from_here() -> ServeError:
    return ServeError(
        Code.FORBIDDEN,
        "This server listens beyond its own machine, and whoever reaches it may not register, scale or unregister "
        "anything. Have it listen on loopback alone, or start it with --keys and send a key that may manage models.",
    )
