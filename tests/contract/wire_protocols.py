"""The contract of wire protocols over HTTP and of their encoders, as checks that take a subject.

`test_wire_protocols` runs every check on every protocol, and on broken ones that it must catch.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.contract.response_parts import errors, explained, floats, odd_parts, refusal_of

from trivium.frontends.http.request import read_head
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Encoder, WireProtocol
from trivium.types.operations import ResponsePart
from trivium.types.payload import Payload
from trivium.types.wire import Body, Head, HttpAnswer

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"})
READ = frozenset({"GET", "HEAD"})
POST = frozenset({"POST"})

CLIENTS_FAULTS = (Code.INVALID, Code.NOT_FOUND, Code.METHOD, Code.TOO_LARGE, Code.UNSUPPORTED_MEDIA)
SERVERS_FAULTS = (Code.INTERNAL, Code.NOT_READY, Code.QUEUE_FULL, Code.DRAINING, Code.WORKER_DIED)

_LINES = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+: ?[\t\x20-\x7e\x80-\xff]*\r\n)*")
_FRAMING = {b"content-length", b"transfer-encoding", b"connection"}
_SINGLETONS = {b"content-type", b"retry-after", b"content-encoding", b"location"}
_LARGEST_REFUSAL = 20_000

FLOATS = floats(1.0, 2.0)


@dataclass(frozen=True)
class WireRoute:
    """A request that its protocol answers. `methods`: those under which it does; `others`: the statuses of the rest,
    where that is not 405. `streams`: an answer may come in parts, each sent when it comes.
    """

    path: str
    methods: frozenset[str] = READ
    body: bytes = b""
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    query: str = ""
    others: Mapping[str, int] = field(default_factory=dict)
    payload: Payload = FLOATS
    streams: bool = False

    @property
    def method(self) -> str:
        """One under which it is answered."""
        return "POST" if "POST" in self.methods else min(self.methods)


@dataclass(frozen=True)
class WireSubject:
    """A protocol under test. `check_form` asserts that an answer is this error in the protocol's own form, and
    `check_tail` that it is what ends an answer of which a part has been sent.

    `statuses`: where its sheet has a code's status in another class than others; `names_methods`: its 405 says which
    methods there are.
    """

    name: str
    make: Callable[[], WireProtocol]
    routes: tuple[WireRoute, ...]
    check_form: Callable[[HttpAnswer, ServeError], None]
    check_tail: Callable[[HttpAnswer, ServeError], None]
    statuses: Mapping[Code, int] = field(default_factory=dict)
    names_methods: bool = True

    def encoders(self, only_streams: bool = False) -> Iterator[tuple[WireRoute, Callable[[], Encoder]]]:
        """Each route, and what makes an encoder for another request to it."""
        protocol = self.make()
        for route in self.routes:
            if route.streams or not only_streams:
                yield route, lambda route=route: ask(protocol, route)[1]


def head_of(
    route: WireRoute, method: str = "", path: str = "", headers: Mapping[bytes, bytes] | None = None
) -> Head:
    """The head as a front end reads it."""
    fields = {b"host": b"h", b"content-length": b"%d" % len(route.body), **route.headers, **(headers or {})}
    url = path or f"{route.path}?{route.query}"
    return read_head((method or route.method).encode(), url.encode("latin-1"), fields, True)


def ask(protocol: WireProtocol, route: WireRoute, method: str = ""):
    """The operation and the encoder of a request; ServeError for a refusal."""
    head = head_of(route, method)
    return protocol.decode(head, protocol.head(head), Body(route.body))


def check_http(answer: object) -> None:
    """Can this be written as HTTP? Each header line ends, none was smuggled in, none belongs to the front end."""
    assert isinstance(answer, HttpAnswer)
    assert all(isinstance(buffer, bytes | memoryview) for buffer in answer.buffers)
    assert answer.size == sum(memoryview(buffer).nbytes for buffer in answer.buffers)
    if answer.status == 0:  # kept, to be written with a later part
        assert (answer.fields, answer.size, answer.final) == (b"", 0, False)
        return
    assert 200 <= answer.status <= 999
    assert _LINES.fullmatch(answer.fields), answer.fields
    names = names_in(answer)
    assert not _FRAMING & set(names), names
    assert all(names.count(name) <= 1 for name in _SINGLETONS), names
    assert b"x-evil" not in names
    assert answer.reason is None or not set(b"\r\n") & set(answer.reason), answer.reason


def names_in(answer: HttpAnswer) -> list[bytes]:
    """The names of its header lines, in lower case."""
    return [line.partition(b":")[0].lower() for line in answer.fields.split(b"\r\n") if line]


def value_of(answer: HttpAnswer, name: bytes) -> bytes:
    """The value of the first header line of that name; empty without one."""
    lines = [line.partition(b":") for line in answer.fields.split(b"\r\n")]
    return next((value.strip() for found, _, value in lines if found.lower() == name), b"")


def content(answer: HttpAnswer) -> bytes:
    """Its body."""
    return b"".join(answer.buffers)


def _each_answer(subject: WireSubject, check: Callable[[ResponsePart, HttpAnswer], None]) -> None:
    """Look at what every encoder makes of every odd part, as the first of an answer and behind another one."""
    parts = odd_parts()
    for route, make in subject.encoders():
        begin = ResponsePart(route.payload, final=False)
        with explained(f"{route.path}, the first of several parts"):
            goes_on = not make().encode(begin).final
        for is_behind in (False, True) if goes_on else (False,):
            for part in parts:
                encoder = make()
                try:
                    if is_behind:
                        encoder.encode(begin)
                    check(part, encoder.encode(part))
                except Exception as error:
                    place = "behind a part" if is_behind else "first"
                    raise AssertionError(f"{route.path}, {place}: {error!r:.500} of {part!r:.500}") from error


# -- encoders ----------------------------------------------------------------------------------------------


def check_encoders_never_raise(subject: WireSubject) -> None:
    """Whatever a part is, it becomes an answer."""

    def check(part: ResponsePart, answer: HttpAnswer) -> None:
        assert isinstance(answer, HttpAnswer)

    _each_answer(subject, check)


def check_answers_are_http(subject: WireSubject) -> None:
    """Whatever a part is, what it becomes can be written as HTTP."""
    _each_answer(subject, lambda part, answer: check_http(answer))


def check_final_parts_end_the_answer(subject: WireSubject) -> None:
    """Behind a final part nothing comes: its answer must be final and be sent, or the client waits for ever."""

    def check(part: ResponsePart, answer: HttpAnswer) -> None:
        assert answer.final or not part.final
        assert answer.status or not part.final, "it is kept"

    _each_answer(subject, check)


def check_streams_end_once(subject: WireSubject) -> None:
    """Parts are sent as they come, and exactly the last one is final; who answers once refuses the first of them."""
    for route, make in subject.encoders():
        for last in (ResponsePart(), ResponsePart(route.payload)):
            encoder = make()
            parts = [ResponsePart(route.payload, final=False)] * 3 + [last]
            sent = []
            for part in parts:
                sent.append(encoder.encode(part))
                if sent[-1].final:
                    break
            finals = [answer.final for answer in sent]
            assert finals == [False] * (len(sent) - 1) + [True], f"{route.path}: {finals}"
            if route.streams:
                assert len(sent) == len(parts), f"{route.path} ended early: {sent[-1]}"
                assert all(answer.status == 200 and answer.size for answer in sent[:-1]), route.path
            elif len(sent) < len(parts):
                assert sent[-1].status >= 400, f"{route.path} ended well before its last part: {sent[-1]}"


def check_failures_behind_the_first_part(subject: WireSubject) -> None:
    """A failure behind the first part ends the answer, in the protocol's form, so that a client can tell."""
    for code in Code:
        if code is not Code.CANCELLED:
            _check_tails(subject, code)


