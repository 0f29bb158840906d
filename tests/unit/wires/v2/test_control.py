"""The routes that ask for or change the server's state, without a server: operations in, documents out."""

import base64
import json
import re
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.codecs import grpc_status
from trivium.codecs.error_table import HTTP_STATUS
from trivium.servers.triton.words.texts import error_text
from trivium.types.errors import Code, ServeError
from trivium.types.log_settings import LogChange, LogSettings
from trivium.types.operations import (
    List,
    Listing,
    ListRegions,
    Live,
    Load,
    LogControl,
    LogReport,
    Readiness,
    RegionListing,
    RegisterRegion,
    ResponsePart,
    SharedRegion,
    TraceControl,
    TraceReport,
    Unload,
    UnregisterRegion,
)
from trivium.types.tracing import TraceChange, TraceSettings
from trivium.types.wire import Body, Head
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.http import KServeHttp
from trivium.wires.v2.settings import log_document, read_log_change
from trivium.wires.v2.trace_settings import KEYS

POSTS = (
    "repository/index",
    "repository/models/m/load",
    "repository/models/m/unload",
    "systemsharedmemory/region/r/register",
    "systemsharedmemory/region/r/unregister",
    "cudasharedmemory/region/r/register",
    "logging",
    "trace/setting",
    "models/m/generate",
    "models/m/generate_stream",
    "models/m/infer",
)
WORDS = (
    "parameters",
    "config",
    "file:1/x",
    "ready",
    "unload_dependents",
    "key",
    "byte_size",
    "offset",
    "id",
    *KEYS,
)
OPEN = KServeHttp("trivium", "1", KServeOptions(may_change=True))
SHUT = KServeHttp("trivium", "1")
REGION = SharedRegion("r", "/k", 0, 8)


def ask(path, document=b"", method="POST", protocol=OPEN, **headers):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    fields = {name.encode(): value for name, value in headers.items()}
    head = Head(method, f"/v2/{path}", "", fields, len(body))
    return protocol.decode(head, protocol.head(head), Body(body))


def refusal(*words, **more):
    with pytest.raises(ServeError) as caught:
        ask(*words, **more)
    return caught.value


def answered(encoder, value):
    answer = encoder.encode(ResponsePart(answer=value))
    assert (answer.status, answer.fields) == (200, b"Content-Type: application/json\r\n")
    content = b"".join(answer.buffers)
    assert len(content) == answer.size
    return json.loads(content) if content else None


@pytest.mark.parametrize("path", ["repository/index", "repository/some/index"])
@pytest.mark.parametrize(
    ("document", "ready"), [(b"", False), ({}, False), ({"ready": True}, True), ({"ready": False}, False)]
)
def test_the_index(path, document, ready):
    operation, encoder = ask(path, document, protocol=SHUT)
    assert operation == List(ready)
    assert answered(encoder, Listing(())) == []


def test_load_and_unload():
    operation, encoder = ask("repository/models/m%20n/load")
    assert operation == Load("m n")
    assert answered(encoder, Listing(())) is None
    data = base64.b64encode(b"\0\1").decode()
    operation, _ = ask("repository/models/m/load", {"parameters": {"config": "{}", "file:1/a": data}})
    assert operation == Load("m", "{}", {"1/a": b"\0\1"})
    assert ask("repository/models/m/unload", {})[0] == Unload("m")
    wish = {"parameters": {"unload_dependents": True}}
    assert ask("repository/models/m/unload", wish)[0] == Unload("m", True)


