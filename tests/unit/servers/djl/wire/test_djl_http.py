import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.harness.properties import examples

from trivium.codecs import ndlist
from trivium.codecs.header_text import uncached_lines
from trivium.servers.djl.wire import errors
from trivium.servers.djl.wire.errors import TABLE
from trivium.servers.djl.wire.http import COSTLY_FORM_BYTES, DjlHttp
from trivium.servers.djl.wire.options import DjlOptions
from trivium.types.access import AccessScope
from trivium.types.buffers import Lease
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import WireProtocol
from trivium.types.operations import (
    Describe,
    Infer,
    List,
    Listing,
    Live,
    Readiness,
    ResponsePart,
    VersionStatus,
)
from trivium.types.payload import Generate, Raw, RawForm, RawPart, Tensor, Tensors
from trivium.types.state import VersionState
from trivium.types.wire import Body, Head, Target

PROTOCOL: WireProtocol = DjlHttp(lambda: "made-id")
STARTED = uncached_lines("made-id")
JSON = b"Content-Type: application/json\r\n"


def head(method="POST", path="/predictions/m", query="", **headers):
    named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return Head(method, path, query, named)


def decoded(request, body=b""):
    return PROTOCOL.decode(request, PROTOCOL.head(request), Body(body))


def infer(request, body=b""):
    operation, _ = decoded(request, body)
    assert isinstance(operation, Infer)
    return operation


def refused(request, body=b""):
    with pytest.raises(ServeError) as error:
        decoded(request, body)
    return PROTOCOL.refuse(error.value)


def document(answer):
    content = b"".join(answer.buffers)
    assert len(content) == answer.size
    assert content.endswith(b"\n")
    return json.loads(content)


# -- routes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "target"),
    [
        ("POST", "/predictions/m", Target("infer", "m", "", True, scope=AccessScope.INFER)),
        ("GET", "/predictions/m", Target("infer", "m", "", True, scope=AccessScope.INFER)),
        ("BREW", "/predictions/m/v1", Target("infer", "m", "v1", True, scope=AccessScope.INFER)),
        ("PUT", "/predictions/m%2Fn%20o", Target("infer", "m/n o", "", True, scope=AccessScope.INFER)),
        ("POST", "/invocations", Target("infer", takes_body=True, scope=AccessScope.INFER)),
        ("POST", "/models/m/invoke", Target("infer", "m", takes_body=True, scope=AccessScope.INFER)),
        ("GET", "/ping", Target("ping", scope=AccessScope.OPEN)),
        ("POST", "/ping", Target("ping", scope=AccessScope.OPEN)),
        ("OPTIONS", "/predictions/m", Target("options", "m", scope=AccessScope.INFER)),
        ("OPTIONS", "/", Target("options", scope=AccessScope.INFER)),
    ],
)
def test_routes(method, path, target):
    assert PROTOCOL.head(head(method, path)) == target


@pytest.mark.parametrize(
    ("method", "path", "status", "type_name"),
    [
        ("POST", "/predictions", 404, "ResourceNotFoundException"),
        ("POST", "/predictions/", 404, "ResourceNotFoundException"),
        ("POST", "/predictions/m/1/2", 404, "ResourceNotFoundException"),
        ("GET", "/", 404, "ResourceNotFoundException"),
        ("GET", "/" + "x" * 100_000, 404, "ResourceNotFoundException"),
        ("GET", "/invocations", 405, "MethodNotAllowedException"),
        ("DELETE", "/models/m/invoke", 405, "MethodNotAllowedException"),
        ("POST", "/predictions/%FF", 400, "BadRequestException"),
    ],
)
def test_other_paths(method, path, status, type_name):
    answer = refused(head(method, path, x_request_id="its-id"))
    said = document(answer)
    assert (answer.status, said["code"], said["type"]) == (status, status, type_name)
    assert list(said) == ["code", "type", "message"]
    assert answer.closes
    assert answer.fields.startswith(uncached_lines("its-id"))
    assert (b"Allow: POST\r\n" in answer.fields) == (status == 405)
    assert answer.size < 1000


# -- requests ---------------------------------------------------------------------------------------------


