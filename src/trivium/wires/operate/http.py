"""The console over HTTP: the wire's face to a front end.

Decides which operation a request is and which encoder writes its answer. Knows no socket and no clock but what it is
given, and counts nothing: what it shows is what the core knows.
"""

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import parse_qsl

import msgspec

from trivium.codecs.credentials import SESSION_COOKIE, cookie_of
from trivium.codecs.header_text import essence
from trivium.codecs.page_rule import rule_of
from trivium.codecs.routes import endpoints, prefixes
from trivium.types.access import Endpoint
from trivium.types.console_facts import ConsoleFacts
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.listeners import Role
from trivium.types.log_settings import LogChange
from trivium.types.operations import (
    Answer,
    Listen,
    Listing,
    ListServed,
    Live,
    Load,
    LogControl,
    LogReport,
    Observation,
    Observe,
    Operation,
    ResponsePart,
    Scale,
    Unload,
)
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head, HttpAnswer, Target
from trivium.wires.operate import rows
from trivium.wires.operate.described import describe as describe
from trivium.wires.operate.description import DescriptionEncoder, KeptDescription
from trivium.wires.operate.errors import GUARDS, NOT_STORED, document, refuse
from trivium.wires.operate.events import EventEncoder, EventWriter
from trivium.wires.operate.page import DOCS, INDEX, PageFiles
from trivium.wires.operate.routes import CHANGES, OPEN, ROWS, TREE, OperateVerb
from trivium.wires.operate.visitors import VisitorRule
from trivium.wires.operate.window import PaceWindow

ROUTES: Mapping[Role, Sequence[str]] = {Role.MANAGEMENT: prefixes(ROWS)}
ENDPOINTS: Sequence[Endpoint] = endpoints(ROWS)

MOST_BODY = 16 * 2**10
"""Bytes of a request to change something, or of a key."""

MOST_ARGUMENTS = 10

_FORM = "application/x-www-form-urlencoded"
_LEVELS = {
    "DEBUG": LogChange(1, True, True, True),
    "INFO": LogChange(0, True, True, True),
    "WARNING": LogChange(0, False, True, True),
    "ERROR": LogChange(0, False, False, True),
}