def check_cancellation_in_mid_stream(subject: WireSubject) -> None:
    """A cancelled answer ends as a failed one does, and other answers of the protocol go on."""
    _check_tails(subject, Code.CANCELLED)
    for route, make in subject.encoders(only_streams=True):
        left, stays = make(), make()
        for encoder in (left, stays):
            encoder.encode(ResponsePart(route.payload, final=False))
        left.encode(ResponsePart(error=ServeError(Code.CANCELLED, "The client left.")))
        following = stays.encode(ResponsePart(route.payload, final=False))
        assert (following.final, following.status) == (False, 200), f"{route.path}: {following}"
        assert following.size, route.path


def _check_tails(subject: WireSubject, code: Code) -> None:
    for route, make in subject.encoders():
        begin = ResponsePart(route.payload, final=False)
        if make().encode(begin).final:
            continue
        for error in errors(code):
            with explained(f"{route.path}, behind a part {code}: {error.message[:80]!r}"):
                encoder = make()
                is_sent = encoder.encode(begin).status != 0
                answer = encoder.encode(ResponsePart(error=error))
                check_http(answer)
                assert answer.final
                if is_sent:
                    assert answer.size or (answer.closes and answer.status >= 400), "no client can tell"
                    subject.check_tail(answer, error)
                else:
                    subject.check_form(answer, error)