def test_a_request():
    lease = Lease(memoryview(bytearray(3)), lambda lease: None)
    request = head(query="topK=2&topK=3&e=&f", content_type="image/png", X_own="1", x_request_id="its-id")
    target = PROTOCOL.head(request)
    operation, _ = PROTOCOL.decode(request, target, Body(b"png", lease))
    assert isinstance(operation, Infer)
    assert structs.replace(operation, as_generate=None) == Infer(
        "m",
        Raw(
            (RawPart(b"png", "image/png"),),
            {"content-type": "image/png", "X-own": "1", "x-request-id": "its-id"},
            (("topK", "2"), ("topK", "3"), ("e", ""), ("f", "")),
            lease=lease,
            form=RawForm.SIGNED,
        ),
        id="its-id",
    )


def test_a_request_without_a_body_or_an_id():
    operation = infer(head("GET"))
    assert operation.payload.parts == (RawPart(b""),)
    assert operation.id == "made-id"


def test_forms():
    operation = infer(head(content_type="application/x-www-form-urlencoded"), b"a=1&b=2")
    assert [(part.name, bytes(part.data)) for part in operation.payload.parts] == [("a", b"1"), ("b", b"2")]
    body = b'--x\r\nContent-Disposition: form-data; name="data"; filename="f.png"\r\n\r\n1\r\n--x--\r\n'
    (part,) = infer(head(content_type="multipart/form-data; boundary=x"), body).payload.parts
    assert (part.name, part.filename, bytes(part.data)) == ("data", "f.png", b"1")
    assert refused(head(content_type="multipart/form-data; boundary=x"), b"no form").status == 400


@pytest.mark.parametrize("exact", [False, True])
def test_json_that_is_called_a_form_is_read_as_json_and_the_log_says_so_once(exact, caplog):
    """What `curl -d` sends without a word about its type."""
    wire = DjlHttp(lambda: "made-id", DjlOptions(exact=exact))
    body = b'{"inputs": "a=b", "adapters": "lora"}'
    for _ in range(2):
        request = head(content_type="application/x-www-form-urlencoded")
        operation, _ = wire.decode(request, wire.head(request), Body(body))
    assert operation.payload.formless().parts == (RawPart(body, "application/json"),)
    if exact:
        assert [part.name for part in operation.payload.parts] == ['{"inputs": "a']
    else:
        assert operation.payload.parts == operation.payload.formless().parts
        assert operation.adapter == "lora"
    (line,) = [record.getMessage() for record in caplog.records]
    assert ("a handler gets it as a form, as from DJL Serving" in line) is exact


def test_custom_attributes_are_properties():
    request = head(X_Amzn_SageMaker_Custom_Attributes="", accept="a/b")
    request.headers[b"x-amzn-sagemaker-custom-attributes"] = b"a=b; c = d=e ;bare;=x"
    request.headers.pop(b"X-Amzn-SageMaker-Custom-Attributes")
    assert infer(request).payload.properties == {"accept": "a/b", "a": "b", "c": "d=e"}


@pytest.mark.parametrize(
    ("query", "headers", "content_type", "body", "expected"),
    [
        ("model_name=q&model_version=2", {}, "", b"", ("q", "2")),
        ("", {"Model_Name": "h", "model_version": "3"}, "", b"", ("h", "3")),
        ("", {"x-amzn-sagemaker-custom-attributes": "model_name=c"}, "", b"", ("c", "")),
        ("", {}, "application/x-www-form-urlencoded", b"model_name=f", ("f", "")),
        ("model_name=q", {"model_name": "h"}, "", b"", ("q", "")),
        ("", {}, "", b"", ("", "")),
    ],
)
def test_whose_invocation_it_is(query, headers, content_type, body, expected):
    named = {name.encode(): value.encode() for name, value in headers.items()}
    named[b"content-type"] = content_type.encode()
    operation = infer(Head("POST", "/invocations", query, named), body)
    assert (operation.model, operation.version) == expected


def test_the_path_names_the_model_before_anything_else():
    assert infer(head("POST", "/models/m/invoke", "model_name=q&model_version=2")).model == "m"
    assert infer(head("POST", "/predictions/m/1", "model_version=2")).version == "1"


@pytest.mark.parametrize(("value", "priority"), [("1", 1), ("7", 7), ("0", 1), ("-5", 1), (" 2 ", 2)])
def test_priorities(value, priority):
    assert infer(head(x_priority=value)).priority == priority


def test_without_a_priority():
    assert infer(head()).priority == 0