class OperateHttp:
    """Implements `types.interfaces.WireProtocol`."""

    def __init__(
        self,
        reader: rows.ConsoleReader,
        writer: EventWriter,
        visitors: VisitorRule,
        facts: ConsoleFacts,
        described: KeptDescription,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._visitors = visitors
        self._facts = facts
        self._described = described
        self._page = PageFiles(facts.files)

    def head(self, head: Head) -> Target:
        """The route. NOT_FOUND names the routes, METHOD says which methods there are."""
        target = TREE.find(head)
        if target.verb == OperateVerb.SIGN_OUT:
            return msgspec.structs.replace(target, model=cookie_of(head))
        if target.verb == OperateVerb.OVERVIEW and cookie_of(head):
            return msgspec.structs.replace(target, verb=OperateVerb.SIGNED_IN_OVERVIEW)
        return target

    def is_costly(self, head: Head, data: bytes | memoryview) -> bool:
        """Never: bodies are short."""
        return False

    def decode(self, head: Head, target: Target, body: Body) -> tuple[Operation, Encoder]:
        """The operation of a target that `head` returned, and the encoder for its answer. FORBIDDEN for who may not ask
        for it, whatever it is.
        """
        verb = OperateVerb(target.verb)
        self._visitors.check(head, verb)
        if len(body.data) > MOST_BODY:
            raise ServeError(Code.TOO_LARGE, f"The body is longer than {MOST_BODY} bytes. Send less.")
        if verb in OPEN:
            return Live(), Fixed(self._opened(verb, head, target, body))
        if verb in CHANGES:
            return _change(verb, target.model, body), Changed(target.model)
        if verb is OperateVerb.DESCRIPTION:
            known = head.headers.get(b"if-none-match", b"")
            return ListServed(), DescriptionEncoder(self._described, known)
        return self._read(verb, target.model, _version(head))

    def _opened(self, verb: OperateVerb, head: Head, target: Target, body: Body) -> HttpAnswer:
        """Return the answer to what needs no key."""
        match verb:
            case OperateVerb.SIGN_IN:
                return self._signed_in(head, body)
            case OperateVerb.SIGN_OUT:
                self._facts.sign_out(target.model)
                return HttpAnswer(204, _cookie("", 0, head) + NOT_STORED + GUARDS, (), 0)
            case OperateVerb.FILE:
                return self._page.answer(head, target.model)
            case OperateVerb.DOCS:
                return self._page.answer(head, DOCS + INDEX)
            case OperateVerb.DOCS_FILE:
                return self._page.answer(head, DOCS + target.model)
            case _:
                return self._page.answer(head, INDEX)

    def _read(self, verb: OperateVerb, model: str, version: str) -> tuple[Operation, Encoder]:
        """Return what is looked at, and what shows it."""
        reader = self._reader
        match verb:
            case OperateVerb.EVENTS:
                return Listen(), EventEncoder(self._writer)
            case OperateVerb.REQUESTS:
                return Observe(), Seen(rows.requests)
            case OperateVerb.SETTINGS:
                return Observe(), Seen(reader.settings)
            case OperateVerb.MODEL:
                return Observe(model, version), Seen(reader.model)
            case OperateVerb.INSTANCES:
                return Observe(model, version), Seen(rows.instances)
            case OperateVerb.LOGS:
                return Observe(model), Seen(rows.logs)
            case _:
                is_signed_in = verb is OperateVerb.SIGNED_IN_OVERVIEW
                return Observe(), Seen(lambda seen: reader.overview(seen.snapshot, is_signed_in))

    def refuse(self, error: ServeError) -> HttpAnswer:
        """A JSON object with the sentence."""
        return refuse(error)

    def _signed_in(self, head: Head, body: Body) -> HttpAnswer:
        """Return the answer to who shows a key: a cookie that no script reads, and that no other site has sent."""
        is_form = essence(head.headers.get(b"content-type", b"").decode("latin-1")) == _FORM
        key = _form_key(body) if is_form else _text(body, "key")
        signed_in = self._facts.sign_in(key)
        fields = _cookie(signed_in.token, signed_in.seconds, head) + NOT_STORED + GUARDS
        if is_form:  # by a page without a script: it goes back to where it came from
            return HttpAnswer(303, b"Location: /console\r\n" + fields, (), 0)
        return HttpAnswer(204, fields, (), 0)


def make(context: ProtocolContext) -> WireProtocol:
    """The protocol for one listener."""
    facts = context.states.of(ConsoleFacts)
    window = context.states.of(PaceWindow)
    reader = rows.ConsoleReader(context.server_name, context.server_version, facts, window)
    writer = context.states.of(EventWriter, lambda: EventWriter(reader.overview, context.epoch))
    visitors = VisitorRule(rule_of(facts.hosts), context.may_change, facts.has_keys)
    return OperateHttp(reader, writer, visitors, facts, KeptDescription(context.describe))


def _change(verb: OperateVerb, model: str, body: Body) -> Operation:
    """Return what is changed."""
    match verb:
        case OperateVerb.LOAD:
            return Load(model)
        case OperateVerb.UNLOAD:
            return Unload(model)
        case OperateVerb.SCALE:
            count = _whole(body, "instances")
            return Scale(model, count, count, wait=False)
        case _:
            return LogControl(_level(body))


class Fixed:
    """Writes an answer that is known before."""

    __slots__ = ("_answer",)

    def __init__(self, answer: HttpAnswer) -> None:
        self._answer = answer

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """See `types.interfaces.Encoder`."""
        return self._answer if part.error is None else refuse(part.error)


class Seen:
    """Writes what was observed, as the document that `made` makes of it."""

    __slots__ = ("_made",)

    def __init__(self, made: Callable[[Observation], msgspec.Struct]) -> None:
        self._made = made

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """See `types.interfaces.Encoder`."""
        if part.error is not None:
            return refuse(part.error)
        if not isinstance(part.answer, Observation):
            return refuse(ServeError(Code.INTERNAL, "There was nothing to show. Report it."))
        return document(self._made(part.answer))


class Changed:
    """Writes what became of a change: the model's state then, or the log's level."""

    __slots__ = ("_model",)

    def __init__(self, model: str) -> None:
        self._model = model

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """See `types.interfaces.Encoder`."""
        return refuse(part.error) if part.error is not None else document(self._document(part.answer))

    def _document(self, answer: Answer | None) -> Mapping[str, object]:
        if isinstance(answer, LogReport):
            return {"log_level": rows.log_level(answer.settings)}
        statuses = answer.versions if isinstance(answer, Listing) else ()
        mine = [each for each in statuses if each.model == self._model]
        shown = next((each for each in mine if each.is_default), mine[-1] if mine else None)
        return {
            "state": None if shown is None else shown.state.value,
            "reason": (shown and shown.reason) or None,
        }


def _version(head: Head) -> str:
    if len(head.query) > MOST_BODY:
        raise ServeError(
            Code.TOO_LARGE, f"The query is longer than {MOST_BODY} bytes. Send the argument version."
        )
    try:
        found = parse_qsl(head.query, max_num_fields=MOST_ARGUMENTS)
    except ValueError as error:
        words = f"The query has more than {MOST_ARGUMENTS} arguments. Send the argument version."
        raise ServeError(Code.INVALID, words) from error
    return next((value for name, value in found if name == "version"), "")


def _cookie(token: str, seconds: int, head: Head) -> bytes:
    """Return the header line that sets the session's cookie; over TLS it is sent over TLS alone."""
    secure = "; Secure" if head.headers.get(b"origin", b"").startswith(b"https:") else ""
    return (
        f"Set-Cookie: {SESSION_COOKIE}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}\r\n"
    ).encode()


def _fields(body: Body) -> Mapping[str, object]:
    try:
        found = msgspec.json.decode(body.data or b"{}")
    except (msgspec.DecodeError, RecursionError) as error:
        raise ServeError(Code.INVALID, f"The body is no JSON: {error}. Send an object.") from error
    if not isinstance(found, dict):
        raise ServeError(Code.INVALID, "The body is JSON, but no object. Send an object.")
    return found


def _form_key(body: Body) -> str:
    try:
        found = parse_qsl(bytes(body.data).decode(), max_num_fields=10)
    except ValueError as error:
        raise ServeError(Code.INVALID, "The form cannot be read. Send the field key.") from error
    return next((value for name, value in found if name == "key"), "")


def _text(body: Body, name: str) -> str:
    found = _fields(body).get(name)
    if not isinstance(found, str) or not found:
        raise ServeError(Code.INVALID, f'The body has no text "{name}". Send {{"{name}": "..."}}.')
    return found


def _whole(body: Body, name: str) -> int:
    found = _fields(body).get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise ServeError(Code.INVALID, f'The body has no whole number "{name}". Send {{"{name}": 2}}.')
    return found


def _level(body: Body) -> LogChange:
    level = _text(body, "level").upper()
    if level not in _LEVELS:
        raise ServeError(
            Code.INVALID, f"{level[:40]!r} is no level of the log. Send one of {', '.join(_LEVELS)} as level."
        )
    return _LEVELS[level]
