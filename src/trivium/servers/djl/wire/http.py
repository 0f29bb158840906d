"""DJL Serving's inference protocol over HTTP: the wire's face to a front end.

Decides which operation a request is and which encoder writes its answer. Knows no socket, no model and no handler.
Source: spec sheet `djl`, section 4.
"""

from collections.abc import Callable
from functools import partial

import msgspec

from trivium.codecs.error_texts import not_from_here
from trivium.codecs.form_notes import FormNotes
from trivium.servers.djl.wire.adapters import VERBS as ADAPTING
from trivium.servers.djl.wire.answer import DjlInferEncoder, DjlPingEncoder
from trivium.servers.djl.wire.described import describe as describe
from trivium.servers.djl.wire.errors import AT_HEAD, refuse
from trivium.servers.djl.wire.lazy import URL, lazily
from trivium.servers.djl.wire.management import VERBS as MANAGING
from trivium.servers.djl.wire.management import decode_management
from trivium.servers.djl.wire.metrics import decode_metrics
from trivium.servers.djl.wire.options import DjlOptions, options_of
from trivium.servers.djl.wire.own_metrics import families
from trivium.servers.djl.wire.paging import (
    DjlDeferEncoder,
    DjlFetchEncoder,
    KeptText,
    is_deferred,
    read_fetch,
)
from trivium.servers.djl.wire.request import DjlHead, ReadGenerate, decode_infer, read_head
from trivium.servers.djl.wire.routes import ENDPOINTS as ENDPOINTS
from trivium.servers.djl.wire.routes import ROUTES as ROUTES
from trivium.servers.djl.wire.routes import DjlVerb, tree_of
from trivium.types.access import AccessScope
from trivium.types.errors import ServeError, with_facts
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.operations import Defer, Describe, Infer, List, Live, Operation
from trivium.types.payload import Raw
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head, HttpAnswer, Target

COSTLY_FORM_BYTES = 128 * 2**10
MOST_HEADS = 128
"""Heads that are remembered: those that connections repeat."""

_DEFAULTS = DjlOptions()
_MANAGING = {**MANAGING, **ADAPTING}


class DjlHttp:
    """Implements `types.interfaces.WireProtocol`. `make_id` gives an id to each request that comes without one."""

    def __init__(self, make_id: Callable[[], str], options: DjlOptions = _DEFAULTS, host: str = "") -> None:
        self._make_id = make_id
        self._own_metrics = partial(families, options.meter, host)
        self._notes = FormNotes("DJL Serving" if options.exact else "")
        self._options = options
        self._tree = tree_of(frozenset(options.roles))
        self._heads: dict[int, DjlHead] = {}

    def head(self, head: Head) -> Target:
        """The route. The refusal of a path names the routes, of a method those that there are."""
        try:
            target = self._tree.find(head)
            if self._options.lazy is not None and target.verb == DjlVerb.INFER:
                target = msgspec.structs.replace(target, is_served=False)
            if target.scope is AccessScope.MANAGE and not self._options.may_change:
                raise not_from_here()
            return target
        except ServeError as error:
            raise with_facts(error, request_id=self._id(head)) from error

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """Forms are searched for their fields; any other body is only viewed."""
        if len(data) <= COSTLY_FORM_BYTES:
            return False
        kind = head.headers.get(b"content-type", b"").lstrip().lower()
        return kind.startswith((b"multipart/form-data", b"application/x-www-form-urlencoded"))

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """The operation of a target that `head` returned, and the encoder for its answer."""
        request_id, options = self._id(head), self._options
        if target.verb == DjlVerb.PING:
            return List(), DjlPingEncoder(request_id, True, options)
        if target.verb == DjlVerb.OPTIONS:
            description = Describe(target.model, target.version) if target.model else Live()
            return description, DjlPingEncoder(request_id, False, options)
        try:
            if row := _MANAGING.get(target.verb):
                return decode_management(row, head, target, body, request_id, options.exact)
            if target.verb == DjlVerb.METRICS:
                return decode_metrics(head, request_id, options.prometheus, options.exact, self._own_metrics)
            known = self._heads.get(id(head)) or self._remembered(head)
            accept, content_type = known.accept, known.content_type
            if fetch := read_fetch(head):
                return fetch, DjlFetchEncoder(request_id, fetch, accept, content_type, options)
            if is_deferred(head):
                kept = KeptText(request_id, options)
                infer = self._infer(known, target, body, request_id, kept.read)
                return Defer(infer, kept.write), DjlDeferEncoder(request_id, options)
            encoder = DjlInferEncoder(request_id, accept, content_type, options, target.model)
            infer = self._infer(known, target, body, request_id, encoder.read)
            operation, unknown = lazily(infer, options.lazy) if self._names_url(head) else (infer, None)
        except ServeError as error:
            raise with_facts(error, request_id=request_id) from error
        encoder.unknown = unknown
        return operation, encoder

    def _infer(
        self, known: DjlHead, target: Target, body: Body, request_id: str, read: ReadGenerate
    ) -> Infer:
        infer = decode_infer(known, target, body, request_id, self._options.handler_override, read)
        if known.is_form and body.data and isinstance(infer.payload, Raw):
            self._notes.note(infer.model, known.content_type, infer.payload)
        return infer

    def refuse(self, error: ServeError) -> HttpAnswer:
        """The error's JSON with the status of `errors.TABLE`; the connection closes behind it."""
        request_id = str(error.metadata.get("request_id", ""))
        verb = "" if request_id or error.reason else AT_HEAD
        return refuse(error, request_id or self._make_id(), self._options.exact, verb)

    def _remembered(self, head: Head) -> DjlHead:
        """Read a head that may be repeated. It is kept, so that no other has its identity meanwhile."""
        known = read_head(head, self._options.exact)
        if len(self._heads) >= MOST_HEADS:
            self._heads.clear()
        self._heads[id(head)] = known
        return known

    def _names_url(self, head: Head) -> bool:
        """Tell whether a prediction may be one by which a model is registered, or whose client believes so."""
        return self._options.lazy is not None or URL.encode() in head.headers or URL in head.query

    def _id(self, head: Head) -> str:
        return head.headers.get(self._options.request_id, b"").decode("latin-1") or self._make_id()


def make(context: ProtocolContext) -> WireProtocol:
    """The protocol for one listener. INVALID for options that cannot be."""
    return DjlHttp(context.make_id, options_of(context), context.host)
