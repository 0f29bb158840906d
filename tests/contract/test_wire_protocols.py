"""The contract of wire protocols over HTTP on all that there are, and on broken ones: each check catches some."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.faulty_encoders import (
    AlteredEncoder,
    always,
    changed,
    changing_where,
    ending_all,
    is_cancelled,
    is_error,
    is_late_error,
    raising_where,
)
from tests.contract.response_parts import METRICS
from tests.contract.wire_protocols import (
    CHECKS,
    METHODS,
    POST,
    WireRoute,
    WireSubject,
    check_request,
    content,
    head_of,
    value_of,
)

from trivium.servers.djl.wire.http import DjlHttp
from trivium.servers.torchserve.wire.http import TorchServeHttp
from trivium.servers.triton.words.v2 import V2
from trivium.types.errors import Code, ServeError
from trivium.types.operations import ResponsePart
from trivium.types.payload import Tensors
from trivium.types.wire import NOTHING_YET, HttpAnswer
from trivium.wires.openai.http import OpenAiHttp
from trivium.wires.prometheus.http import MetricsOptions, PrometheusHttp
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.http import KServeHttp

# -- forms -------------------------------------------------------------------------------------------------


def document(text: bytes) -> dict[str, object]:
    """The JSON object that a text is."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise AssertionError(f"{text[:200]!r} is no JSON: {error}") from error
    assert isinstance(found, dict), found
    return found


def check_error_object(answer: HttpAnswer, error: ServeError) -> None:
    """`{"error": text}`, on a stream of events as one of them."""
    text = content(answer)
    if value_of(answer, b"content-type").startswith(b"text/event-stream"):
        text = event(answer)
    else:
        assert value_of(answer, b"content-type") == b"application/json", answer
    assert list(document(text)) == ["error"], text
    assert isinstance(document(text)["error"], str)


def check_tritons_error(answer: HttpAnswer, error: ServeError) -> None:
    """The same, but for what the original answers as plain text."""
    if value_of(answer, b"content-type") == b"text/plain":
        content(answer).decode()
    else:
        check_error_object(answer, error)


def check_event(answer: HttpAnswer, error: ServeError) -> None:
    """An event that holds the error."""
    assert list(document(event(answer))) == ["error"], answer


def event(answer: HttpAnswer) -> bytes:
    """What stands in the one event that an answer is."""
    text = content(answer)
    assert text.startswith(b"data: ") and text.endswith(b"\n\n") and text.count(b"\n") == 2, text  # noqa: PT018
    return text[6:]


def check_djl_form(answer: HttpAnswer, error: ServeError) -> None:
    """Code, type and message, of a handler's failure code, message and error; empty where Netty refuses, which leaves
    no status to anybody else.
    """
    assert answer.closes, answer
    if error.code is Code.OUT_OF_MEMORY or (error.code is Code.TOO_LARGE and error.status is None):
        assert answer.size == 0, answer
        return
    assert value_of(answer, b"content-type") == b"application/json", answer
    check_djl_object(answer, error)
    assert document(content(answer))["code"] == answer.status


def check_djl_object(answer: HttpAnswer, error: ServeError) -> None:
    """The JSON alone, which is also the last chunk of an answer that failed."""
    own = error.code is Code.MODEL_FAILED
    keys = ["code", "message", "error"] if own else ["code", "type", "message"]
    assert list(document(content(answer))) == keys, answer
    assert content(answer).endswith(b"\n")


def check_openai_form(answer: HttpAnswer, error: ServeError) -> None:
    """OpenAI's error object."""
    assert value_of(answer, b"content-type") == b"application/json", answer
    check_openai_object(answer, error)


def check_openai_object(answer: HttpAnswer, error: ServeError) -> None:
    """The JSON alone, which is also the last piece of an answer that failed."""
    found = document(content(answer))["error"]
    assert isinstance(found, dict)
    assert list(found) == ["message", "type", "param", "code"], answer


def check_torchserve_form(answer: HttpAnswer, error: ServeError) -> None:
    """Code, type and message; empty where Netty refuses."""
    assert answer.closes, answer
    if error.code is Code.TOO_LARGE:
        assert answer.size == 0, answer
        return
    assert value_of(answer, b"content-type") == b"application/json", answer
    body = document(content(answer))
    assert list(body) == ["code", "type", "message"], answer
    assert body["code"] == answer.status


