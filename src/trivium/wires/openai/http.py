"""OpenAI's API over HTTP, for models that generate text: the wire's face to a front end.

Decides which operation a request is and which encoder writes its answer. A model that generates nothing by itself gets
the body as it came. Knows no socket, no model and no handler.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from trivium.codecs.chat_answers import ChatIdentity
from trivium.codecs.header_text import essence
from trivium.codecs.ignored_field_log import IgnoredFieldLog
from trivium.codecs.request_fields import decode_request, field_error
from trivium.codecs.routes import endpoints, prefixes
from trivium.types.access import Endpoint
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.listeners import Role
from trivium.types.operations import Describe, DescribeAll, Infer, List, Operation, Ready
from trivium.types.payload import Raw, RawPart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head, HttpAnswer, Target
from trivium.wires.openai.answer import OpenAiEncoder
from trivium.wires.openai.described import describe as describe
from trivium.wires.openai.errors import refuse
from trivium.wires.openai.models_answers import ModelsEncoder
from trivium.wires.openai.request import read_priority
from trivium.wires.openai.routes import ROWS, TREE, OpenAiVerb
from trivium.wires.openai.server_answers import HealthEncoder, VersionEncoder
from trivium.wires.openai.token_answers import TokensEncoder

ROUTES: Mapping[Role, Sequence[str]] = {Role.INFERENCE: prefixes(ROWS)}
ENDPOINTS: Sequence[Endpoint] = endpoints(ROWS)

COSTLY_BYTES = 2**16
MOST_ARGUMENTS = 1000
_ID_HEADER = b"x-request-id"


class OpenAiHttp:
    """Implements `types.interfaces.WireProtocol`. `make_id` gives each request its id, `epoch` says when it came, in
    seconds of the Unix epoch. A request that names no model is for the only one that there is.
    `ignored` tells of fields that have no effect; without it they are refused. `version` is the server's.
    """

    def __init__(
        self,
        make_id: Callable[[], str],
        epoch: Callable[[], float] = lambda: 0.0,
        ignored: IgnoredFieldLog | None = None,
        version: str = "",
    ) -> None:
        self._ignored = ignored
        self._version = version
        self._make_id = make_id
        self._epoch = epoch

    def head(self, head: Head) -> Target:
        """The route. NOT_FOUND names the routes, METHOD says which methods there are."""
        return TREE.find(head)

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """A long text or a list of many ids takes a millisecond to read."""
        return len(data) > COSTLY_BYTES

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """The operation of a target that `head` returned, and the encoder for its answer."""
        request_id = head.headers.get(_ID_HEADER, b"").decode("latin-1") or self._make_id()
        created = int(self._epoch())
        if target.verb == OpenAiVerb.HEALTH:
            return Ready(), HealthEncoder(request_id)
        if target.verb == OpenAiVerb.VERSION:
            return Describe(), VersionEncoder(request_id, self._version)
        if target.verb == OpenAiVerb.MODELS:
            shows_all = ("all", "true") in _query(head)
            return List(ready=True), ModelsEncoder(request_id, created, "", shows_all)
        if target.verb == OpenAiVerb.MODEL:
            return Describe(target.model, in_full=True), ModelsEncoder(request_id, created, target.model)
        document = _document(head, body)
        if target.verb in (OpenAiVerb.TOKENIZE, OpenAiVerb.DETOKENIZE):
            return self._about_tokens(head, target, body, document, request_id)
        is_chat = target.verb == OpenAiVerb.CHAT
        model = _model(document)
        identity = ChatIdentity(("chatcmpl-" if is_chat else "cmpl-") + request_id, created, model)
        accept = head.headers.get(b"accept", b"").decode("latin-1")
        encoder = OpenAiEncoder(identity, request_id, document, is_chat, accept, self._ignored)
        priority = read_priority(document) if "priority" in document else 0
        infer = Infer(model, _raw(head, body), id=request_id, priority=priority, as_generate=encoder.read)
        return infer, encoder

    def _about_tokens(
        self, head: Head, target: Target, body: Body, document: Mapping[str, Any], request_id: str
    ) -> tuple[Operation, Encoder]:
        """Ask a model for the tokens of a text, or the text of tokens, and what it says of itself besides."""
        model = _model(document)
        encoder = TokensEncoder(
            model, request_id, document, target.verb == OpenAiVerb.TOKENIZE, self._ignored
        )
        infer = Infer(model, _raw(head, body), id=request_id, as_generate=encoder.read)
        return DescribeAll(model, asked=infer), encoder

    def refuse(self, error: ServeError) -> HttpAnswer:
        """OpenAI's error object with the status of `errors.TABLE`."""
        return refuse(error)


def make(context: ProtocolContext) -> WireProtocol:
    """The protocol for one listener."""
    ignored = None if context.strict_requests else context.states.of(IgnoredFieldLog)
    return OpenAiHttp(context.make_id, context.epoch, ignored, context.server_version)


def _model(document: Mapping[str, Any]) -> str:
    model = document.get("model")
    if model is None or isinstance(model, str):
        return model or ""
    raise field_error("model", "The field 'model' is no string. Send the name of a model.")


def _document(head: Head, body: Body) -> dict[str, Any]:
    """Return the JSON object that a body is."""
    coding = head.headers.get(b"content-encoding", b"").strip().lower()
    if coding not in (b"", b"identity"):
        raise ServeError(Code.UNSUPPORTED_MEDIA, "The body is compressed. Send it as it is.")
    return decode_request(body.data)


def _raw(head: Head, body: Body) -> Raw:
    """Return the body as it came, with its path: a handler may answer several of these routes."""
    properties = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers.items()}
    kind = properties.get("content-type", "")
    part = RawPart(body.data, kind if essence(kind) else "application/json")
    return Raw((part,), properties, _query(head), lease=body.lease, path=head.path.lstrip("/"))


def _query(head: Head) -> tuple[tuple[str, str], ...]:
    if not head.query:
        return ()
    try:
        return tuple(
            parse_qsl(head.query, keep_blank_values=True, errors="strict", max_num_fields=MOST_ARGUMENTS)
        )
    except ValueError as error:  # of which UnicodeDecodeError is one
        words = f"The query is not at most {MOST_ARGUMENTS} percent-encoded UTF-8 arguments. Leave it out."
        raise ServeError(Code.INVALID, words) from error
