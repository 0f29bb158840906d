"""DJL's management requests as operations, and the answers as its documents. Sections are the sheet's."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.harness.virtual_models import make_spec

from trivium.servers.djl.wire.http import DjlHttp
from trivium.servers.djl.wire.options import DjlOptions, read_statuses
from trivium.types import reasons
from trivium.types.access import AccessScope
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.listeners import Role
from trivium.types.log_settings import LogChange, LogSettings
from trivium.types.operations import (
    Answer,
    DescribeAll,
    InstanceStatus,
    List,
    Listing,
    LogControl,
    LogReport,
    ModelDescription,
    ModelDescriptions,
    Operation,
    Register,
    ResponsePart,
    Scale,
    Unregister,
    VersionStatus,
)
from trivium.types.sources import ModelSource
from trivium.types.spec import Device, Dynamic, InstanceGroup
from trivium.types.state import VersionState
from trivium.types.wire import Body, Head, HttpAnswer

EXACT = DjlHttp(lambda: "id", DjlOptions(exact=True))
OURS = DjlHttp(lambda: "id")
JSON = {b"content-type": b"application/json; charset=utf-8"}


def decoded(
    method: str, url: str, body: bytes = b"", headers: dict[bytes, bytes] | None = None, protocol=EXACT
):
    path, _, query = url.partition("?")
    head = Head(method, path, query, headers or {})
    return protocol.decode(head, protocol.head(head), Body(body))


def operation(
    method: str, url: str, body: bytes = b"", headers: dict[bytes, bytes] | None = None
) -> Operation:
    return decoded(method, url, body, headers)[0]


def answered(method: str, url: str, answer: Answer) -> tuple[int, Any]:
    _, encoder = decoded(method, url)
    return shown(encoder.encode(ResponsePart(answer=answer)))


def shown(answer: HttpAnswer) -> tuple[int, Any]:
    text = b"".join(answer.buffers)
    assert text.endswith(b"\n")
    assert b"Content-Type: application/json\r\n" in answer.fields
    return answer.status, json.loads(text)


def refused(method: str, url: str, body: bytes = b"", headers=None, protocol=EXACT) -> tuple[int, str, str]:
    with pytest.raises(ServeError) as caught:
        decoded(method, url, body, headers, protocol)
    status, document = shown(protocol.refuse(caught.value))
    return status, document["type"], document["message"]


# -- register (5.1, 2.1) -----------------------------------------------------------------------------------


def registered(method: str, url: str, body: bytes = b"", headers=None) -> ModelSource:
    found = operation(method, url, body, headers)
    assert isinstance(found, Register)
    return found.source


def test_a_url_alone_gives_a_model_its_name() -> None:
    assert operation("POST", "/models?url=file:///m/my-model.zip") == Register(
        ModelSource("/m/my-model.zip", "my_model"), True
    )


def test_what_lies_elsewhere_is_the_servers_to_fetch() -> None:
    source = registered("POST", "/models?url=https://h/my-model.zip")
    assert (source.uri, source.name, source.is_remote) == ("https://h/my-model.zip", "my_model", True)


def test_every_parameter_is_a_wish_that_goes_before_the_files() -> None:
    source = registered(
        "POST",
        "/models?url=/m&model_name=n&model_version=v1&engine=PyTorch&device=0;cpu&job_queue_size=10&batch_size=2"
        "&max_batch_delay=0&max_idle_time=5&min_worker=1&max_worker=3",
    )
    assert (source.name, source.version, source.engine, source.devices) == (
        "n",
        "v1",
        "PyTorch",
        ("0", "cpu"),
    )
    assert {key: setting.value for key, setting in source.over.items()} == {
        "job_queue_size": "10",
        "batch_size": "2",
        "max_batch_delay": "0",
        "max_idle_time": "5",
        "minWorkers": "1",
        "maxWorkers": "3",
    }
    assert source.over["minWorkers"].origin.key == "min_worker"


@pytest.mark.parametrize("number", ["0", "-1"])
def test_a_number_that_means_unset_is_left_out(number: str) -> None:
    assert registered("POST", f"/models?url=/m&batch_size={number}&min_worker={number}").over == {}


def test_a_json_body_has_the_same_names_and_its_name_is_inferred() -> None:
    body = b'{"url": "file:///m/a.b", "batch_size": 4, "synchronous": false, "engine": null}'
    found = operation("POST", "/models?url=ignored", body, JSON)
    assert isinstance(found, Register)
    assert (found.source.uri, found.source.name, found.wait) == ("/m/a.b", "a_b", False)
    assert found.source.over["batch_size"].value == "4"


def test_a_parameter_goes_before_the_url_and_the_first_of_two_counts() -> None:
    source = registered("POST", "/models?url=x:v1=/m?topK=2&model_name=n&model_name=k")
    assert (source.name, source.version) == ("n", "v1")


def test_arguments_of_the_url_are_arguments_of_the_model() -> None:
    assert registered("POST", "/models?url=%2Fm%3FtopK%3D2").over["topK"].value == "2"


@pytest.mark.parametrize(
    ("url", "answer"),
    [
        ("/models", (400, "BadRequestException", "Parameter url is required.")),
        ("/workflows", (400, "BadRequestException", "Either parameter url or template is required.")),
        ("/models?url=/m&batch_size=x", (409, "NumberFormatException", 'For input string: "x"')),
        ("/models?url=/m&min_worker=1.5", (409, "NumberFormatException", 'For input string: "1.5"')),
    ],
)
def test_what_lacks_or_is_no_number_is_refused_in_the_originals_words(url: str, answer: object) -> None:
    assert refused("POST", url) == answer


def test_our_own_words_teach() -> None:
    status, type_name, message = refused("POST", "/models?url=/m&batch_size=x", protocol=OURS)
    assert (status, type_name) == (400, "BadRequestException")
    assert message.startswith("The parameter batch_size is 'x'; expected is a whole number")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("/workflows?template=nothing", "The workflow template nothing could not be found"),
        ("/workflows?template=adapter&adapter=a", "parameter url is missing"),
        ("/models?url=jar:a/b", "not fetched from jar"),
        ("/models?url=m:::tpu=/m", "parse device name"),
    ],
)
def test_what_is_not_served_is_refused_by_name(url: str, words: str) -> None:
    assert words in refused("POST", url)[2]


@pytest.mark.parametrize("route", ["/models", "/workflows"])
def test_a_workflow_stands_where_a_model_stands(route: str) -> None:
    source = registered("POST", f"{route}?url=%2Fw%2Fflow.json%3Fsize%3D2&min_worker=1")
    assert (source.uri, source.name, source.is_named_after_uri) == ("/w/flow.json", "flow", True)
    assert {key: one.value for key, one in source.over.items()} == {"size": "2", "minWorkers": "1"}
    named = registered("POST", f"{route}?url=w%3D%2Fw%2Fflow.json")
    assert (named.name, named.is_named_after_uri) == ("w", False)


def test_what_else_a_request_to_the_workflows_says_is_put_into_the_definition() -> None:
    source = registered("POST", "/workflows?url=/w/flow.json&size=2&synchronous=true")
    assert {key: one.value for key, one in source.over.items()} == {"size": "2"}
    assert registered("POST", "/models?url=/w/flow.json&size=2").over == {}


def test_a_template_is_a_definition_filled_by_the_request() -> None:
    query = "template=adapter&adapter=poet&url=/adapters/poet&model=file:///models/the-base"
    source = registered("POST", f"/workflows?{query}")
    assert source.uri.endswith("adapter.json")
    assert (source.name, source.is_named_after_uri) == ("poet", True)
    assert {key: one.value for key, one in source.over.items()} == {
        "adapter": "poet",
        "url": "/adapters/poet",
        "model": "file:///models/the-base",
        "base": "the_base",
    }


def test_the_name_of_a_definition_is_the_one_that_is_told() -> None:
    rows = Listing((row("own", "0.1"),))
    assert answered("POST", "/workflows?url=/w/flow.json", rows)[1] == {
        "status": 'Workflow "own" registered.'
    }


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"url": {}}', b"\xff"])
def test_a_body_that_is_no_object_of_texts_is_refused(body: bytes) -> None:
    assert refused("POST", "/models", body, JSON)[0] == 400


def test_a_registration_says_so_and_one_that_does_not_wait_is_202() -> None:
    assert answered("POST", "/models?url=/m", Listing(())) == (200, {"status": 'Model "m" registered.'})
    assert answered("POST", "/models?url=/m&synchronous=false", Listing(())) == (
        202,
        {"status": 'Model "m" registration scheduled.'},
    )
    assert answered("POST", "/workflows?url=/m", Listing(())) == (200, {"status": 'Workflow "m" registered.'})


# -- list (5.1) --------------------------------------------------------------------------------------------


def row(
    model: str, version: str = "1", state: VersionState = VersionState.READY, **more: Any
) -> VersionStatus:
    return VersionStatus(model, version, state, source=ModelSource(f"/m/{model}"), **more)


ROWS = Listing(
    (
        row("a", is_versioned=False),
        row("b", "v1", VersionState.LOADING),
        row("b", "v2", VersionState.FAILED),
        row("c", state=VersionState.COLD),
        row("d", state=VersionState.UNLOADED),
    )
)


def test_models_are_listed_with_what_is_known_of_them() -> None:
    assert operation("GET", "/models") == List()
    assert answered("GET", "/models", ROWS) == (
        200,
        {
            "models": [
                {"modelName": "a", "modelUrl": "/m/a", "status": "READY"},
                {"modelName": "b", "version": "v1", "modelUrl": "/m/b", "status": "PENDING"},
                {"modelName": "b", "version": "v2", "modelUrl": "/m/b", "status": "FAILED"},
                {"modelName": "c", "version": "1", "modelUrl": "/m/c", "status": "READY"},
            ]
        },
    )


@pytest.mark.parametrize(
    ("query", "names", "token"),
    [
        ("limit=1", "a", "1"),
        ("limit=2", "abb", "2"),
        ("limit=2&next_page_token=2", "c", None),
        ("next_page_token=1&limit=1", "bb", "2"),
        ("limit=0", "abbc", None),
        ("limit=1000", "abbc", None),
        ("next_page_token=9", "", None),
        ("next_page_token=-3&limit=1", "a", "1"),
    ],
)
def test_pages_count_endpoints(query: str, names: str, token: str | None) -> None:
    _, document = answered("GET", f"/models?{query}", ROWS)
    assert "".join(each["modelName"] for each in document["models"]) == names
    assert document.get("nextPageToken") == token


def test_workflows_always_have_a_token() -> None:
    status, document = answered("GET", "/workflows?limit=100", ROWS)
    assert (status, document["nextPageToken"]) == (200, "3")
    assert document["workflows"][:2] == [{"workflowName": "a"}, {"workflowName": "b", "version": "v1"}]


def test_a_limit_that_is_no_number() -> None:
    assert refused("GET", "/models?limit=x") == (409, "NumberFormatException", 'For input string: "x"')


def test_what_a_workflow_brings_is_a_model_and_no_workflow() -> None:
    rows = Listing((row("flow"), row("m", is_member=True)))
    _, found = answered("GET", "/workflows", rows)
    assert found == {"nextPageToken": "1", "workflows": [{"workflowName": "flow", "version": "1"}]}
    _, found = answered("GET", "/models", rows)
    assert [one["modelName"] for one in found["models"]] == ["flow", "m"]


# -- describe (5.2) ----------------------------------------------------------------------------------------

SPEC = replace(
    make_spec(),
    groups=(InstanceGroup("m_cpu", 1, 4, idle_seconds=60.0),),
    scheduling=Dynamic(max_delay=0.1),
)
WORKER = InstanceStatus(7, "m_0", 1.0, False, Device.CPU, 0, started=1700000000.25)


def test_a_workflow_is_described_by_its_models() -> None:
    known = ModelDescription(SPEC, ("1",), groups=SPEC.groups)
    members = ModelDescriptions((row("a"), row("b")), (known, known))
    flow = ModelDescription(SPEC, ("1",), members=members)
    _, found = answered("GET", "/workflows/flow", ModelDescriptions((row("flow"),), (flow,)))
    assert [one["workflowName"] for one in found] == ["flow"]
    assert [one["modelName"] for one in found[0]["models"]] == ["a", "b"]


def test_a_model_is_described_in_full() -> None:
    assert operation("GET", "/models/m/v1") == DescribeAll("m", "v1")
    known = ModelDescription(SPEC, ("1",), groups=SPEC.groups, instances=(WORKER,), queued=3)
    found = ModelDescriptions((row("m", at_start=True, is_versioned=False),), (known,))
    assert answered("GET", "/models/m", found) == (
        200,
        [
            {
                "workflowName": "m",
                "models": [
                    {
                        "modelName": "m",
                        "modelUrl": "/m/m",
                        "batchSize": SPEC.batching.max_rows,
                        "maxBatchDelayMillis": 100,
                        "maxIdleSeconds": 60,
                        "queueSize": SPEC.limits.queue_items,
                        "requestInQueue": 3,
                        "status": "Healthy",
                        "loadedAtStartup": True,
                        "workerGroups": [
                            {
                                "device": {"deviceType": "cpu", "deviceId": -1},
                                "minWorkers": 1,
                                "maxWorkers": 4,
                                "workers": [
                                    {"id": 7, "startTime": "2023-11-14T22:13:20.250Z", "status": "READY"}
                                ],
                            }
                        ],
                    }
                ],
            }
        ],
    )


def test_one_with_too_few_workers_is_unhealthy_and_one_that_failed_says_so() -> None:
    known = ModelDescription(SPEC, ("1",), groups=SPEC.groups)
    found = ModelDescriptions((row("m"), row("m", "2", VersionState.FAILED)), (known,))
    _, document = answered("GET", "/workflows/m", found)
    assert [each["models"][0]["status"] for each in document] == ["Unhealthy", "FAILED"]
    assert "workerGroups" not in document[1]["models"][0]


# -- scale and unregister (5.1) ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "scale", "bounds"),
    [
        ("/models/m?min_worker=2&max_worker=4", Scale("m", 2, 4, wait=False), "min workers:2 max workers:4"),
        ("/models/m/v1?max_worker=0", Scale("m", None, 0, "v1", wait=False), "min workers:-1 max workers:0"),
        (
            "/workflows/m?min_worker=1&device=gpu0",
            Scale("m", 1, None, "", "gpu", False),
            "min workers:1 max workers:-1",
        ),
        ("/models/m?device=-1", Scale("m", None, None, "", "cpu", False), "min workers:-1 max workers:-1"),
        ("/models/m?device=0", Scale("m", None, None, "", "gpu", False), "min workers:-1 max workers:-1"),
    ],
)
def test_bounds_that_are_not_given_stay(url: str, scale: Scale, bounds: str) -> None:
    assert operation("PUT", url) == scale
    text = f'Workflow "m" worker scaled. New Worker configuration {bounds}'
    assert answered("PUT", url, Listing(())) == (200, {"status": text})


def test_a_count_of_workers_that_is_no_number_is_400() -> None:
    assert refused("PUT", "/models/m?min_worker=x")[:2] == (400, "BadRequestException")


def test_a_version_or_all_are_unregistered() -> None:
    assert operation("DELETE", "/models/m") == Unregister("m")
    assert operation("DELETE", "/workflows/m/v1") == Unregister("m", "v1")
    assert answered("DELETE", "/models/m", Listing(())) == (
        200,
        {"status": 'Model or workflow "m" unregistered'},
    )


# -- the server (5.3), routes and errors (4.6) -------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "change"),
    [
        ("", LogChange(verbose=0, info=True, warning=True, error=True)),
        ("?level=debug", LogChange(verbose=1, info=True, warning=True, error=True)),
        ("?level=ERROR", LogChange(verbose=0, info=False, warning=False, error=True)),
    ],
)
def test_the_log_is_set(query: str, change: LogChange) -> None:
    assert operation("GET", f"/server/logging{query}") == LogControl(change)
    assert answered("POST", f"/server/logging{query}", LogReport(LogSettings())) == (200, {"status": "OK"})


def test_a_level_that_is_none() -> None:
    assert refused("POST", "/server/logging?level=loud")[0] == 400


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/models"), ("POST", "/models/x"), ("PATCH", "/workflows/x/1")]
)
def test_another_method_is_405(method: str, path: str) -> None:
    assert refused(method, path) == (
        405,
        "MethodNotAllowedException",
        "Requested method is not allowed, please refer to API document.",
    )


@pytest.mark.parametrize(
    "path", ["/server/x", "/", "/models/a/b/c", "/models//", "/nobody", "/predictions", "/workflows/a/b/c"]
)
def test_another_path_is_404(path: str) -> None:
    assert refused("GET", path) == (
        404,
        "ResourceNotFoundException",
        "Requested resource is not found, please refer to API document.",
    )


def test_each_listener_refuses_the_others_paths() -> None:
    inference = DjlHttp(lambda: "id", DjlOptions(exact=True, roles={Role.INFERENCE}))
    management = DjlHttp(lambda: "id", DjlOptions(exact=True, roles={Role.MANAGEMENT}))
    assert refused("GET", "/models", protocol=inference)[0] == 404
    assert refused("POST", "/predictions/m", protocol=management)[0] == 404
    assert refused("POST", "/models/m/invoke", protocol=management)[0] == 405
    assert decoded("GET", "/models", protocol=management)[0] == List()
    for protocol in (inference, management):
        assert decoded("GET", "/ping", protocol=protocol)[0] == List()


def test_who_may_change_nothing_may_still_look() -> None:
    protocol = DjlHttp(lambda: "id", DjlOptions(may_change=False))
    assert decoded("GET", "/models", protocol=protocol)[0] == List()
    for method, path in (("POST", "/models?url=/m"), ("DELETE", "/models/m"), ("POST", "/server/logging")):
        assert refused(method, path, protocol=protocol)[0] == 403


def test_looking_needs_another_right_than_changing() -> None:
    scopes = {
        method: EXACT.head(Head(method, "/models/m", "", {})).scope for method in ("GET", "PUT", "DELETE")
    }
    assert scopes == {"GET": AccessScope.OBSERVE, "PUT": AccessScope.MANAGE, "DELETE": AccessScope.MANAGE}


@pytest.mark.parametrize(
    ("reason", "code", "infers", "manages"),
    [
        (
            reasons.UNKNOWN_MODEL,
            Code.NOT_FOUND,
            "Model or workflow not found: m",
            "Model or workflow not found: m",
        ),
        (reasons.NOT_SERVING, Code.NOT_READY, "Model is not ready: m", "Model or workflow is not ready: m"),
        (
            reasons.SCALED_TO_NONE,
            Code.NOT_READY,
            "All model workers has been shutdown: m",
            "All model workers has been shutdown: m",
        ),
        (
            reasons.QUEUE_FULL,
            Code.QUEUE_FULL,
            "Worker queue capacity exceeded for model: m",
            "Worker queue capacity exceeded for model: m",
        ),
        (
            reasons.REGISTERED_TWICE,
            Code.CONFLICT,
            "Workflow m is already registered.",
            "Workflow m is already registered.",
        ),
    ],
)
def test_errors_of_the_core_have_the_originals_texts(
    reason: str, code: Code, infers: str, manages: str
) -> None:
    error = ServeError(code, "ours", info=ErrorInfo.of(reason, model="m", version="1"))
    for method, url, text in (("POST", "/predictions/m", infers), ("PUT", "/models/m", manages)):
        _, encoder = decoded(method, url)
        assert shown(encoder.encode(ResponsePart(error=error)))[1]["message"] == text
        _, encoder = decoded(method, url, protocol=OURS)
        assert shown(encoder.encode(ResponsePart(error=error)))[1]["message"] == "ours"


def test_a_worker_that_dies_with_many_requests_in_work_is_a_failed_engine() -> None:
    error = ServeError(Code.WORKER_DIED, "ours", info=ErrorInfo.of(reasons.DIED_WITH_MANY, model="m"))
    for protocol, status, text in ((EXACT, 500, "Inference Engine Failure"), (OURS, 503, "ours")):
        _, encoder = decoded("POST", "/predictions/m", protocol=protocol)
        answer, body = shown(encoder.encode(ResponsePart(error=error)))[:2]
        assert (answer, body["code"], body["message"]) == (status, status, text)


# -- what an operator sets (1.3) ---------------------------------------------------------------------------


def test_statuses_of_inference_can_be_set_and_those_of_management_stay() -> None:
    statuses = read_statuses("bad_request=422, throttle=429,wlm_error=500,server_error=502")
    protocol = DjlHttp(lambda: "id", DjlOptions(statuses=statuses))
    for code, status in (
        (Code.INVALID, 422),
        (Code.QUEUE_FULL, 429),
        (Code.NOT_READY, 500),
        (Code.INTERNAL, 502),
    ):
        error = ResponsePart(error=ServeError(code, "x"))
        assert decoded("POST", "/predictions/m", protocol=protocol)[1].encode(error).status == status
        assert decoded("PUT", "/models/m", protocol=protocol)[1].encode(error).status != status


@pytest.mark.parametrize("text", ["x=400", "throttle", "throttle=99", "throttle=4x", "=400"])
def test_statuses_that_cannot_be(text: str) -> None:
    with pytest.raises(ServeError, match="--djl-statuses"):
        read_statuses(text)


def test_a_model_that_loads_makes_a_ping_207_where_that_is_wanted() -> None:
    rows = Listing((row("a", state=VersionState.LOADING), row("b")))
    for multi, status in ((True, 207), (False, 200)):
        protocol = DjlHttp(lambda: "id", DjlOptions(multi_status=multi))
        _, encoder = decoded("GET", "/ping", protocol=protocol)
        answer = encoder.encode(ResponsePart(answer=rows))
        assert shown(answer) == (status, {"a": {"status": "PENDING"}, "b": {"status": "Healthy"}})
        early = encoder.encode(ResponsePart(answer=Listing((), is_starting=True)))
        assert shown(early) == (status, {})


def test_the_header_of_a_requests_id_can_be_set() -> None:
    protocol = DjlHttp(lambda: "id", DjlOptions(request_id=b"x-amzn-requestid"))
    head = Head("GET", "/ping", "", {b"x-amzn-requestid": b"7", b"x-request-id": b"8"})
    _, encoder = protocol.decode(head, protocol.head(head), Body(b""))
    assert b"x-request-id: 7\r\n" in encoder.encode(ResponsePart(answer=Listing(()))).fields


# -- what no registration is -------------------------------------------------------------------------------


def test_half_a_surrogate_pair_is_refused_in_words_that_can_be_written() -> None:
    body = rb'{"url": "file:///m/x", "min_worker": "\ud800"}'
    status, kind, message = refused("POST", "/models", body, JSON)
    assert (status, kind) == (409, "NumberFormatException")
    assert "ud800" in message


def test_a_registration_of_megabytes_is_not_read() -> None:
    body = b'{"url": "' + b"x" * 2**20 + b'"}'
    status, kind, message = refused("POST", "/models", body, JSON, OURS)
    assert (status, kind) == (400, "BadRequestException")
    assert "65536 at most" in message
