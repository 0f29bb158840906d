"""TorchServe's protocol over HTTP, for inference and management: the wire's face to a front end.

Decides which operation a request is and which encoder writes its answer. Knows no socket, no model and no handler.
Source: spec sheet `torchserve`, sections 0, 4 and 5.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial

from trivium.codecs.form_notes import FormNotes
from trivium.codecs.ignored_field_log import IgnoredFieldLog
from trivium.servers.torchserve.wire.answer import PredictionEncoder, TorchServePingEncoder
from trivium.servers.torchserve.wire.config import TorchServeConfig
from trivium.servers.torchserve.wire.described import describe as describe
from trivium.servers.torchserve.wire.errors import note_refusal, refuse
from trivium.servers.torchserve.wire.kserve import ENDPOINTS as KSERVE
from trivium.servers.torchserve.wire.kserve import KServeVerb, probe
from trivium.servers.torchserve.wire.management import (
    VERBS,
    FramedRequest,
    ManagementRequest,
    read_management,
)
from trivium.servers.torchserve.wire.management_answer import TorchServeManagementEncoder
from trivium.servers.torchserve.wire.management_options import ManagementOptions, management_options
from trivium.servers.torchserve.wire.management_routes import ENDPOINTS as MANAGEMENT
from trivium.servers.torchserve.wire.management_routes import ManagementVerb
from trivium.servers.torchserve.wire.open_inference import ANSWERS, OpenInferenceEncoder
from trivium.servers.torchserve.wire.openai_paths import OpenAiPaths
from trivium.servers.torchserve.wire.request import decode_infer, properties_of
from trivium.servers.torchserve.wire.routes import ENDPOINTS as INFERENCE
from trivium.servers.torchserve.wire.routes import PREFIXES, TorchServeVerb, check_served
from trivium.servers.torchserve.wire.token_renewal import RENEWED, RenewalEncoder, renew
from trivium.servers.torchserve.wire.tree import MANAGEMENT_PREFIXES, tree_of
from trivium.servers.torchserve.words.tokens import Tokens
from trivium.types.access import Endpoint
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.listeners import Role
from trivium.types.operations import List, Live, Operation
from trivium.types.payload import Raw
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head, HttpAnswer, Target

ROUTES: Mapping[Role, Sequence[str]] = {Role.INFERENCE: PREFIXES, Role.MANAGEMENT: MANAGEMENT_PREFIXES}
ENDPOINTS: Sequence[Endpoint] = (*INFERENCE, *KSERVE, *MANAGEMENT)
"""All that this protocol answers."""

_NO_DESCRIPTION = (
    "This server does not describe its API by OpenAPI. Its manual has a table of all routes, on the page about "
    "TorchServe."
)
_MANAGING = frozenset(ManagementVerb)
_PROBING = frozenset(KServeVerb)
_NO_OPTIONS = ManagementOptions()
_NO_PATHS = OpenAiPaths()
_OWN = TorchServeConfig(open_inference=True)

COSTLY_FORM_BYTES = 128 * 2**10


class TorchServeHttp:
    """Implements `types.interfaces.WireProtocol`. `make_id` gives each request its id: a client's own is not taken.

    With `exact_texts` an error says what the original says, and no more. What is for other `roles` is not there;
    models are managed as `management` says. Where requests need `tokens`, these can be renewed. `own` says which
    routes of the open inference protocol and of KServe are its, `paths` reads what is asked as OpenAI's API is.
    """

    def __init__(  # noqa: PLR0913 - what one listener's protocol consists of
        self,
        make_id: Callable[[], str],
        exact_texts: bool = False,
        roles: Set[Role] = frozenset(Role),
        management: ManagementOptions = _NO_OPTIONS,
        tokens: Tokens | None = None,
        own: TorchServeConfig = _OWN,
        paths: OpenAiPaths = _NO_PATHS,
    ) -> None:
        self._paths = paths
        self._make_id = make_id
        self._exact = exact_texts
        self._management = management
        self._tokens = tokens
        self._notes = FormNotes("TorchServe" if exact_texts else "")
        self._tree = tree_of(frozenset(roles), own, tokens is not None)

    def head(self, head: Head) -> Target:
        """The route. The refusal of a path names the routes, of a method those that there are."""
        target = self._tree.find(head)
        return target if target.model else check_served(head, target)

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """Forms are searched for their fields; any other body is only viewed."""
        if len(data) <= COSTLY_FORM_BYTES:
            return False
        kind = head.headers.get(b"content-type", b"").lstrip().lower()
        return kind.startswith((b"multipart/form-data", b"application/x-www-form-urlencoded"))

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """The operation of a target that `head` returned, and the encoder for its answer."""
        if target.verb == TorchServeVerb.DESCRIBE_API:
            raise ServeError(Code.UNSUPPORTED, _NO_DESCRIPTION)
        request_id = self._make_id()
        if target.verb in _MANAGING:
            asked = self._managing(head, target, body, request_id)
            return asked.operation, TorchServeManagementEncoder(
                request_id, asked.wish, asked.write, self._exact, asked.reason
            )
        if target.verb == RENEWED and self._tokens is not None:
            renew(head, self._tokens)
            return Live(), RenewalEncoder(request_id)
        if target.verb == TorchServeVerb.PING:
            return List(), TorchServePingEncoder(request_id)
        if target.verb in _PROBING:
            return probe(target, request_id)
        if target.verb in ANSWERS:
            return Live(), OpenInferenceEncoder(request_id, *ANSWERS[target.verb])
        accept = head.headers.get(b"accept", b"").decode("latin-1")
        content_type = head.headers.get(b"content-type", b"").decode("latin-1")
        encoder = PredictionEncoder(request_id, target, accept, content_type, self._exact, self._paths)
        infer = decode_infer(head, target, body, request_id, encoder.read, keeps_forms=self._exact)
        if body.data and isinstance(infer.payload, Raw):
            self._notes.note(infer.model, content_type, infer.payload)
        return infer, encoder

    def _managing(self, head: Head, target: Target, body: Body, request_id: str) -> ManagementRequest:
        verb = ManagementVerb(target.verb)
        given = VERBS[verb].texts(head, body)
        shown = partial(properties_of, head, len(body.data))
        asked = FramedRequest(verb, target.model, target.version, given, request_id, shown)
        return read_management(asked, self._management)

    def refuse(self, error: ServeError) -> HttpAnswer:
        """The error's JSON with the status of `errors.TABLE`; the connection closes behind it."""
        answer = refuse(error, self._make_id(), exact=self._exact)
        note_refusal(error, answer.status)
        return answer


def make(context: ProtocolContext) -> WireProtocol:
    """The protocol for one listener."""
    tokens = context.states.find(Tokens)
    options = management_options(context)
    return TorchServeHttp(
        context.make_id,
        context.as_original,
        context.roles,
        options,
        tokens,
        context.own.read(TorchServeConfig),
        OpenAiPaths(context.epoch, None if context.strict_requests else context.states.of(IgnoredFieldLog)),
    )