@pytest.mark.parametrize(
    ("path", "document", "words"),
    [
        ("repository/index", {"ready": 1}, "'ready' must be true or false"),
        ("repository/index", [], "no object"),
        ("repository/models/m/load", b"{", "no valid JSON"),
        ("repository/models/m/load", {"parameters": 1}, "'parameters' must be an object"),
        ("repository/models/m/load", {"parameters": {"config": None}}, "no string"),
        ("repository/models/m/load", {"parameters": {"file": ""}}, "no load parameter 'file'"),
        ("repository/models/m/load", {"parameters": {"file:a": "äö"}}, "no base64"),
        ("repository/models/m/load", {"parameters": {"file:a": ""}}, "without the parameter 'config'"),
        ("repository/models/m/unload", {"parameters": {"x": 1}}, "no unload parameter 'x'"),
        ("repository/models/m/unload", {"parameters": {"unload_dependents": 0}}, "true or false"),
        ("systemsharedmemory/region/r/register", {"byte_size": 1}, "no 'key'"),
        ("systemsharedmemory/region/r/register", {"key": "/k"}, "no 'byte_size'"),
        ("systemsharedmemory/region/r/register", {"key": 1, "byte_size": 1}, "'key' must be a string"),
        ("systemsharedmemory/region/r/register", {"key": "k", "byte_size": -1}, "an integer from 0"),
        ("systemsharedmemory/region/r/register", {"key": "k", "byte_size": True}, "an integer from 0"),
        ("systemsharedmemory/region/r/register", {"key": "k", "byte_size": 2**63}, "an integer from 0"),
        ("logging", {"log_info": 1}, "'log_info' must be true or false"),
        ("logging", {"log_verbose_level": True}, "an integer from 0"),
        ("logging", {"log_file": 1}, "a string"),
        ("logging", {"log_loud": True}, "no setting 'log_loud'"),
        ("trace/setting", {"trace_loud": "1"}, "no setting 'trace_loud'"),
    ],
)
def test_wrong_requests(path, document, words):
    error = refusal(path, document)
    assert (error.code, words in error.message) == (Code.INVALID, True), error.message


@pytest.mark.parametrize(
    "path", ["repository/models/m/load", "repository/models/m/unload", "logging", "trace/setting"]
)
def test_who_may_not_change_anything(path):
    error = refusal(path, {}, protocol=SHUT)
    assert (error.code, "loopback" in error.message) == (Code.FORBIDDEN, True)


def test_shared_memory():
    path = "systemsharedmemory/region/r"
    document = {"key": "/k", "byte_size": 8}
    operation, encoder = ask(f"{path}/register", document)
    assert operation == RegisterRegion(REGION)
    assert answered(encoder, RegionListing((REGION,))) is None
    assert ask(f"{path}/register", document | {"offset": 4})[0].region.offset == 4
    assert ask(f"{path}/unregister")[0] == UnregisterRegion("r")
    assert ask("systemsharedmemory/unregister")[0] == UnregisterRegion()
    for where, name in ((f"{path}/status", "r"), ("systemsharedmemory/status", "")):
        operation, encoder = ask(where, method="GET")
        assert operation == ListRegions(name)
        assert answered(encoder, RegionListing((REGION,))) == [
            {"name": "r", "key": "/k", "offset": 0, "byte_size": 8}
        ]


def test_there_is_none_on_a_device():
    operation, encoder = ask("cudasharedmemory/status", method="GET")
    assert operation == Live()
    assert answered(encoder, Readiness(True)) == []
    assert answered(ask("cudasharedmemory/unregister")[1], Readiness(True)) is None
    error = refusal("cudasharedmemory/region/c/register", {})
    assert (error.code, "'c'" in error.message) == (Code.UNSUPPORTED, True)


def test_log_settings():
    operation, encoder = ask("logging", method="GET", protocol=SHUT)
    assert operation == LogControl()
    assert answered(encoder, LogReport(LogSettings())) == {
        "log_file": "",
        "log_info": True,
        "log_warning": True,
        "log_error": True,
        "log_verbose_level": 0,
        "log_format": "default",
    }
    assert ask("logging", {"log_verbose_level": 2, "log_error": True, "log_info": None})[0] == LogControl(
        LogChange(verbose=2, error=True)
    )


@pytest.mark.parametrize(
    "settings", [LogSettings(), LogSettings(3, False, True, False), LogSettings(0, True, False, True, True)]
)
def test_what_the_log_document_says_can_be_set(settings):
    change = read_log_change(log_document(settings), is_lenient=False)
    assert msgspec.structs.asdict(change).items() <= msgspec.structs.asdict(settings).items()