def check_requests_share_nothing(subject: WireSubject) -> None:
    """An answer is the same whatever other requests were answered before, or are in the middle of it."""
    crowded = subject.make()
    for route in subject.routes:
        for error in (None, ServeError(Code.INTERNAL, "It failed.")):
            _, other = ask(crowded, route)
            other.encode(ResponsePart(route.payload, final=False))
            other.encode(ResponsePart(error=error))
    for route in subject.routes:
        for part in (
            ResponsePart(route.payload),
            ResponsePart(error=ServeError(Code.MODEL_FAILED, "It failed.")),
        ):
            answers = [ask(protocol, route)[1].encode(part) for protocol in (crowded, subject.make())]
            crowd, alone = [
                (answer.status, answer.fields, content(answer), answer.final) for answer in answers
            ]
            assert crowd == alone, route.path


# -- refusals ----------------------------------------------------------------------------------------------


def check_refusals_have_a_form(subject: WireSubject) -> None:
    """An error is refused in the protocol's own form, before the operation and in its place."""
    protocol = subject.make()
    for code in Code:
        for error in errors(code):
            with explained(f"refused {code}: {error.message[:80]!r}"):
                _check_refusal(subject, error, protocol.refuse(error))
    for route, make in subject.encoders():
        for code in Code:
            for error in errors(code):
                if error.info is None:  # with one it may be no error at all on some route
                    with explained(f"{route.path} answered {code}: {error.message[:80]!r}"):
                        _check_refusal(subject, error, make().encode(ResponsePart(error=error, model="m")))


def _check_refusal(subject: WireSubject, error: ServeError, answer: HttpAnswer) -> None:
    check_http(answer)
    assert answer.final
    assert 400 <= answer.status <= 599, answer.status
    assert answer.size <= _LARGEST_REFUSAL, answer.size
    retry_after = value_of(answer, b"retry-after")
    assert retry_after == b"" or re.fullmatch(rb"\d{1,6}", retry_after), retry_after
    assert error.retry_after is not None or not retry_after
    subject.check_form(answer, error)


def check_every_code_has_a_status(subject: WireSubject) -> None:
    """Whose fault an error is, its status says."""
    protocol = subject.make()
    for code in Code:
        with explained(str(code)):
            status = protocol.refuse(ServeError(code, "It failed.")).status
            assert 400 <= status <= 599, status
            if code in subject.statuses:
                assert status == subject.statuses[code], status
            elif code in CLIENTS_FAULTS or code in SERVERS_FAULTS:
                assert status // 100 == (4 if code in CLIENTS_FAULTS else 5), status


# -- requests ----------------------------------------------------------------------------------------------


def check_methods(subject: WireSubject) -> None:
    """A route answers its own methods, HEAD as GET; all others, OPTIONS too, are refused and told which there are."""
    protocol = subject.make()
    for route in subject.routes:
        for method in sorted(METHODS):
            with explained(f"{method} {route.path}"):
                refusal = refusal_of(lambda route=route, method=method: ask(protocol, route, method))
                assert (refusal is None) == (method in route.methods), refusal or "it was answered"
                if refusal is not None:
                    answer = protocol.refuse(refusal)
                    status = route.others.get(method, 405)
                    assert answer.status == status, answer.status
                    if status == 405 and subject.names_methods:
                        assert set(value_of(answer, b"allow").decode().split(", ")) == route.methods


