"""KServe's v1 protocol over HTTP, which is TensorFlow Serving's: the wire's face to a front end.

Decides what is asked of which model, and which encoder writes the answer. A model without declared inputs gets the body
as it came. Knows no socket, no model and no handler.
"""

from collections.abc import Callable, Mapping, Sequence

from trivium.codecs.header_text import essence
from trivium.codecs.ignored_field_log import IgnoredFieldLog
from trivium.codecs.json_documents import fields_of
from trivium.codecs.routes import endpoints, prefixes
from trivium.codecs.v1_bodies import INPUTS, INSTANCES
from trivium.types.access import Endpoint
from trivium.types.errors import ServeError
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.listeners import Role
from trivium.types.operations import Infer, Operation
from trivium.types.payload import Raw, RawForm, RawPart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head, HttpAnswer, Target
from trivium.wires.v1.answer import PredictionsEncoder
from trivium.wires.v1.described import describe as describe
from trivium.wires.v1.errors import refuse
from trivium.wires.v1.routes import ROWS, TREE

ROUTES: Mapping[Role, Sequence[str]] = {Role.INFERENCE: prefixes(ROWS)}
ENDPOINTS: Sequence[Endpoint] = endpoints(ROWS)

COSTLY_BYTES = 2**16
_ID_HEADER = b"x-request-id"
_KNOWN = (INSTANCES, INPUTS)


class V1Http:
    """Implements `types.interfaces.WireProtocol`. `make_id` gives an id to each request that comes without one;
    `ignored` tells of fields that have no effect on a model of tensors.
    """

    def __init__(self, make_id: Callable[[], str], ignored: IgnoredFieldLog) -> None:
        self._make_id = make_id
        self._ignored = ignored

    def head(self, head: Head) -> Target:
        """Return the route. NOT_FOUND and METHOD name what there is."""
        return TREE.find(head)

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """Say whether reading the body takes a millisecond."""
        return len(data) > COSTLY_BYTES

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """Return the operation of a target that `head` returned, and the encoder for its answer."""
        request_id = head.headers.get(_ID_HEADER, b"").decode("latin-1") or self._make_id()
        properties = head.spelt()
        kind = head.headers.get(b"content-type", b"").decode("latin-1")
        part = RawPart(body.data, kind if essence(kind) else "application/json")
        asked, ignored = _form(body.data)
        encoder = PredictionsEncoder(request_id, asked, lambda: self._ignored.told(target.model, ignored))
        payload = Raw((part,), properties, lease=body.lease, path=None, form=RawForm.ROWS)
        return Infer(target.model, payload, target.version, request_id), encoder

    def refuse(self, error: ServeError) -> HttpAnswer:
        """Return the error object with the status of `errors.TABLE`."""
        return refuse(error)


def make(context: ProtocolContext) -> WireProtocol:
    """Return the protocol for one listener."""
    return V1Http(context.make_id, context.states.of(IgnoredFieldLog))


def _form(data: bytes | memoryview) -> tuple[str, IgnoredFields]:
    """Return which of the two forms a body has, with its fields that are neither; who takes it says what is wrong."""
    ignored = IgnoredFields()
    try:
        fields = fields_of(data)
    except ServeError:
        return INSTANCES, ignored
    for name in fields:
        if name not in _KNOWN:
            ignored.add(name)
    return INPUTS if INPUTS in fields else INSTANCES, ignored
