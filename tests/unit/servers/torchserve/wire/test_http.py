"""TorchServe's routes, requests and answers, as whole exchanges without a core."""

import json
from itertools import count

import numpy as np
import pytest

from trivium.servers.torchserve.wire.config import TorchServeConfig
from trivium.servers.torchserve.wire.errors import TABLE
from trivium.servers.torchserve.wire.http import TorchServeHttp
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import WireProtocol
from trivium.types.operations import Infer, List, Listing, Live, Readiness, ResponsePart, VersionStatus
from trivium.types.payload import Generate, Raw, RawPart, Tensors
from trivium.types.state import VersionState
from trivium.types.wire import Body, Head

ALWAYS = {
    b"pragma: no-cache",
    b"cache-control: no-cache; no-store, must-revalidate, private",
    b"expires: thu, 01 jan 1970 00:00:00 utc",
}


def protocol(exact=False) -> WireProtocol:
    numbers = count(1)
    return TorchServeHttp(lambda: f"id-{next(numbers)}", exact)


def ask(method, path, body=b"", headers=None, query="", wire=None):
    """The operation and the encoder; ServeError for a refusal."""
    wire = wire or protocol()
    head = Head(method, path, query, headers or {}, len(body))
    return wire.decode(head, wire.head(head), Body(body))


def infer(*args, **more) -> Infer:
    operation, _ = ask(*args, **more)
    assert isinstance(operation, Infer)
    return operation


def answered(part, path="/predictions/m", exact=False, **more):
    _, encoder = ask("POST", path, wire=protocol(exact), **more)
    return encoder.encode(part)


def lines(answer):
    return {line.lower() for line in answer.fields.split(b"\r\n") if line}


def document(answer):
    return json.loads(b"".join(answer.buffers))


@pytest.mark.parametrize(
    ("kind", "body", "lines_logged"),
    [
        (b"application/x-www-form-urlencoded", b'{"data": [1]', 1),
        (b"application/x-www-form-urlencoded; charset=utf-8", b"plain", 1),
        (b"application/x-www-form-urlencoded", b"a=1", 0),
        (b"application/x-www-form-urlencoded", b"", 0),
        (b"application/json", b'{"data": [1]}', 0),
        (b"", b'{"data": [1]}', 0),
    ],
)
def test_a_form_without_fields_is_told_in_the_log_once_for_a_model(kind, body, lines_logged, caplog):
    wire = protocol()
    for path in ("/predictions/m", "/predictions/m", "/explanations/n"):
        ask("POST", path, body, {b"content-type": kind}, wire=wire)
    found = [record.getMessage() for record in caplog.records]
    assert len(found) == 2 * lines_logged
    assert all("no field of a form" in line and "Content-Type: application/json" in line for line in found)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("body", [b'{"data": [1]}', b" [1, 2]\n", b'{"q": "a=b&c"}'])
def test_json_that_is_called_a_form_is_read_as_json_and_the_log_says_so_once(exact, body, caplog):
    kind = {b"content-type": b"application/x-www-form-urlencoded"}
    wire = protocol(exact)
    payload = infer("POST", "/predictions/m", body, kind, wire=wire).payload
    infer("POST", "/predictions/m", body, kind, wire=wire)
    assert payload.formless().parts == (RawPart(body, "application/json"),)
    if exact:  # the handler gets what the original's gets
        assert all(part.content_type == "" for part in payload.parts)
    else:
        assert payload.parts == payload.formless().parts
    (line,) = [record.getMessage() for record in caplog.records]
    assert ("a handler gets it as a form, as from TorchServe" in line) is exact
    assert "add -H 'Content-Type: application/json'" in line