_SEGMENTS = ("", "%", "%zz", "%ff", "%00%2F%2e%2e", "..", "\xff", "x" * 5000)
_QUERIES = ("=", "&&&", "%ff=%fe", "a=%", "a=1&" * 2000, "model_name=%ff", "model_name=a&model_name=", "\xff")
_HEADERS = (
    (b"content-type", b"multipart/form-data"),
    (b"content-type", b"multipart/form-data; boundary=" + b"x" * 1000),
    (b"content-type", b"application/x-www-form-urlencoded"),
    (b"content-type", b"\xff; charset=\xfe"),
    (b"content-encoding", b"gzip"),
    (b"content-encoding", b"br, \xff"),
    (b"accept", b"\xff;q=a, */*;q=-1, application/json;q=" + b"9" * 100),
    (b"accept-encoding", b"\xff, gzip;q=x"),
    (b"inference-header-content-length", b"-1"),
    (b"inference-header-content-length", b"9" * 50),
    (b"inference-header-content-length", b"\xff"),
    (b"inference-header-content-length", b"3"),
    (b"x-priority", b"\xb2"),
    (b"x-request-id", b"\xff\x01"),
    (b"x-amzn-sagemaker-custom-attributes", b"=;;a=b=c;\xff"),
    (b"origin", b"http://evil\xff"),
)
_BODIES = (
    b"",
    b"\0",
    b"{",
    b"null",
    b"[]",
    b"\xff\xfe{}",
    b'"text"',
    b'{"inputs": null, "parameters": [], "id": {}}',
    b'{"inputs": [1]}',
    b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [99999999999999999999], "data": []}]}',
    b'{"inputs": [{"name": "\\ud800", "datatype": "BYTES", "shape": [1], "data": ["\\udc80"]}]}',
    b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1], "parameters": {"binary_data_size": -1}}]}',
    b'{"ready": "yes", "parameters": {"config": 5}, "log_verbose_level": -1, "trace_level": "x"}',
    b'{"a": ' * 5000,
    b"[" * 100_000,
    b"\x1f\x8b" + b"\0" * 50,
    b"--x\r\nContent-Disposition: form-data; name=\xff\r\n\r\n--x",
)


def check_hostile_heads(subject: WireSubject) -> None:
    """A head is a target or a refusal, whatever its path, query and headers are; nothing of it comes back whole."""
    protocol = subject.make()
    paths = {"//", "/" + "a/" * 5000}
    for route in subject.routes:
        segments = route.path.split("/")
        paths |= {route.path + end for end in ("/", "/x", "/%ff", "//", ";a=b")}
        for index in range(1, len(segments)):
            paths |= {"/".join((*segments[:index], odd, *segments[index + 1 :])) for odd in _SEGMENTS}
        for url in (f"{route.path}?{query}" for query in _QUERIES):
            check_request(subject, protocol, head_of(route, path=url), route.body)
        for name, value in _HEADERS:
            check_request(subject, protocol, head_of(route, headers={name: value}), route.body)
    for path in sorted(paths):
        for method in ("POST", "OPTIONS"):
            check_request(subject, protocol, head_of(subject.routes[0], method, path), subject.routes[0].body)


def check_hostile_bodies(subject: WireSubject) -> None:
    """A body is an operation or a refusal, whatever it holds and wherever it is cut off."""
    protocol = subject.make()
    for route in subject.routes:
        cuts = range(0, len(route.body), max(1, len(route.body) // 20))
        for body in (*_BODIES, *(route.body[:cut] for cut in cuts), route.body * 2):
            check_request(subject, protocol, head_of(route), body)
        for name, value in _HEADERS:
            for body in _BODIES[:5]:
                check_request(subject, protocol, head_of(route, headers={name: value}), body)


def check_request(subject: WireSubject, protocol: WireProtocol, head: Head, body: bytes) -> None:
    """It is decoded, or refused by a ServeError that can be answered."""
    with explained(f"{head.method} {head.path[:100]}?{head.query[:50]} {head.headers!r:.300} {body[:80]!r}"):
        try:
            target = protocol.head(head)
            assert isinstance(protocol.is_costly(head, bytes(2**20)), bool)
            _, encoder = protocol.decode(head, target, Body(body))
        except ServeError as error:
            _check_refusal(subject, error, protocol.refuse(error))
        else:
            check_http(encoder.encode(ResponsePart(error=ServeError(Code.INTERNAL, "It failed."))))


CHECKS: Mapping[str, Callable[[WireSubject], None]] = {
    check.__name__.removeprefix("check_"): check
    for check in (
        check_encoders_never_raise,
        check_answers_are_http,
        check_final_parts_end_the_answer,
        check_streams_end_once,
        check_failures_behind_the_first_part,
        check_cancellation_in_mid_stream,
        check_requests_share_nothing,
        check_refusals_have_a_form,
        check_every_code_has_a_status,
        check_methods,
        check_hostile_heads,
        check_hostile_bodies,
    )
}
"""The contract, by name."""