def check_broken_off(answer: HttpAnswer, error: ServeError) -> None:
    """Nothing but the end of the connection in the middle of the body."""
    assert answer.closes, answer
    assert (answer.size, answer.status >= 400) == (0, True), answer


# -- subjects ----------------------------------------------------------------------------------------------

_TENSOR = b'{"name":"x","datatype":"FP32","shape":[2]'
_JSON = b'{"id":"7","inputs":[%b,"data":[1,2]}],"outputs":[{"name":"y"}]}' % _TENSOR
_HEADER = (
    b'{"inputs":[%b,"parameters":{"binary_data_size":8}}],"parameters":{"binary_data_output":true}}' % _TENSOR
)
_BINARY = {b"inference-header-content-length": b"%d" % len(_HEADER)}
_PACKED = {b"accept-encoding": b"gzip"}
_BOTH = frozenset({"GET", "HEAD", "POST"})
_MANAGED = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_REGION = b'{"key":"/r","offset":0,"byte_size":8}'

_KSERVE_ROUTES = (
    WireRoute("/v2/models/m/infer", POST, _JSON),
    WireRoute("/v2/models/m/versions/2/infer", POST, _HEADER + bytes(8), _BINARY),
    WireRoute("/v2/models/a%20b/infer", POST, _JSON, _PACKED),
    WireRoute("/v2/models/m/generate", POST, b'{"x":"text","parameters":{"priority":1}}'),
    WireRoute("/v2/models/m/generate_stream", POST, b'{"x":"text","id":"7"}', streams=True),
    WireRoute("/v2"),
    WireRoute("/v2/health/live"),
    WireRoute("/v2/health/ready"),
    WireRoute("/v2/models/m"),
    WireRoute("/v2/models/m/versions/2/ready"),
    WireRoute("/v2/models/m/config"),
    WireRoute("/v2/models/m/stats"),
    WireRoute("/v2/models/stats"),
    WireRoute("/v2/repository/index", POST, b'{"ready":true}'),
    WireRoute("/v2/repository/models/m/load", POST, b'{"parameters":{"config":"{}","file:1/f":"aGk="}}'),
    WireRoute("/v2/repository/models/m/unload", POST, b'{"parameters":{"unload_dependents":true}}'),
    WireRoute("/v2/systemsharedmemory/status"),
    WireRoute("/v2/systemsharedmemory/region/r/status"),
    WireRoute("/v2/systemsharedmemory/region/r/register", POST, _REGION),
    WireRoute("/v2/systemsharedmemory/unregister", POST),
    WireRoute("/v2/cudasharedmemory/status"),
    WireRoute("/v2/cudasharedmemory/unregister", POST),
    WireRoute("/v2/logging", _BOTH, b'{"log_verbose_level":1}'),
    WireRoute("/v2/trace/setting", _BOTH, b'{"trace_rate":"5"}'),
    WireRoute("/v2/models/m/trace/setting", _BOTH, b"{}"),
)
_FORM = {b"content-type": b"multipart/form-data; boundary=b"}
_FORM_BODY = b'--b\r\nContent-Disposition: form-data; name="data"; filename="f"\r\n\r\nhello\r\n--b--\r\n'
_INVOKE = WireRoute("/models/m/invoke", POST, b"hello", streams=True)
_DJL_ROUTES = (
    WireRoute("/predictions/m", METHODS, b"hello", {b"accept": b"application/json"}, streams=True),
    WireRoute("/predictions/m/2", METHODS, _FORM_BODY, _FORM, "a=1", streams=True),
    WireRoute("/invocations", POST, b"hello", {b"x-priority": b"3"}, "model_name=m", streams=True),
    _INVOKE,
    WireRoute("/ping", METHODS),
    WireRoute("/", frozenset({"OPTIONS"}), others=dict.fromkeys(METHODS, 404)),
    WireRoute("/models", _BOTH, b'{"url": "/m", "batch_size": 2}', {b"content-type": b"application/json"}),
    WireRoute("/workflows", _BOTH, query="url=file:///m&synchronous=false&limit=3"),
    WireRoute("/models/m", _MANAGED, query="min_worker=1"),
    WireRoute("/workflows/m/2", _MANAGED),
    WireRoute("/models/m/adapters", _BOTH, query="name=a&src=/a&rank=8"),
    WireRoute("/adapters", _BOTH, query="name=a&src=/a"),
    WireRoute("/models/m/adapters/a", frozenset({"GET", "HEAD", "DELETE"})),
    WireRoute("/adapters/a", frozenset({"GET", "HEAD", "DELETE"})),
    WireRoute("/models/m/adapters/a/update", POST, query="pin=true"),
    WireRoute("/server/logging", METHODS, query="level=debug"),
)
_OPENAI_ROUTES = (
    WireRoute("/v1/models"),
    WireRoute("/v1/models/m"),
    WireRoute("/v1/completions", POST, b'{"model":"m","prompt":["a"],"n":2}', streams=True),
    WireRoute(
        "/v1/chat/completions",
        POST,
        b'{"model":"m","messages":[{"role":"user","content":"a"}]}',
        streams=True,
    ),
)
_CALLING, _UNDESCRIBED = METHODS - {"OPTIONS"}, {"OPTIONS": 501}
_TORCHSERVE_ROUTES = (
    WireRoute("/predictions/m", _CALLING, b"hello", streams=True, others=_UNDESCRIBED),
    WireRoute("/predictions/m/2/v1/chat", _CALLING, _FORM_BODY, _FORM, streams=True, others=_UNDESCRIBED),
    WireRoute("/explanations/m", _CALLING, b"{}", streams=True, others=_UNDESCRIBED),
    WireRoute(
        "/invocations",
        _CALLING,
        b"hello",
        {b"accept": b"*/*"},
        "model_name=m&a=1",
        streams=True,
        others=_UNDESCRIBED,
    ),
    WireRoute("/models/m/invoke", _CALLING, b"hello", streams=True, others=_UNDESCRIBED),
    WireRoute("/m/predict", _CALLING, b"hello", query="a=1", streams=True, others=_UNDESCRIBED),
    WireRoute("/m/2/predict", _CALLING, b"hello", streams=True, others=_UNDESCRIBED),
    WireRoute("/v1/models/m:predict", _CALLING, b"{}", streams=True, others=_UNDESCRIBED),
    WireRoute("/v2/models/m/explain", _CALLING, b"{}", streams=True, others=_UNDESCRIBED),
    WireRoute("/v2/health/live", METHODS),
    WireRoute("/ping", METHODS),
)