# -- requests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
def test_any_method_predicts(method):
    operation = infer(method, "/predictions/my%20model/2.0/v1/chat%2Fx", b"hello", {b"x-own": b"1"})
    assert (operation.model, operation.version, operation.id) == ("my model", "2.0", "id-1")
    payload = operation.payload
    assert isinstance(payload, Raw)
    assert [(part.name, bytes(part.data), part.content_type) for part in payload.parts] == [
        ("", b"hello", "")
    ]
    seen = {"x-own": "1", "content-length": "5"}
    assert (payload.properties, payload.path, operation.method) == (seen, "v1/chat/x", "predict")
    assert payload.query == ()


def test_who_names_no_model_is_told_by_which_parameter():
    info = ErrorInfo.of(reasons.UNKNOWN_MODEL, model="")
    part = ResponsePart(error=ServeError(Code.INVALID, "There are: a, b.", info=info))
    for exact, text in (
        (True, "Parameter model_name is required."),
        (False, "Parameter model_name is required. There are: a, b."),
    ):
        answer = answered(part, "/invocations", exact)
        assert (answer.status, document(answer)["type"]) == (400, "BadRequestException")
        assert document(answer)["message"] == text


@pytest.mark.parametrize(
    ("code", "reason", "expected", "said"),
    [
        (
            Code.INVALID,
            reasons.NOT_HTTP,
            (400, b"Invalid HTTP message."),
            "What is no HTTP is answered with 400: No.",
        ),
        (Code.TOO_LARGE, reasons.BODY_SIZE, (413, b""), "A request is answered with 413: No."),
    ],
)
def test_what_the_originals_text_does_not_teach_is_a_line_in_the_log(code, reason, expected, said, caplog):
    answer = protocol(exact=True).refuse(ServeError(code, "No.", info=ErrorInfo.of(reason)))
    message = document(answer)["message"].encode() if answer.size else b""
    assert (answer.status, message, answer.closes) == (*expected, True)
    assert [record.getMessage() for record in caplog.records] == [said]
    caplog.clear()
    ours = protocol().refuse(ServeError(code, "No.", info=ErrorInfo.of(reason)))
    assert ours.status == expected[0]
    if code is Code.INVALID:
        assert document(ours)["message"] == "Invalid HTTP message. No."
        assert not caplog.records


@pytest.mark.parametrize(
    ("path", "query", "model", "version", "method", "arguments"),
    [
        ("/predictions/m", "a=1", "m", "", "predict", ()),
        ("/predictions/m/", "", "m", "", "predict", ()),
        ("/explanations/m", "a=1", "m", "", "explain", ()),
        ("/explanations/m/3", "", "m", "3", "explain", ()),
        (
            "/invocations",
            "model_name=m&a=1&a=2&b=",
            "m",
            "",
            "predict",
            (("model_name", "m"), ("a", "1"), ("a", "2"), ("b", "")),
        ),
        ("/invocations", "", "", "", "predict", ()),
        ("/models/m/invoke", "a=%C3%A4", "m", "", "predict", (("a", "ä"),)),
        ("/explanations/m/3/x", "", "m", "3", "explain", ()),
        ("/invocations/", "", "", "", "predict", ()),
        ("/models//invoke/", "", "", "", "predict", ()),
        ("/m/predict", "a=1&a=2", "m", "", "predict", (("a", "1"), ("a", "2"))),
        ("/m%2Fn/predict/", "", "m/n", "", "predict", ()),
        ("/m/1.0/predict", "a=1", "m", "1.0", "predict", (("a", "1"),)),
        ("/v1/models/m:predict", "a=1", "m", "", "predict", ()),
        ("/v1/models/a:b:explain/", "", "a:b", "", "explain", ()),
        ("/v2/models/m/infer", "a=1", "m", "", "predict", ()),
        ("/v2/models/m/explain", "", "m", "", "explain", ()),
    ],
)
def test_routes(path, query, model, version, method, arguments):
    operation = infer("POST", path, query=query)
    assert (operation.model, operation.version) == (model, version)
    assert operation.method == method
    assert operation.payload.query == arguments