@pytest.mark.parametrize(
    ("request_head", "body", "status", "words"),
    [
        (head(x_priority="high"), b"", 400, "x-priority"),
        (head(x_priority="1" * 5000), b"", 400, "x-priority"),
        (head(x_priority="٤".encode().decode("latin-1")), b"", 400, "x-priority"),
        (head(handler="other"), b"", 400, "named handler"),
        (head(Handler="other"), b"", 400, "named handler"),
        (head(query="a=%FF"), b"", 400, "query"),
        (head(query="&".join(["a=1"] * 2000)), b"", 400, "at most 1000"),
        (head(x_starting_token="t"), b"", 400, "x-next-token"),
        (
            head("POST", "/invocations", content_type="application/x-www-form-urlencoded"),
            b"model_name=%FF",
            400,
            "not UTF-8",
        ),
    ],
)
def test_requests_that_are_refused(request_head, body, status, words):
    answer = refused(request_head, body)
    assert answer.status == status
    assert words in document(answer)["message"]


def test_what_is_costly():
    form = head(content_type="Multipart/Form-Data; boundary=x")
    assert PROTOCOL.is_costly(form, bytes(COSTLY_FORM_BYTES + 1))
    assert not PROTOCOL.is_costly(form, bytes(COSTLY_FORM_BYTES))
    assert not PROTOCOL.is_costly(head(content_type="image/png"), bytes(10**6))
    assert not PROTOCOL.is_costly(head(), bytes(10**6))


@settings(max_examples=examples(200))
@given(
    st.text(st.characters(max_codepoint=255), max_size=20),
    st.dictionaries(st.binary(min_size=1, max_size=9), st.binary(max_size=9), max_size=3),
    st.binary(max_size=60),
)
def test_any_request_is_decoded_or_refused(query, headers, body):
    for kind in (b"", b"multipart/form-data; boundary=x", b"application/x-www-form-urlencoded"):
        request = Head("POST", "/invocations", query, headers | {b"content-type": kind})
        try:
            operation, encoder = PROTOCOL.decode(request, PROTOCOL.head(request), Body(body))
        except ServeError as error:
            answer = PROTOCOL.refuse(error)
        else:
            assert isinstance(operation, Infer)
            answer = encoder.encode(ResponsePart(payload=Raw(())))
        assert answer.status in (200, 400, 413, 501)


# -- answers ----------------------------------------------------------------------------------------------


def encoder(**headers):
    _, made = decoded(head(**headers))
    return made


def answered(payload, **headers):
    return encoder(**headers).encode(ResponsePart(payload=payload))


def test_a_handlers_answer():
    payload = Raw(
        (RawPart(b"body"), RawPart(b"dropped")),
        {"Content-Type": "text/plain", "x-a": "ä 1", "Content-Length": "99", "X-Request-Id": "other"},
        status=202,
        reason="not yet",
    )
    answer = answered(payload)
    assert (answer.status, answer.reason, answer.buffers, answer.size) == (202, b"not yet", (b"body",), 4)
    assert answer.fields == STARTED + "Content-Type: text/plain\r\nx-a: ä 1\r\n".encode()
    assert answer.final
    assert not answer.closes


def test_no_content_type_is_invented():
    answer = answered(Raw((RawPart(b"x"),)))
    assert (answer.status, answer.reason, answer.fields) == (200, None, STARTED)
    said = answered(Raw((RawPart(b"x", "image/png"),), {"content-type": "image/jpeg"}))
    assert said.fields == STARTED + b"content-type: image/jpeg\r\n"
    assert answered(Raw((RawPart(b"x", "image/png"),))).fields == STARTED + b"Content-Type: image/png\r\n"
    assert answered(Raw(())).size == 0


def test_a_handlers_error_closes_the_connection():
    answer = answered(Raw((RawPart(b"x"),), status=424))
    assert (answer.status, answer.closes, answer.buffers) == (424, True, (b"x",))


