"""The Open Inference Protocol v2 over HTTP, as served by KServe and Triton: the wire's face to a front end.

Decides which operation a request is and which encoder writes its answer. Knows no socket and no model; an
operation's own meaning is the core's.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from trivium.codecs import data_reasons
from trivium.codecs.compression import Inflater, accepted
from trivium.codecs.error_table import Refusal
from trivium.codecs.routes import prefixes
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, anew, frameless
from trivium.types.ignored_fields import IgnoredFields
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.listeners import Role
from trivium.types.operations import Describe, Infer, Live, Operation, Ready, Statistics, TraceControl
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head, HttpAnswer, Target
from trivium.wires.v2 import errors
from trivium.wires.v2.abilities import EXTENSIONS as EXTENSIONS
from trivium.wires.v2.abilities import KServeOptions, make_options
from trivium.wires.v2.compression import CompressedEncoder, coding_of
from trivium.wires.v2.control import decode_control
from trivium.wires.v2.described import describe as describe
from trivium.wires.v2.documents import DocumentEncoder, Identity
from trivium.wires.v2.generate import (
    GenerateEncoder,
    GenerateStreamEncoder,
    decode_generate,
)
from trivium.wires.v2.head_lines import HeadLineEncoder
from trivium.wires.v2.infer_answer import InferEncoder, KnownAnswers
from trivium.wires.v2.infer_request import (
    HEADER_LENGTH,
    decode_infer,
    header_length,
    json_of,
    parsed_length,
    said_length,
)
from trivium.wires.v2.known_headers import LONGEST, KnownHeaders, Meaning
from trivium.wires.v2.load_report import LoadReports
from trivium.wires.v2.parameters import RESERVED
from trivium.wires.v2.placement import Form
from trivium.wires.v2.restricted import check_key
from trivium.wires.v2.routes import ENDPOINTS as ENDPOINTS
from trivium.wires.v2.routes import NAMED_REPOSITORY, ROWS, TREE, Verb, named_repository

ROUTES: Mapping[Role, Sequence[str]] = dict.fromkeys((Role.INFERENCE, Role.MANAGEMENT), prefixes(ROWS))

COSTLY_JSON_BYTES = 128 * 2**10
COSTLY_PACKED_BYTES = 2**10
"""A compressed body may unpack to a thousand times its size."""

_STRINGS, _ESCAPE = b"BYTES", b"\\"
"""In the JSON before binary tensors: what only those of strings have, or what may stand for it."""

_INFER = Verb.INFER
_NO_ABILITIES = KServeOptions()


class KServeHttp:
    """Implements `types.interfaces.WireProtocol`. Name and version are those of `GET /v2`."""

    def __init__(
        self, server_name: str, server_version: str, abilities: KServeOptions = _NO_ABILITIES
    ) -> None:
        self._identity = Identity(server_name, server_version, abilities.extensions)
        self._abilities = abilities
        self._regions = abilities.regions
        self._forwards = abilities.forwards
        self._inflater = Inflater(abilities.most_unpacked, abilities.most_unpacked_together)
        self._known = KnownHeaders(self._encoder_of)
        self._answers = KnownAnswers()
        self._words = abilities.words
        self._loads = LoadReports(abilities.metric)
        self._models = abilities.original.documents

    def head(self, head: Head) -> Target:
        """The route. The refusal of a path names the routes near it, of a method those that there are. INVALID for a
        name that is no UTF-8, FORBIDDEN for who lacks the key to a restricted one.
        """
        target = TREE.find(head)
        verb = target.verb
        if verb is NAMED_REPOSITORY:
            raise named_repository(head.path)
        if self._abilities.restricted:
            check_key(head, verb, self._abilities.restricted)
        if verb is _INFER and HEADER_LENGTH in head.headers:
            return msgspec.structs.replace(target, lead=said_length(head) or 0)
        return target

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """JSON above 128 KiB takes a millisecond, as may a compressed KiB, or a hundred KiB of BYTES; all other binary
        tensors are only viewed.
        """
        size = len(data)
        if b"content-encoding" in head.headers:
            return size > COSTLY_PACKED_BYTES
        if size <= COSTLY_JSON_BYTES:
            return False
        try:
            length = header_length(head)
        except ServeError:
            return False  # `decode` refuses it at once
        if length is None or length > COSTLY_JSON_BYTES:
            return True
        text = bytes(data[:length])
        return _STRINGS in text or _ESCAPE in text

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """The operation of a target that `head` returned, and the encoder for its answer."""
        try:
            headers = head.headers
            if b"content-encoding" in headers:
                body = self._unpacked(head, body)
            if target.verb is not _INFER:
                return self._other(head, target, body)
            value = headers.get(HEADER_LENGTH)
            length = 0 if value is None else parsed_length(value)
            known = self._known.get(bytes(body.data[:length])) if 0 < length <= LONGEST else None
            if known is not None and length + known.blob_bytes == len(body.data):
                infer, encoder = known.operation(target, body), known.encoder
            else:
                request = decode_infer(head, target, body, self._known, self._regions)
                infer = request.operation
                encoder = self._encoder(infer.id, request.forms, request.binary_output)
            if self._forwards is not None:
                infer = self._forwarded(head, infer)
            return infer, encoder if b"accept-encoding" not in headers else _negotiated(head, encoder)
        except ServeError as error:
            told = self._words.of_request(frameless(error), target, json_of(head, body), len(body.data))
            if _waits_for_model(target, frameless(error)):
                kept = frameless(told)
                return TraceControl(target.model), DocumentEncoder(target, self._identity, self._words, kept)
            if told is error:
                raise
            raise anew(told) from error

    def _encoder_of(self, meaning: Meaning) -> Encoder:
        return self._encoder(meaning.id, meaning.forms, meaning.parameters.binary_output)

    def _encoder(self, id: str, forms: Mapping[str, Form], is_binary: bool) -> Encoder:
        return InferEncoder(id, forms, is_binary, self._answers, self._regions, self._words)

    def _other(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        verb = target.verb
        if not body.data and target.takes_body and self._words.needs_body(verb):
            text = "The request has no body. Send a JSON object."
            raise ServeError(Code.INVALID, text, info=ErrorInfo.of(data_reasons.NO_JSON, found=text))
        if verb == Verb.GENERATE:
            operation = self._forwarded(head, decode_generate(target, body, self._ignored()))
            plain = GenerateEncoder(operation.id, self._words, operation.model)
            return operation, _negotiated(head, self._loads.around(head, self._telling(operation, plain)))
        if verb == Verb.GENERATE_STREAM:
            operation = self._forwarded(head, decode_generate(target, body, self._ignored()))
            events = GenerateStreamEncoder(operation.id, self._words, operation.model)
            return operation, self._loads.around(head, self._telling(operation, events))
        not_ready = self._abilities.not_ready
        document = DocumentEncoder(target, self._identity, self._words, None, not_ready, self._models)
        if verb in _READS:
            return _read(target), document
        return decode_control(target, body, self._abilities), document

    def _ignored(self) -> IgnoredFields | None:
        return None if self._abilities.ignored is None else IgnoredFields()

    def _telling(self, infer: Infer, encoder: Encoder) -> Encoder:
        """Return an encoder that names the fields without effect."""
        log, ignored = self._abilities.ignored, infer.ignored
        if log is None or ignored is None:
            return encoder
        return HeadLineEncoder(encoder, partial(log.told, infer.model, ignored))

    def refuse(self, error: ServeError) -> HttpAnswer:
        """`{"error": text}` with the status of `errors.STATUS`, or of the words that are spoken."""
        return errors.refuse(error if isinstance(error, Refusal) else self._words.of_head(error))

    def _unpacked(self, head: Head, body: Body) -> Body:
        """The body as it was before it was compressed. Its lease stays with the front end: nothing views it."""
        coding = coding_of(head.headers[b"content-encoding"])
        return Body(self._inflater.inflate(body.data, coding)) if coding else body

    def _forwarded(self, head: Head, operation: Infer) -> Infer:
        """Return the request with the header fields that become parameters, under their names in lower case."""
        pattern = self._forwards
        if pattern is None:
            return operation
        found: dict[str, str] = {}
        for field, value in head.headers.items():
            name = field.decode("latin-1")
            if pattern.fullmatch(name):
                if name.startswith(RESERVED):
                    raise ServeError(
                        Code.INVALID,
                        f"The header {name!r} cannot become a parameter: names that begin with {RESERVED!r} are "
                        "reserved. Call it otherwise.",
                    )
                found[name] = value.decode("latin-1")
        if not found:
            return operation
        return msgspec.structs.replace(operation, parameters={**operation.parameters, **found})


def make(context: ProtocolContext) -> WireProtocol:
    """The protocol for one listener. INVALID for restrictions that cannot be read."""
    return KServeHttp(context.server_name, context.server_version, make_options(context))


_READS = frozenset({Verb.LIVE, Verb.READY, Verb.STATISTICS, Verb.METADATA, Verb.CONFIG})


def _waits_for_model(target: Target, error: ServeError) -> bool:
    """Say whether the core is first asked for the model: a fault in the trace settings of one that is not there would
    send its reader to the wrong place. Who may not change anything is told so at once.
    """
    return target.verb == Verb.TRACE_SETTINGS and bool(target.model) and error.code is not Code.FORBIDDEN


def _read(target: Target) -> Operation:
    match target.verb:
        case Verb.LIVE:
            return Live()
        case Verb.READY:
            return Ready(target.model, target.version)
        case Verb.STATISTICS:
            return Statistics(target.model, target.version)
        case _:
            return Describe(target.model, target.version)


def _negotiated(head: Head, encoder: Encoder) -> Encoder:
    """Return the encoder of the content coding that the client likes best, if it names any."""
    field = head.headers.get(b"accept-encoding")
    coding = accepted(field) if field is not None else ""
    return CompressedEncoder(encoder, coding) if coding else encoder