@pytest.mark.parametrize(
    ("document", "code", "text"),
    [
        ({"log_file": "x"}, "UNIMPLEMENTED", "log file location can not be updated through network protocol"),
        ({"log_file": ""}, "UNIMPLEMENTED", "log file location can not be updated through network protocol"),
        ({"log_info": 1}, "INTERNAL", "attempt to access JSON non-boolean as boolean"),
        ({"log_format": "x"}, "UNAVAILABLE", "invalid argument for --log_format, got: x"),
        ({"log_format": 1}, "INTERNAL", "attempt to access JSON non-string as string"),
        (
            {"log_verbose_level": -1},
            "INTERNAL",
            "attempt to access JSON non-unsigned-integer as unsigned-integer",
        ),
    ],
)
def test_log_settings_refused_in_tritons_words(document, code, text):
    with pytest.raises(ServeError) as caught:
        read_log_change(document, is_lenient=True)
    told = error_text(caught.value, {})
    assert (told.status, told.text) == (getattr(grpc_status, code), text)


def test_what_triton_ignores():
    assert read_log_change({"loud": 1, "log_file": None, "log_error": None}, is_lenient=True) == LogChange()


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("logging", {"log_file": "/x"}),
        ("trace/setting", {"trace_file": "/x"}),
    ],
)
def test_settings_that_cannot_be_had(path, document):
    assert refusal(path, document).code is Code.UNSUPPORTED


def test_trace_settings():
    report = TraceReport(TraceSettings(), "")
    for path, model in (("trace/setting", ""), ("models/m/trace/setting", "m")):
        operation, encoder = ask(path, method="GET", protocol=SHUT)
        assert operation == TraceControl(model)
        assert answered(encoder, report)["trace_level"] == ["OFF"]
        assert ask(path, {"trace_rate": "7"})[0] == TraceControl(model, TraceChange(every=7))
    encoder = ask("models/m/trace/setting", method="GET")[1]
    assert encoder.encode(ResponsePart(error=ServeError(Code.NOT_FOUND, "no"))).status == 404


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"trace_file": "/x"}, Code.UNSUPPORTED),
        ({"trace_rate": 5}, Code.INVALID),
        ({"trace_loud": "1"}, Code.INVALID),
        (b"{", Code.INVALID),
    ],
)
def test_a_fault_in_the_trace_settings_of_a_model_waits_until_the_model_is_found(document, code):
    assert refusal("trace/setting", document).code is code
    operation, encoder = ask("models/m/trace/setting", document)
    assert operation == TraceControl("m"), "nothing changes"
    answer = encoder.encode(ResponsePart(answer=TraceReport(TraceSettings(), "")))
    assert (answer.status, b"error" in b"".join(answer.buffers)) == (HTTP_STATUS[code], True)
    unknown = encoder.encode(ResponsePart(error=ServeError(Code.NOT_FOUND, "no such model")))
    assert (unknown.status, unknown.buffers) == (404, (b'{"error":"no such model"}',))
    assert refusal("models/m/trace/setting", {"trace_rate": "1"}, protocol=SHUT).code is Code.FORBIDDEN


@pytest.mark.parametrize(
    ("method", "path", "code", "words"),
    [
        ("GET", "repository/index", Code.METHOD, "use POST"),
        ("GET", "repository/models/m/load", Code.METHOD, "use POST"),
        ("POST", "systemsharedmemory/status", Code.METHOD, "use GET, HEAD"),
        ("PUT", "logging", Code.METHOD, "use GET, HEAD, POST"),
        ("POST", "repository/some/models/m/load", Code.UNSUPPORTED, "/v2/repository/models/m/load"),
        ("POST", "repository/models/m/reload", Code.NOT_FOUND, "no route"),
        ("POST", "repository/models//load", Code.NOT_FOUND, "no route"),
        ("POST", "systemsharedmemory/register", Code.NOT_FOUND, "no route"),
        ("POST", "systemsharedmemory/region//register", Code.NOT_FOUND, "no route"),
        ("POST", "systemsharedmemory/region/r/other", Code.NOT_FOUND, "no route"),
        ("POST", "othersharedmemory/unregister", Code.NOT_FOUND, "no route"),
        ("GET", "models/m/versions/1/trace/setting", Code.NOT_FOUND, "no route"),
        ("GET", "models/m/generate", Code.METHOD, "use POST"),
    ],
)
def test_routes_that_there_are_not(method, path, code, words):
    error = refusal(path, method=method)
    assert error.code is code
    assert re.search(words, error.message)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=8), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=examples(300))
@given(st.sampled_from(POSTS), JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=30))
def test_any_body_is_an_operation_or_a_refusal(path, body):
    with suppress(ServeError):
        _, encoder = ask(path, body)
        assert encoder.encode(ResponsePart()).status in (200, 500)