@pytest.mark.parametrize(
    ("path", "is_explained", "shown"),
    [
        ("/predictions/m", None, ""),
        ("/predictions/m/1/a/b", None, "a/b"),
        ("/predictions/m/1/a/b//", None, "a/b"),
        ("/predictions/m/1//a", None, "/a"),
        ("/explanations/m/1/a", None, "a"),
        ("/v1/models/m:predict", "False", None),
        ("/v1/models/m:explain", "False", None),
        ("/v2/models/m/infer", "False", None),
        ("/invocations", "mine", None),
        ("/models/m/invoke", "mine", None),
        ("/m/predict", "mine", None),
    ],
)
def test_what_the_server_adds_to_the_headers_is_up_to_the_route(path, is_explained, shown):
    """Where there is a path, a handler's own side adds it, and whether it shall explain."""
    payload = infer("POST", path, b"", {b"explain": b"mine"}).payload
    assert payload.path == shown
    assert payload.properties["explain"] == (is_explained or "mine")


@pytest.mark.parametrize(
    ("headers", "seen"),
    [
        ({}, {"content-length": "3"}),
        ({b"content-length": b"3"}, {"content-length": "3"}),
        ({b"transfer-encoding": b"chunked", b"trailer": b"x-t"}, {"trailer": "x-t", "content-length": "3"}),
        ({b"expect": b"100-continue", b"content-length": b"3"}, {"content-length": "3"}),
        (
            {b"connection": b"close", b"te": b"trailers"},
            {"connection": "close", "te": "trailers", "content-length": "3"},
        ),
    ],
)
def test_how_a_body_came_is_no_header_and_its_length_is_one(headers, seen):
    assert infer("POST", "/predictions/m", b"abc", headers).payload.properties == seen


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/v2", 200, {"name": "Torchserve", "version": "0.12.0", "extenstion": ["kserve", "kubeflow"]}),
        ("/v2/", 200, {"name": "Torchserve", "version": "0.12.0", "extenstion": ["kserve", "kubeflow"]}),
        ("/v2/health/live", 200, {"live": True}),
        ("/v2/health/ready", 200, {"ready": True}),
        ("/v2/models/m/versions/1/infer", 501, {"error": "Model versioning is not yet supported."}),
        ("/v2/models/m/versions/1", 501, {"error": "Model versioning is not yet supported."}),
    ],
)
@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
def test_open_inference_is_answered_whatever_is_served(method, path, status, told):
    operation, encoder = ask(method, path)
    assert operation == Live()
    answer = encoder.encode(ResponsePart(answer=Readiness(True)))
    assert (answer.status, document(answer), answer.closes) == (status, told, status >= 400)
    refused = encoder.encode(ResponsePart(error=ServeError(Code.DRAINING, "no")))
    assert refused.status == 503


def test_without_open_inference_its_routes_are_not_there_but_models_are_called():
    wire = TorchServeHttp(lambda: "made", own=TorchServeConfig())
    assert infer("POST", "/v2/models/m/infer", wire=wire).model == "m"
    for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/m/versions/1"):
        with pytest.raises(ServeError) as caught:
            ask("GET", path, wire=wire)
        assert wire.refuse(caught.value).status == 404


def test_a_client_cannot_say_what_the_server_says():
    headers = {b"explain": b"True", b"url_path": b"/x", b"x-request-id": b"mine"}
    operation = infer("POST", "/predictions/m", b"", headers)
    assert (operation.method, operation.payload.path, operation.id) == ("predict", "", "id-1")


def test_headers_have_the_names_that_the_client_gave_them():
    wire = protocol()
    names = (b"X-Own", b"x-own", b"CONTENT-TYPE", b"accept")
    given = {b"x-own": b"1, 2", b"content-type": b"text/plain", b"accept": b"*/*"}
    head = Head("POST", "/predictions/m", "", given, 1, names)
    operation, _ = wire.decode(head, wire.head(head), Body(b"a"))
    seen = {"x-own": "1, 2", "CONTENT-TYPE": "text/plain", "accept": "*/*", "content-length": "1"}
    assert operation.payload.properties == seen
    assert [part.content_type for part in operation.payload.parts] == ["text/plain"]