KSERVE = WireSubject(
    "kserve",
    lambda: KServeHttp("trivium", "1.2", KServeOptions(may_change=True, original=V2)),
    _KSERVE_ROUTES,
    check_error_object,
    check_event,
)
_TRITON = KServeOptions(may_change=True, original=V2, as_original=True)
_TRITON_STATUSES = {Code.METHOD: 501, Code.TOO_LARGE: 400, Code.UNSUPPORTED_MEDIA: 400}
OPENAI = WireSubject(
    "openai",
    lambda: OpenAiHttp(lambda: "made"),
    _OPENAI_ROUTES,
    check_openai_form,
    check_openai_object,
    {Code.QUEUE_FULL: 429},
)
DJL = WireSubject("djl", lambda: DjlHttp(lambda: "made"), _DJL_ROUTES, check_djl_form, check_djl_object)
TORCHSERVE = WireSubject(
    "torchserve",
    lambda: TorchServeHttp(lambda: "made"),
    _TORCHSERVE_ROUTES,
    check_torchserve_form,
    check_broken_off,
)
SUBJECTS = (
    KSERVE,
    replace(
        KSERVE,
        name="kserve in Triton's words",
        make=lambda: KServeHttp("triton", "2.51.0", _TRITON),
        check_form=check_tritons_error,
        statuses=_TRITON_STATUSES,
        names_methods=False,
    ),
    OPENAI,
    DJL,
    TORCHSERVE,
    replace(TORCHSERVE, name="torchserve, exact texts", make=lambda: TorchServeHttp(lambda: "made", True)),
    WireSubject(
        "prometheus",
        lambda: PrometheusHttp(MetricsOptions(summaries=True, first_parts=True)),
        (WireRoute("/metrics"), WireRoute("/metrics/")),
        check_error_object,
        check_error_object,
    ),
)
every_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)


@every_subject
@pytest.mark.parametrize("name", CHECKS)
def test_contract(name, subject):
    CHECKS[name](subject)


def test_a_report_is_text():
    """The answers of the one route whose answer is no payload are told apart from a refusal."""
    (prometheus,) = (subject for subject in SUBJECTS if subject.name == "prometheus")
    _, make = next(prometheus.encoders())
    answer = make().encode(ResponsePart(answer=METRICS))
    assert (answer.status, answer.final) == (200, True)
    assert content(answer).startswith(b"# HELP ")