@pytest.mark.parametrize(
    "properties",
    [
        {"a": "1\r\nx-evil: 1"},
        {"a\r\nx-evil": "1"},
        {"a": "1\n2"},
        {"a": "1\r2"},
        {"a": "1\x002"},
        {"a b": "1"},
        {"a:": "1"},
        {"": "1"},
        {"ä": "1"},
        {"content-type": "a\r\n\r\nbody"},
    ],
    ids=str,
)
def test_no_property_breaks_out_of_its_line(properties):
    answer = answered(Raw((RawPart(b"x"),), properties))
    assert answer.status == 424
    assert b"evil" not in answer.fields
    assert answer.fields == STARTED + JSON
    assert "cannot be a header line" in document(answer)["error"]


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=3), st.text(max_size=9))
def test_any_property_is_a_line_or_an_error(properties, reason):
    answer = answered(Raw((), properties, reason=reason))
    fields = answer.fields.removeprefix(STARTED)
    assert fields.count(b"\r") == fields.count(b"\n") == fields.count(b"\r\n")
    assert fields.count(b"\r\n") <= max(1, len(properties))
    assert b"\n" not in (answer.reason or b"")


def test_the_request_id_cannot_break_out_either():
    request = head()
    request.headers[b"x-request-id"] = b"a\r\nb\xff"
    _, made = decoded(request)
    assert made.encode(ResponsePart(payload=Raw(()))).fields.startswith(b"x-request-id: a??b?\r\n")


@pytest.mark.parametrize("status", [1, 100, 1000, -3])
def test_a_status_that_is_none(status):
    answer = answered(Raw((), status=status))
    assert answer.status == 424
    assert str(status) in document(answer)["error"]


def test_a_stream():
    made = encoder()
    first = made.encode(ResponsePart(payload=Raw((RawPart(b"a"),), {"x": "1"}, status=201), final=False))
    assert (first.status, first.final, first.buffers) == (201, False, (b"a",))
    assert first.fields.endswith(b"x: 1\r\n")
    second = made.encode(ResponsePart(payload=Raw((RawPart(b"b"),)), final=False))
    assert (second.fields, second.buffers, second.final) == (b"", (b"b",), False)
    assert made.encode(ResponsePart()).size == 0


def test_an_error_in_a_stream_is_its_last_piece():
    made = encoder()
    made.encode(ResponsePart(payload=Raw((RawPart(b"a"),)), final=False))
    last = made.encode(ResponsePart(error=ServeError(Code.WORKER_DIED, "gone")))
    assert last.final
    assert document(last) == {"code": 503, "type": "WlmException", "message": "gone"}


def vector():
    return Tensors((Tensor("y", DataType.FP32, (2,), np.float32([1, 2])),))


def test_tensors_are_an_ndlist_unless_asked_otherwise():
    answer = answered(vector())
    assert answer.fields == STARTED + b"Content-Type: tensor/ndlist\r\n"
    (tensor,) = ndlist.decode(b"".join(answer.buffers), 1000)
    assert tensor.array.tolist() == [1, 2]
    asked = answered(vector(), accept="application/json")
    assert json.loads(b"".join(asked.buffers))["outputs"][0]["data"] == [1, 2]
    assert b"Content-Type: application/json\r\n" in asked.fields


def test_one_element_of_bytes_is_the_body():
    picture = np.array([b"\x89PNG\r\n\x1a\n", None], object)[:1]
    answer = answered(Tensors((Tensor("y", DataType.BYTES, (1,), picture),)))
    assert b"".join(answer.buffers) == b"\x89PNG\r\n\x1a\n"


def test_tensors_in_parts():
    made = encoder()
    parts = [made.encode(ResponsePart(payload=vector(), final=final)) for final in (False, True)]
    assert [(part.final, part.fields != b"") for part in parts] == [(False, True), (True, False)]


def test_an_answer_without_anything_and_one_of_another_kind():
    empty = encoder().encode(ResponsePart())
    assert (empty.status, empty.size, empty.fields) == (200, 0, STARTED)
    assert encoder().encode(ResponsePart(payload=Generate(prompts=("x",)))).status == 501


def test_an_encoder_never_raises():
    broken = Tensors((Tensor("y", "no datatype", (1,), None),))
    assert encoder().encode(ResponsePart(payload=broken)).status == 500


# -- errors -----------------------------------------------------------------------------------------------


def test_every_code_has_a_row():
    assert set(Code) <= set(TABLE.rows)
    assert not {408, 504} & {row.status for row in TABLE.rows.values()}