@pytest.mark.parametrize(
    ("error", "status", "phrase"),
    [
        (ServeError(Code.MODEL_FAILED, "no", status=513), 513, b"Server Error (513)"),
        (ServeError(Code.MODEL_FAILED, "no", status=418), 418, b"Client Error (418)"),
        (ServeError(Code.MODEL_FAILED, "no", status=425), 425, b"Unordered Collection"),
        (ServeError(Code.MODEL_FAILED, "no", status=422), 422, b"Unprocessable Entity"),
        (ServeError(Code.TOO_LARGE, "no"), 413, b"Request Entity Too Large"),
        (ServeError(Code.MODEL_FAILED, "no", status=404), 404, None),
        (ServeError(Code.WORKER_DIED, "no"), 500, None),
        (
            ServeError(Code.WORKER_DIED, "no", info=ErrorInfo.of(reasons.KILLED, model="m", killed=True)),
            507,
            None,
        ),
        (
            ServeError(
                Code.WORKER_DIED, "no", info=ErrorInfo.of(reasons.DIED_WITH_MANY, model="m", killed=False)
            ),
            500,
            None,
        ),
        (
            ServeError(
                Code.NOT_READY,
                "no",
                info=ErrorInfo.of(reasons.NOT_SERVING, model="m", version="", state="failed"),
            ),
            404,
            None,
        ),
        (
            ServeError(
                Code.NOT_READY,
                "no",
                info=ErrorInfo.of(reasons.NOT_SERVING, model="m", version="", state="loading"),
            ),
            503,
            None,
        ),
    ],
)
def test_statuses_and_phrases_are_the_originals(error, status, phrase):
    answer = answered(ResponsePart(error=error), exact=True)
    assert (answer.status, answer.reason) == (status, phrase)
    texts = {500: "Worker died.", 507: "Worker died.", 503: None}
    if error.status is None and texts.get(status):
        assert document(answer)["message"] == texts[status]
    if error.status is None and status == 404:
        assert document(answer)["message"] == "Model not found: m"


@pytest.mark.parametrize(
    ("row", "status"),
    [
        (VersionStatus("m", "1", VersionState.FAILED, at_start=True), 200),
        (VersionStatus("m", "1", VersionState.FAILED, at_start=True, is_loaded=True), 500),
        (VersionStatus("m", "1", VersionState.FAILED), 500),
    ],
)
def test_a_model_that_did_not_load_with_the_server_does_not_make_it_unhealthy(row, status):
    assert answered(ResponsePart(answer=Listing((row,))), "/ping").status == status


def test_forms_and_the_model_that_a_form_names():
    form = {b"content-type": b"application/x-www-form-urlencoded"}
    operation = infer("POST", "/invocations", b"model_name=m&text=a+b&token", form)
    assert operation.model == "m"
    assert [(part.name, bytes(part.data)) for part in operation.payload.parts] == [
        ("model_name", b"m"),
        ("text", b"a b"),
    ]