def _mutate(subject: WireSubject, data: st.DataObject) -> None:
    """A request with a piece of its body, or of its path, in the place of which something else stands."""
    route = data.draw(st.sampled_from(subject.routes))
    body = bytearray(route.body)
    at = data.draw(st.integers(0, len(body)))
    body[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    path = list(route.path[1:])
    at = data.draw(st.integers(0, len(path)))
    end = at + data.draw(st.integers(0, 2))
    path[at:end] = data.draw(
        st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="#"), max_size=3)
    )
    check_request(subject, subject.make(), head_of(route, path="/" + "".join(path)), bytes(body))


@every_subject
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_request_is_decoded_or_refused(subject, data):
    _mutate(subject, data)


@pytest.mark.slow
@every_subject
@settings(max_examples=3000, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_request_is_decoded_or_refused_at_length(subject, data):
    _mutate(subject, data)


# -- broken implementations --------------------------------------------------------------------------------


class AlteredProtocol:
    """A good protocol with a fault in one of its steps."""

    def __init__(self, good, *, head=None, decode=None, refuse=None, encode=None):
        self.head = good.head if head is None else lambda request: head(good, request)
        self._decode = good.decode if decode is None else lambda *request: decode(good, *request)
        self.refuse = good.refuse if refuse is None else lambda error: refuse(good.refuse(error), error)
        self._encode = encode
        self.is_costly = good.is_costly

    def decode(self, head, target, body):
        operation, encoder = self._decode(head, target, body)
        return operation, encoder if self._encode is None else AlteredEncoder(encoder, self._encode)


def broken(subject: WireSubject = DJL, **faults: Callable[..., object]) -> WireSubject:
    """The subject with these faults."""
    good = subject.make
    return replace(subject, make=lambda: AlteredProtocol(good(), **faults))


def refused_where(is_bad: Callable[[ServeError], bool], **fields: object) -> Callable[..., HttpAnswer]:
    return lambda answer, error: changed(answer, **fields) if is_bad(error) else answer


def _raise(error: Exception) -> None:
    raise error


def _encoding(answer: HttpAnswer, error: ServeError) -> HttpAnswer:
    error.message.encode()
    return answer


def _repeating(answer: HttpAnswer, error: ServeError) -> HttpAnswer:
    line = b"X-Error: %s\r\n" % error.message.encode("utf-8", "replace")
    return changed(answer, fields=answer.fields + line)


def _without_a_row(answer: HttpAnswer, error: ServeError) -> HttpAnswer:
    return _raise(KeyError(error.code)) if error.code is Code.DRAINING else answer


def _head_unasked(good, request):
    return good.head(msgspec.structs.replace(request, method="POST"))


def _head_without_allow(good, request):
    try:
        return good.head(request)
    except ServeError as error:
        raise ServeError(error.code, error.message) from error


def _head_of_bytes(good, request):
    request.path.encode("ascii")
    return good.head(request)


def _decode_json(good, head, target, body):
    if head.headers.get(b"content-type", b"").startswith(b"application/x-www-form-urlencoded"):
        json.loads(bytes(body.data))
    return good.decode(head, target, body)


class SharingProtocol:
    """All requests have one encoder, and with it what it knows of the others."""

    def __init__(self, good):
        self._good, self._shared = good, {}
        self.head, self.refuse, self.is_costly = good.head, good.refuse, good.is_costly

    def decode(self, head, target, body):
        operation, encoder = self._good.decode(head, target, body)
        return operation, self._shared.setdefault(type(encoder), encoder)


FAULTS: Mapping[str, Mapping[str, WireSubject]] = {
    "encoders_never_raise": {
        "raises at tensors": broken(
            encode=raising_where(lambda part, number: isinstance(part.payload, Tensors))
        ),
        "raises at answers": broken(encode=raising_where(lambda part, number: part.answer is not None)),
        "raises at an empty end": broken(
            encode=raising_where(
                lambda part, number: part.payload is None and part.error is None and (number > 0)
            )
        ),
        "raises at errors behind a part": broken(encode=raising_where(is_late_error)),
    },
    "answers_are_http": {
        "a wrong size": broken(encode=changing_where(is_error, size=3)),
        "a header line within another": broken(
            encode=changing_where(is_error, fields=b"X-Error: a\r\nX-Evil: 1\r\n")
        ),
        "a line without its end": broken(encode=changing_where(always, fields=b"A: b")),
        "a length of its own": broken(encode=changing_where(always, fields=b"Content-Length: 0\r\n")),
        "two content types": broken(encode=changing_where(always, fields=b"Content-Type: a\r\n" * 2)),
        "text for bytes": broken(encode=changing_where(always, buffers=("a",), size=1)),
        "an interim status": broken(encode=changing_where(is_error, status=100)),
        "lines in its reason": broken(encode=changing_where(is_error, reason=b"a\r\nX-Evil: 1")),
    },
    "final_parts_end_the_answer": {
        "no end": broken(encode=changing_where(always, final=False)),
        "no end of errors": broken(encode=changing_where(is_error, final=False)),
        "keeps all": broken(encode=lambda *_: NOTHING_YET),
    },
    "streams_end_once": {
        "ends at once": broken(encode=changing_where(always, final=True)),
        "ends again and again": broken(encode=changing_where(lambda part, n: n > 1, final=True)),
        "never ends": broken(encode=changing_where(always, final=False)),
        "swallows parts": broken(encode=changing_where(lambda part, n: n == 1, buffers=(), size=0)),
        "several parts of which the first is the whole answer": broken(
            KSERVE, encode=changing_where(lambda part, n: not part.final, status=200, final=True)
        ),
    },
    "failures_behind_the_first_part": {
        "a failure in silence": broken(encode=changing_where(is_late_error, buffers=(), size=0)),
        "a failure in another form": broken(
            encode=changing_where(is_late_error, buffers=(b"oh no\n",), size=6)
        ),
        "a failure that ends nothing": broken(encode=changing_where(is_late_error, final=False)),
    },
    "cancellation_in_mid_stream": {
        "goes on when cancelled": broken(encode=changing_where(is_cancelled, final=False)),
        "cancelled in silence": broken(encode=changing_where(is_cancelled, buffers=(), size=0)),
        "cancels the others, too": broken(encode=ending_all()),
    },
    "requests_share_nothing": {
        "one encoder for all": replace(DJL, make=lambda: SharingProtocol(DJL.make())),
    },
    "refusals_have_a_form": {
        "refuses with success": broken(refuse=refused_where(lambda error: True, status=200)),
        "refuses in plain text": broken(refuse=refused_where(lambda error: True, buffers=(b"no",), size=2)),
        "cannot write surrogates": broken(refuse=_encoding),
        "waits for parts of a second": broken(
            refuse=refused_where(lambda error: error.retry_after, fields=b"Retry-After: 0.2\r\n")
        ),
        "its message in a header line": broken(refuse=_repeating),
        "answers errors with success": broken(
            encode=changing_where(lambda part, number: part.error is not None and number == 0, status=200)
        ),
    },
    "every_code_has_a_status": {
        "a code without a row": broken(refuse=_without_a_row),
        "blames the client": broken(
            refuse=refused_where(lambda error: error.code is Code.INTERNAL, status=400)
        ),
        "another status than its sheet's": broken(replace(KSERVE, statuses={Code.INVALID: 422})),
    },
    "methods": {
        "answers every method": broken(head=_head_unasked),
        "does not say which methods": broken(head=_head_without_allow),
        "refuses its own method": broken(head=lambda good, request: _raise(ServeError(Code.METHOD, "no"))),
    },
    "hostile_heads": {
        "raises at odd paths": broken(head=_head_of_bytes),
    },
    "hostile_bodies": {
        "raises at odd bodies": broken(decode=_decode_json),
    },
}
"""The check that must see it -> what is broken -> the subject."""


@pytest.mark.parametrize(
    ("check", "fault"), [(check, fault) for check, faults in FAULTS.items() for fault in faults]
)
def test_the_contract_catches(check, fault):
    with pytest.raises(AssertionError) as caught:
        CHECKS[check](FAULTS[check][fault])
    assert not isinstance(
        caught.value.__cause__, NameError | TypeError | AttributeError
    )  # of the fault's own code


@pytest.mark.parametrize("name", CHECKS)
def test_without_a_fault_nothing_is_caught(name):
    CHECKS[name](broken(replace(DJL, routes=(_DJL_ROUTES[0], _INVOKE))))


def test_every_check_catches_something():
    assert set(FAULTS) == set(CHECKS)