@pytest.mark.parametrize("code", sorted(Code, key=lambda code: code.name))
def test_errors(code):
    answer = PROTOCOL.refuse(ServeError(code, "a\udc80 text", retry_after=1.2))
    status, type_name = TABLE.rows[code].status, TABLE.rows[code].type_name
    assert (answer.status, answer.closes) == (status, True)
    assert b"Retry-After: 2\r\n" in answer.fields
    if code is Code.TOO_LARGE:
        assert answer.size == 0
    elif code is Code.OUT_OF_MEMORY:
        assert (answer.size, answer.reason) == (0, b"a? text")
    elif code is Code.MODEL_FAILED:
        said = {"code": 424, "message": "invoke handler failure", "error": "a\\udc80 text"}
        assert document(answer) == said
        assert answer.reason == b"invoke handler failure"
    else:
        told = (
            "ResourceNotFoundException" if code is Code.NOT_FOUND else type_name
        )  # of a model an encoder tells
        assert document(answer) == {"code": status, "type": told, "message": "a\\udc80 text"}


def test_a_handlers_status_goes_first_and_texts_are_bounded():
    answer = PROTOCOL.refuse(ServeError(Code.MODEL_FAILED, "x" * 10**6, status=418))
    assert answer.status == 418
    assert document(answer)["code"] == 418
    assert answer.size < 5000


def test_an_error_answers_under_the_requests_id():
    _, made = decoded(head(x_request_id="its-id"))
    answer = made.encode(ResponsePart(error=ServeError(Code.QUEUE_FULL, "full")))
    assert answer.fields == uncached_lines("its-id") + JSON
    assert document(answer)["type"] == "WlmCapacityException"


def entered(*calls):
    """Names of the functions of `errors` that these calls enter."""
    names = []

    def look(frame, event, _):
        if event == "call" and frame.f_code.co_filename == errors.__file__:
            names.append(frame.f_code.co_name)

    sys.setprofile(look)
    try:
        for call in calls:
            call()
    finally:
        sys.setprofile(None)
    return names


def test_a_request_that_succeeds_enters_no_code_about_errors():
    tensors = Tensors((Tensor("x", DataType.FP32, (1,), np.ones(1, np.float32)),))
    handlers = Raw((RawPart(b"body", "text/plain"),), {"x-own": "1"}, status=201, reason="Made")

    def predict(payload):
        _, made = decoded(head(path="/predictions/m/1", x_request_id="its-id"), b"[1]")
        assert made.encode(ResponsePart(payload=payload)).status in (200, 201)

    good = [lambda: predict(tensors), lambda: predict(handlers), lambda: predict(None)]
    assert entered(*good, lambda: ping(("a", "1", VersionState.READY))) == []
    assert "refuse" in entered(lambda: refused(head("GET", "/nowhere")))


# -- health -----------------------------------------------------------------------------------------------


def ping(*rows):
    operation, made = decoded(head("GET", "/ping"))
    assert operation == List()
    return made.encode(ResponsePart(answer=Listing(tuple(VersionStatus(*row) for row in rows))))


S = VersionState


@pytest.mark.parametrize(
    ("rows", "status", "health"),
    [
        ([], 200, {}),
        ([("a", "1", S.READY)], 200, {"a": "Healthy"}),
        ([("a", "1", S.LOADING), ("b", "1", S.REGISTERED)], 200, {"a": "PENDING", "b": "PENDING"}),
        ([("a", "1", S.READY), ("b", "", S.FAILED)], 500, {"a": "Healthy", "b": "FAILED"}),
        ([("a", "1", S.READY), ("a", "2", S.FAILED)], 500, {"a": "FAILED"}),
        ([("a", "1", S.READY), ("a", "2", S.UNLOADED), ("b", "1", S.UNLOADING)], 200, {"a": "Healthy"}),
    ],
)
def test_health(rows, status, health):
    answer = ping(*rows)
    assert document(answer) == {model: {"status": state} for model, state in health.items()}
    assert (answer.status, answer.closes, answer.fields) == (status, status == 500, STARTED + JSON)


def test_options():
    operation, made = decoded(head("OPTIONS", "/predictions/m"))
    assert operation == Describe("m")
    assert made.encode(ResponsePart(answer=Readiness(True))).buffers == (b"{}\n",)
    assert made.encode(ResponsePart(error=ServeError(Code.NOT_FOUND, "no"))).status == 404
    operation, made = decoded(head("OPTIONS", "/"))
    assert operation == Live()
    assert made.encode(ResponsePart(answer=Readiness(True))).buffers == (b"{}\n",)