def test_costly_bodies_are_large_forms():
    wire = protocol()
    heads = [
        Head("POST", "/predictions/m", "", {b"content-type": kind}, 1)
        for kind in (b"a/b", b"Multipart/form-data")
    ]
    assert [wire.is_costly(head, bytes(2**20)) for head in heads] == [False, True]
    assert [wire.is_costly(head, bytes(2**10)) for head in heads] == [False, False]


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/predictions", 404, "ResourceNotFoundException"),
        ("GET", "/predictions/", 404, "ResourceNotFoundException"),
        ("GET", "/models/m/1/x", 404, "ResourceNotFoundException"),
        ("GET", "/elsewhere", 404, "ResourceNotFoundException"),
        ("GET", "/", 405, "MethodNotAllowedException"),
        ("GET", "/m/1/predict/x", 404, "ResourceNotFoundException"),
        ("GET", "/predict", 404, "ResourceNotFoundException"),
        ("GET", "/invocations/x", 404, "ResourceNotFoundException"),
        ("GET", "/models/m/invoke/x", 404, "ResourceNotFoundException"),
        ("GET", "//predict", 404, "ResourceNotFoundException"),
        ("GET", "/m//predict", 404, "ResourceNotFoundException"),
        ("GET", "/v1/models/m:predict/x", 404, "ResourceNotFoundException"),
        ("GET", "/v1/models/:predict", 404, "ModelNotFoundException"),
        ("GET", "/v2/models/m", 404, "ResourceNotFoundException"),
        ("GET", "/v2/models/m/ready", 404, "ResourceNotFoundException"),
        ("GET", "/v2/models//infer", 404, "ModelNotFoundException"),
        ("GET", "/v2/models/m/versions", 404, "ResourceNotFoundException"),
        ("GET", "/api-description/x", 404, "ResourceNotFoundException"),
        ("POST", "/wfpredict/w", 501, "InternalServerException"),
        ("GET", "/predictions/%ff", 400, "BadRequestException"),
        ("GET", "/predictions/m/1/%ff", 400, "BadRequestException"),
    ],
)
def test_refused_routes(method, path, status, kind):
    wire = protocol()
    with pytest.raises(ServeError) as caught:
        ask(method, path, wire=wire)
    answer = wire.refuse(caught.value)
    assert (answer.status, answer.closes) == (status, True)
    told = document(answer)
    assert list(told) == ["code", "type", "message"]
    assert (told["code"], told["type"]) == (status, kind)
    assert lines(answer) >= {
        *ALWAYS,
        b"x-request-id: id-1" if b"%ff" not in path.encode() else b"pragma: no-cache",
    }


@pytest.mark.parametrize(
    ("body", "headers", "query"),
    [
        (b"x", {b"content-type": b"multipart/form-data; boundary=b"}, ""),
        (b"", {}, "a=%ff"),
        (b"", {}, "&".join("a=1" for _ in range(2000))),
    ],
)
def test_requests_that_cannot_be_read(body, headers, query):
    with pytest.raises(ServeError) as caught:
        ask("POST", "/invocations", body, headers, query)
    assert caught.value.code is Code.INVALID


# -- answers -----------------------------------------------------------------------------------------------


def test_a_handler_s_answer():
    payload = Raw((RawPart(b"body"),), {"X-Own": "a\r\nEvil: 1", "Pragma": "mine", "Content-Length": "9"})
    answer = answered(ResponsePart(payload))
    assert (answer.status, answer.reason, answer.final, answer.closes) == (200, b"", True, False)
    assert b"".join(answer.buffers) == b"body"
    assert lines(answer) == {
        b"x-request-id: id-1",
        b"cache-control: no-cache; no-store, must-revalidate, private",
        b"expires: thu, 01 jan 1970 00:00:00 utc",
        b"x-own: a  evil: 1",
        b"pragma: mine",
    }


def test_of_header_names_that_differ_in_case_the_last_counts():
    answer = answered(ResponsePart(Raw((RawPart(b"body"),), {"X-Own": "1", "x-own": "2"})))
    assert lines(answer) == {*ALWAYS, b"x-request-id: id-1", b"x-own: 2"}


def test_no_content_type_but_the_handler_s():
    plain = answered(ResponsePart(Raw((RawPart(b"{}"),))))
    assert b"content-type" not in plain.fields.lower()
    assert lines(plain) == {*ALWAYS, b"x-request-id: id-1"}
    typed = answered(ResponsePart(Raw((RawPart(b"{}", "text/x"),))))
    assert b"content-type: text/x" in lines(typed)


def test_a_handler_s_status():
    answer = answered(ResponsePart(Raw((RawPart(b"gone"),), status=404, reason="Not\nhere")))
    assert (answer.status, answer.reason, answer.closes) == (404, b"Not here", True)
    assert b"".join(answer.buffers) == b"gone"
    for status in (1, 101, 700):
        assert answered(ResponsePart(Raw((), status=status))).status == 503
    assert answered(ResponsePart(Raw((), {"bad name": "x"}))).status == 503
    assert b"x: \xc3\xa4\xe2\x82\xac" in lines(answered(ResponsePart(Raw((), {"x": "ä€"}))))


def test_a_handler_s_status_of_an_answer_in_parts_breaks_none_of_them_off():
    _, encoder = ask("POST", "/predictions/m")
    parts = [(b"gone", False), (b"", False), (b"", True)]
    answers = [
        encoder.encode(ResponsePart(Raw((RawPart(data),), status=404), final=final)) for data, final in parts
    ]
    assert [answer.status for answer in answers] == [404] * 3
    assert [answer.closes for answer in answers] == [True, False, False]


def test_tensors_by_accept():
    tensors = Tensors.of({"y": np.array([[1, 2]], np.int64)})
    plain = answered(ResponsePart(tensors))
    assert document(plain) == {
        "outputs": [{"name": "y", "datatype": "INT64", "shape": [1, 2], "data": [1, 2]}]
    }
    assert b"content-type: application/json" in lines(plain)
    listed = answered(ResponsePart(tensors), headers={b"accept": b"tensor/ndlist"})
    assert b"content-type: tensor/ndlist" in lines(listed)
    text = answered(ResponsePart(Tensors.of({"y": np.array([b"hello"], object)})))
    assert b"".join(text.buffers) == b"hello"


def test_streams():
    _, encoder = ask("POST", "/predictions/m")
    first = encoder.encode(ResponsePart(Raw((RawPart(b"a"),), {"x": "1"}), final=False))
    second = encoder.encode(ResponsePart(Raw((RawPart(b"b"),), {"x": "2"}), final=False))
    last = encoder.encode(ResponsePart())
    assert [(answer.final, b"".join(answer.buffers)) for answer in (first, second, last)] == [
        (False, b"a"),
        (False, b"b"),
        (True, b""),
    ]
    assert lines(first) == {*ALWAYS, b"x-request-id: id-1", b"x: 1", b"ts_stream_next: true"}
    assert second.fields == last.fields == b""


def test_an_error_in_a_stream_has_no_text():
    _, encoder = ask("POST", "/predictions/m")
    encoder.encode(ResponsePart(Raw((RawPart(b"a"),)), final=False))
    answer = encoder.encode(ResponsePart(error=ServeError(Code.MODEL_FAILED, "no")))
    assert (answer.status, answer.size, answer.closes, answer.final) == (503, 0, True, True)


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", Code)
def test_every_code_has_an_answer(code):
    assert code in TABLE.rows
    answer = answered(ResponsePart(error=ServeError(code, "What was found.", retry_after=0.5)))
    if code is Code.TOO_LARGE:
        assert (answer.status, answer.fields, answer.buffers, answer.closes) == (413, b"", (), True)
        return
    told = document(answer)
    assert told["code"] == answer.status == TABLE.rows[code].status
    assert told["message"].endswith("What was found.")
    assert b"".join(answer.buffers).endswith(b"\n}\n")
    assert answer.closes
    assert b"retry-after: 1" in lines(answer)


@pytest.mark.parametrize(
    ("error", "path", "status", "message"),
    [
        (ServeError(Code.MODEL_FAILED, "The model raised ValueError: x"), "m", 503, "Prediction failed"),
        (ServeError(Code.MODEL_FAILED, "Prediction failed: x", status=503), "m", 503, "Prediction failed"),
        (ServeError(Code.MODEL_FAILED, "my words", status=418), "m", 418, "my words"),
        (ServeError(Code.OUT_OF_MEMORY, "Out of resources: x", status=507), "m", 507, "Out of resources"),
        (ServeError(Code.OUT_OF_MEMORY, "no room"), "m", 507, "Out of resources"),
        (ServeError(Code.WORKER_DIED, "signal 9"), "m", 500, "Worker died."),
        (ServeError(Code.NOT_FOUND, "no model"), "m", 404, "Model not found: m"),
        (ServeError(Code.INVALID, "ours"), "m", 400, "ours"),
        (
            ServeError(Code.MODEL_FAILED, "9", info=ErrorInfo.of(reasons.ANSWER_SIZE)),
            "m",
            500,
            "Worker died.",
        ),
        (ServeError(Code.EXPIRED, "late", info=ErrorInfo.of(reasons.ITEM_DEADLINE)), "m", 408, "late"),
    ],
)
def test_exact_texts(error, path, status, message):
    answer = answered(ResponsePart(error=error), f"/predictions/{path}", exact=True)
    assert (answer.status, document(answer)["message"]) == (status, message)


def test_texts_that_name_a_model():
    full = ServeError(Code.QUEUE_FULL, "full")
    exact = document(answered(ResponsePart(error=full), "/predictions/m/2", exact=True))["message"]
    assert exact.startswith('Model "m" Version 2" has no worker to serve inference request.')
    unknown = ServeError(
        Code.NOT_FOUND, "none", info=ErrorInfo.of(reasons.UNKNOWN_VERSION, model="m", version="2")
    )
    missing = document(answered(ResponsePart(error=unknown), "/predictions/m/2", exact=True))
    assert (missing["type"], missing["message"]) == (
        "ModelVersionNotFoundException",
        "Model version: 2 does not exist for model: m",
    )
    absent = ServeError(Code.NOT_FOUND, "none", info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model="m"))
    for path in ("/predictions/m/2", "/invocations"):  # a form may have named it
        told = document(answered(ResponsePart(error=absent), path, exact=True))
        assert (told["type"], told["message"]) == ("ModelNotFoundException", "Model not found: m")
    ours = document(answered(ResponsePart(error=ServeError(Code.WORKER_DIED, "By signal 9."))))["message"]
    assert ours == "Worker died. By signal 9."


def test_a_path_that_no_protocol_knows():
    told = document(protocol().refuse(ServeError(Code.NOT_FOUND, "Nothing is served at '/x'.")))
    assert told["type"] == "ResourceNotFoundException"
    assert told["message"].startswith(
        "Requested resource is not found, please refer to API document. Nothing"
    )


def test_hostile_texts_are_written():
    answer = answered(ResponsePart(error=ServeError(Code.INVALID, "\ud800" + "x" * 10_000)))
    assert len(document(answer)["message"]) < 5000


def test_what_cannot_be_answered():
    assert answered(ResponsePart(Generate(prompts=("x",)))).status == 501


# -- health ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("OPTIONS", "/"),
        ("GET", "/api-description/"),
        ("OPTIONS", "/predictions/m/2.0/x"),
        ("OPTIONS", "/m/1.0/predict"),
        ("OPTIONS", "/models/m"),
        ("OPTIONS", "/models/m/1.0/set-default/"),
    ],
)
def test_the_api_is_not_described(method, path):
    wire = protocol()
    with pytest.raises(ServeError, match="table of all routes") as caught:
        ask(method, path, wire=wire)
    assert wire.refuse(caught.value).status == 501


@pytest.mark.parametrize(
    ("states", "status", "text"),
    [
        ([], 200, "Healthy"),
        ([VersionState.READY, VersionState.LOADING, VersionState.UNLOADED], 200, "Healthy"),
        ([VersionState.READY, VersionState.FAILED], 500, "Unhealthy"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_ping(method, states, status, text):
    operation, encoder = ask(method, "/ping")
    assert operation == List()
    listing = Listing(tuple(VersionStatus("m", str(i), state) for i, state in enumerate(states)))
    answer = encoder.encode(ResponsePart(answer=listing))
    assert answer.status == status
    assert b"".join(answer.buffers) == b'{\n  "status": "%b"\n}\n' % text.encode()
    assert lines(answer) == {*ALWAYS, b"x-request-id: id-1", b"content-type: application/json"}
    assert encoder.encode(ResponsePart(error=ServeError(Code.INTERNAL, "x"))).status == 500
