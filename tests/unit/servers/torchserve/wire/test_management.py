"""TorchServe's management requests as operations, and the answers as 0.12.0 writes them."""

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from tests.harness.virtual_models import make_spec

from trivium.servers.torchserve.wire.config import TorchServeConfig
from trivium.servers.torchserve.wire.http import TorchServeHttp
from trivium.servers.torchserve.wire.management_options import ManagementOptions, management_options
from trivium.servers.torchserve.words.model_urls import ModelStore
from trivium.types import reasons
from trivium.types.access import AccessScope
from trivium.types.by_type import ByType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.listeners import Role
from trivium.types.operations import (
    DESCRIBE,
    Answer,
    DescribeAll,
    Infer,
    InstanceStatus,
    List,
    Listing,
    ModelDescription,
    ModelDescriptions,
    Operation,
    Register,
    ResponsePart,
    Scale,
    SetDefault,
    Unregister,
    VersionStatus,
)
from trivium.types.payload import Raw, RawPart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import Device, Dynamic, Handler, InstanceGroup, Limits, Origin
from trivium.types.state import VersionState as S
from trivium.types.wire import Body, Head, HttpAnswer

STORE = ModelStore("/store")
JSON = {b"content-type": b"application/json; charset=utf-8"}
MANAGEMENT = frozenset({Role.MANAGEMENT})


def wire(exact: bool = True, roles: frozenset[Role] = MANAGEMENT, **options: Any) -> TorchServeHttp:
    return TorchServeHttp(lambda: "id", exact, roles, ManagementOptions(STORE, exact=exact, **options))


EXACT, OURS = wire(), wire(exact=False)


def decoded(method: str, url: str, body: bytes = b"", headers: Any = None, protocol: TorchServeHttp = EXACT):
    path, _, query = url.partition("?")
    head = Head(method, path, query, headers or {})
    return protocol.decode(head, protocol.head(head), Body(body))


def operation(*args: Any, **more: Any) -> Operation:
    return decoded(*args, **more)[0]


def shown(answer: HttpAnswer) -> tuple[int, Any]:
    text = b"".join(answer.buffers)
    assert text.endswith(b"\n")
    assert b"Content-Type: application/json\r\n" in answer.fields
    return answer.status, json.loads(text)


def answered(method: str, url: str, answer: Answer, **more: Any) -> tuple[int, Any]:
    return shown(decoded(method, url, **more)[1].encode(ResponsePart(answer=answer)))


def refused(*args: Any, protocol: TorchServeHttp = EXACT, **more: Any) -> tuple[int, str, str]:
    with pytest.raises(ServeError) as caught:
        decoded(*args, protocol=protocol, **more)
    status, document = shown(protocol.refuse(caught.value))
    assert document["code"] == status
    return status, document["type"], document["message"]


def failed(
    method: str, url: str, error: ServeError, protocol: TorchServeHttp = EXACT
) -> tuple[int, str, str]:
    status, document = shown(decoded(method, url, protocol=protocol)[1].encode(ResponsePart(error=error)))
    assert document["code"] == status
    return status, document["type"], document["message"]


def known(reason: str, code: Code = Code.NOT_FOUND, **metadata: object) -> ServeError:
    return ServeError(code, "Ours.", info=ErrorInfo.of(reason, **metadata))


NO_MODEL = known(reasons.UNKNOWN_MODEL, model="m")
NO_VERSION = known(reasons.UNKNOWN_VERSION, model="m", version="9")


# -- register (5.1) ----------------------------------------------------------------------------------------


def setting(name: str, value: str) -> SourceSetting:
    return SourceSetting(value, Origin("the request", name))


def test_a_url_alone_is_a_model_of_the_store_without_workers() -> None:
    over = {"initial_workers": setting("initial_workers", "0")}
    assert operation("POST", "/models?url=m.mar") == Register(
        ModelSource("/store/m.mar", over=over, within="/store"), True, keeps_default=True
    )


def test_every_parameter_is_a_wish_that_lies_over_the_files() -> None:
    found = operation(
        "POST",
        "/models?url=m.mar&model_name=n&handler=h.py:f&runtime=python3&batch_size=2&max_batch_delay=0"
        "&initial_workers=3&synchronous=FALSE&response_timeout=5&startup_timeout=6",
    )
    assert isinstance(found, Register)
    assert (found.source.name, found.wait) == ("n", False)
    assert {key: each.value for key, each in found.source.over.items()} == {
        "handler": "h.py:f",
        "runtime": "python3",
        "batch_size": "2",
        "max_batch_delay": "0",
        "initial_workers": "3",
        "response_timeout": "5",
        "startup_timeout": "6",
    }


@pytest.mark.parametrize("value", ["x", "", "1.5", "99999999999", "-", "-7", "\u0663"])
def test_what_is_no_number_counts_as_not_given(value: str) -> None:
    found = operation("POST", f"/models?url=m.mar&batch_size={value}&initial_workers={value}")
    assert isinstance(found, Register)
    assert {key: each.value for key, each in found.source.over.items()} == {"initial_workers": "0"}


def test_members_of_a_json_body_are_parameters() -> None:
    body = b'{"url": "m.mar", "initial_workers": "2", "batch_size": 4, "synchronous": false, "handler": null}'
    found = operation("POST", "/models?url=other.mar", body, JSON)
    assert isinstance(found, Register)
    assert (found.source.uri, found.wait) == ("/store/m.mar", False)
    assert {key: each.value for key, each in found.source.over.items()} == {
        "batch_size": "4",
        "initial_workers": "2",
    }


def test_the_operator_says_how_many_workers_there_are_by_default() -> None:
    found = operation("POST", "/models?url=m.mar", protocol=wire(workers=4))
    assert isinstance(found, Register)
    assert found.source.over["initial_workers"].value == "4"


@pytest.mark.parametrize("body", [b"", b"[1]", b'{"url": "m', b'{"url": ["m"]}', b"\xff", b"[" * 10**5])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    status, kind, text = refused("POST", "/models", body, JSON)
    assert (status, kind) == (400, "BadRequestException")
    assert text.endswith(".")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("/models", (400, "BadRequestException", "Parameter url is required.")),
        ("/models?url=", (404, "ModelNotFoundException", "empty url")),
        (
            "/models?url=../m.mar",
            (404, "ModelNotFoundException", "Relative path is not allowed in url: ../m.mar"),
        ),
        (
            "/models?url=%252e%252e/m.mar",
            (404, "ModelNotFoundException", "Relative path is not allowed in url: %2e%2e/m.mar"),
        ),
        (
            "/models?url=http://h/m.mar",
            (404, "ModelNotFoundException", "Given URL http://h/m.mar does not match any allowed URL(s)"),
        ),
        ("/models?url=m.mar&runtime=ruby", (400, "BadRequestException", "Invalid RuntimeType value: ruby")),
        ("/models?url=m.mar&model_name=a%00b", (400, "BadRequestException", "Invalid model_name.")),
    ],
)
def test_a_registration_is_refused_in_the_originals_words(url: str, expected: tuple[int, str, str]) -> None:
    assert refused("POST", url) == expected
    status, kind, text = refused("POST", url, protocol=OURS)
    assert (status, kind) == expected[:2]
    assert text.startswith(expected[2].rstrip("."))
    assert len(text) > len(expected[2])


LOADED = VersionStatus(
    "m", "1.0", S.READY, source=ModelSource("/store/m.mar"), is_loaded=True, is_default=True
)
OVER = {"initial_workers": setting("initial_workers", "0")}


def row(version: str = "1.0", least: int = 0, name: str = "m.mar", **more: Any) -> VersionStatus:
    source = ModelSource(f"/store/{name}", over=OVER)
    return VersionStatus("m", version, S.READY, source=source, is_loaded=True, least=least, **more)


@pytest.mark.parametrize(
    ("least", "synchronous", "expected"),
    [
        (
            0,
            "true",
            (
                200,
                'Model "m" Version: 2.0 registered with 0 initial workers. Use scale workers API to add workers for '
                "the model.",
            ),
        ),
        (2, "true", (200, 'Model "m" Version: 2.0 registered with 2 initial workers')),
        (2, "false", (202, "Processing worker updates...")),
    ],
)
def test_what_is_registered_is_said_with_its_workers(least: int, synchronous: str, expected: Any) -> None:
    listing = Listing((row("1.0", 5, "other.mar"), row("2.0", least)))
    status, document = answered("POST", f"/models?url=m.mar&synchronous={synchronous}", listing)
    assert (status, document) == (expected[0], {"status": expected[1]})


FINDING = Finding(Severity.ERROR, "m.mar", None, "model.handler", "no handler", "a handler", "Name it.")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            known(reasons.REGISTERED_TWICE, Code.CONFLICT, model="m", version="1.0"),
            (409, "ConflictStatusException", "Model version 1.0 is already registered for model m"),
        ),
        (ServeError(Code.NOT_FOUND, "Ours."), (404, "ModelNotFoundException", "Model not found at: m.mar")),
        (
            known(reasons.NOT_LOADED, Code.LOAD_FAILED, model="m", version="1.0"),
            (500, "InternalServerException", "Failed to start workers for model m version: 1.0"),
        ),
        (
            known(reasons.NOT_LOADED, Code.OUT_OF_MEMORY, model="m", version="1.0"),
            (507, "InternalServerException", "Failed to start workers for model m version: 1.0"),
        ),
        (
            known(reasons.NOT_BY_CLIENTS, Code.UNSUPPORTED),
            (
                405,
                "MethodNotAllowedException",
                "Requested method is not allowed, please refer to API document.",
            ),
        ),
    ],
)
def test_a_registration_fails_in_the_originals_words(error: ServeError, expected: Any, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING):
        assert failed("POST", "/models?url=m.mar", error) == expected
    assert "m.mar" in caplog.text
    assert "Ours." in caplog.text
    assert failed("POST", "/models?url=m.mar", error, OURS)[2] == f"{expected[2].rstrip('.')}. Ours."


@pytest.mark.parametrize("protocol", [EXACT, OURS])
def test_what_is_refused_before_it_is_asked_for_is_told_in_the_log_too(
    protocol: TorchServeHttp, caplog: Any
) -> None:
    with caplog.at_level(logging.WARNING):
        refused("POST", "/models?url=http://h/m%0AFAKE.mar", protocol=protocol)
        refused("POST", "/models", protocol=protocol)
    first, second = (record.getMessage() for record in caplog.records)
    text = "Given URL http://h/m FAKE.mar does not match any allowed URL(s). Only models of the store"
    assert first.startswith(f"A request is answered with 404: {text}")
    assert second.startswith("A request is answered with 400: Parameter url is required. Give the name")


def test_what_a_client_sends_makes_no_lines_in_the_log(caplog: Any) -> None:
    error = known(reasons.UNKNOWN_MODEL, model="")
    error.message = "There is no model 'a\nFAKE'."
    with caplog.at_level(logging.INFO):
        failed("DELETE", "/models/a%0AFAKE", error)
        failed("GET", "/models/a%0AFAKE", error)
        failed("POST", "/models?url=a%0D%0AFAKE", error)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING"]
    lines = [record.getMessage() for record in caplog.records]
    assert not any("\nFAKE" in line for line in lines[:2])
    assert "\r" not in lines[2]


def test_an_archive_that_cannot_be_read_is_the_clients_fault() -> None:
    status, kind, text = failed("POST", "/models?url=m.mar", ConfigError((FINDING,)))
    assert (status, kind) == (400, "InvalidModelException")
    assert "no handler" in text


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (Code.FORBIDDEN, (404, "ModelNotFoundException", "Given URL {} does not match any allowed URL(s)")),
        (Code.NOT_FOUND, (400, "DownloadArchiveException", "Failed to download archive from: {}")),
        (Code.LOAD_FAILED, (400, "DownloadArchiveException", "Failed to download archive from: {}")),
        (Code.TOO_LARGE, (400, "DownloadArchiveException", "Failed to download archive from: {}")),
    ],
)
def test_what_cannot_be_fetched(code: Code, expected: tuple[int, str, str]) -> None:
    url = "s3://bucket/m.mar"
    status, kind, text = expected
    assert failed("POST", f"/models?url={url}", ServeError(code, "Ours.")) == (status, kind, text.format(url))


def test_without_the_model_api_nothing_is_registered_and_unregistered() -> None:
    closed = wire(registers=False)
    for method, url in (("POST", "/models?url=m.mar"), ("DELETE", "/models/m")):
        status, kind, text = refused(method, url, protocol=closed)
        assert (status, kind) == (405, "MethodNotAllowedException")
        assert text == "Requested method is not allowed, please refer to API document."
        assert (
            "--torchserve-no-model-api"
            in refused(method, url, protocol=wire(exact=False, registers=False))[2]
        )
    assert operation("PUT", "/models/m", protocol=closed)
    assert operation("GET", "/models", protocol=closed)


def test_who_may_change_nothing_is_refused() -> None:
    for method, url in (
        ("POST", "/models?url=m.mar"),
        ("DELETE", "/models/m"),
        ("PUT", "/models/m"),
        ("PUT", "/models/m/1/set-default"),
    ):
        assert refused(method, url, protocol=wire(may_change=False))[0] == 403


# -- list (5.2) --------------------------------------------------------------------------------------------


def listed(query: str, *names: str) -> Any:
    rows = tuple(
        VersionStatus(name, "1.0", S.READY, source=ModelSource(f"/store/{name}.mar")) for name in names
    )
    assert operation("GET", f"/models{query}") == List()
    status, document = answered("GET", f"/models{query}", Listing(rows))
    assert status == 200
    assert list(document) in (["models"], ["nextPageToken", "models"])
    return document.get("nextPageToken"), [each["modelName"] for each in document["models"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (None, ["a", "b", "c", "d"])),
        ("?limit=1", ("1", ["a"])),
        ("?limit=2&next_page_token=2", ("4", ["c", "d"])),
        ("?limit=0", ("0", [])),
        ("?limit=-3", (None, ["a", "b", "c", "d"])),
        ("?limit=101&next_page_token=-2", (None, ["a", "b", "c", "d"])),
        ("?limit=x&next_page_token=y", (None, ["a", "b", "c", "d"])),
        ("?next_page_token=99", (None, [])),
    ],
)
def test_pages_are_those_of_the_original(query: str, expected: Any) -> None:
    assert listed(query, "a", "b", "c", "d") == expected


def test_a_model_is_listed_once_with_the_url_of_its_default_version() -> None:
    rows = (row("1.0", name="m.mar"), row("2.0", name="m2.mar", is_default=True))
    assert answered("GET", "/models/", Listing(rows)) == (
        200,
        {"models": [{"modelName": "m", "modelUrl": "m2.mar"}]},
    )


def test_what_is_gone_or_did_not_load_with_the_server_is_not_listed() -> None:
    rows = (
        VersionStatus("a", "1.0", S.FAILED, at_start=True),
        VersionStatus("b", "1.0", S.FAILED, at_start=True, is_loaded=True),
        VersionStatus("c", "1.0", S.FAILED),
        VersionStatus("d", "1.0", S.UNLOADING),
    )
    document = answered("GET", "/models", Listing(rows))[1]
    assert [each["modelName"] for each in document["models"]] == ["b", "c"]


# -- describe (5.3) ----------------------------------------------------------------------------------------

SPEC = make_spec(
    groups=(InstanceGroup("m", 1, 2),),
    limits=Limits(queue_items=100, run_deadline=9.0, startup_deadline=120.0),
    scheduling=Dynamic(max_delay=0.007),
    handler=Handler("", settings={"manifest": {"runtime": "python3"}, "model_yaml_config": {}}),
)
OPEN_ONE = InstanceStatus(1, "m_0", 3.0, False, Device.CPU, 0, 4711, 1024, 1767225600.5)


def description(version: str = "1.0", **more: Any) -> ModelDescription:
    spec = replace(SPEC, version=version)
    return ModelDescription(spec, (version,), groups=spec.groups, instances=(OPEN_ONE,), queued=3, **more)


def test_a_description_has_the_originals_keys_in_their_order() -> None:
    answer = ModelDescriptions((row(at_start=True),), (description(),), "1.0")
    status, (found,) = answered("GET", "/models/m", answer)
    assert status == 200
    assert list(found.items()) == list(
        {
            "modelName": "m",
            "modelVersion": "1.0",
            "modelUrl": "m.mar",
            "runtime": "python3",
            "minWorkers": 1,
            "maxWorkers": 2,
            "batchSize": SPEC.batching.max_rows,
            "maxBatchDelay": 7,
            "responseTimeout": 9,
            "startupTimeout": 120,
            "maxRetryTimeoutInSec": 300,
            "clientTimeoutInMills": 0,
            "parallelType": "",
            "parallelLevel": 0,
            "deviceType": "cpu",
            "continuousBatching": False,
            "useJobTicket": False,
            "useVenv": False,
            "stateful": False,
            "sequenceMaxIdleMSec": 0,
            "sequenceTimeoutMSec": 0,
            "maxNumSequence": 0,
            "maxSequenceJobQueueSize": 0,
            "loadedAtStartup": True,
            "workers": [
                {
                    "id": "9001",
                    "startTime": "2026-01-01T00:00:00.500Z",
                    "status": "READY",
                    "memoryUsage": 1024,
                    "pid": 4711,
                    "gpu": False,
                    "gpuUsage": "N/A",
                }
            ],
            "jobQueueStatus": {"remainingCapacity": 97, "pendingRequests": 3},
        }.items()
    )


def test_workers_that_are_being_opened_are_not_ready() -> None:
    answer = ModelDescriptions((row(),), (description(opening=1),), "1.0")
    (found,) = answered("GET", "/models/m", answer)[1]
    assert [each["status"] for each in found["workers"]] == ["READY", "UNLOADING"]
    assert len({each["id"] for each in found["workers"]}) == 2
    is_open, opens = found["workers"]
    assert (
        set(opens) == {"id", "startTime", "status", "memoryUsage", "pid", "gpu", "gpuUsage"} >= set(is_open)
    )
    assert {key: type(value) for key, value in opens.items() if key in is_open} == {
        key: type(value) for key, value in is_open.items()
    }


@pytest.mark.parametrize(
    ("url", "asked", "versions"),
    [
        ("/models/m", DescribeAll("m"), ["2.0"]),
        ("/models/m/", DescribeAll("m"), ["2.0"]),
        ("/models/m/1.0", DescribeAll("m", "1.0"), ["2.0"]),
        ("/models/m/all", DescribeAll("m"), ["1.0", "2.0"]),
        ("/models/m/all?customized=true", DescribeAll("m"), ["1.0", "2.0"]),
    ],
)
def test_the_default_version_one_or_all(url: str, asked: DescribeAll, versions: list[str]) -> None:
    assert operation("GET", url) == asked
    answer = ModelDescriptions((row("1.0"), row("2.0")), (description("1.0"), description("2.0")), "2.0")
    assert [each["modelVersion"] for each in answered("GET", url, answer)[1]] == versions


@pytest.mark.parametrize(
    ("said", "expected"),
    [(b'{"a": 1}', {"a": 1}), (b"[1]", {}), (b"\xff", {}), (b"[" * 10**5, {})],
)
def test_a_handler_describes_itself(said: bytes, expected: Any) -> None:
    asked = operation("GET", "/models/m/1.0?customized=True")
    assert isinstance(asked, DescribeAll)
    seen = {"content-length": "0"}
    assert asked.asked == Infer("m", Raw((), seen, path=None), "1.0", "id", method=DESCRIBE, alone=True)
    answer = ModelDescriptions((row(),), (description(),), "1.0", Raw((RawPart(said),)))
    http = decoded("GET", "/models/m?customized=true")[1].encode(ResponsePart(answer=answer))
    assert http.reason == b""
    (found,) = shown(http)[1]
    assert list(found)[-1] == "customizedMetadata"
    assert found["customizedMetadata"] == expected


def test_a_model_without_workers_describes_nothing_of_itself() -> None:
    text = 'Model "m" has no worker to serve describe request. Please use scale workers API to add workers.'
    error = known(reasons.SCALED_TO_NONE, Code.NOT_READY, model="m", version="1.0")
    assert failed("GET", "/models/m?customized=true", error) == (503, "ServiceUnavailableException", text)


def test_whether_a_model_has_workers() -> None:
    answer = ModelDescriptions((row(),), (description(),), "1.0")
    assert answered("GET", "/v1/models/m", answer) == (200, {"name": "m", "ready": True})
    assert answered("GET", "/v1/models/m", ModelDescriptions((row(),), ()))[1]["ready"] is False


@pytest.mark.parametrize(
    ("method", "url"),
    [("GET", "/models/m/9"), ("PUT", "/models/m/9"), ("DELETE", "/models/m/9"), ("GET", "/v1/models/m")],
)
def test_what_is_not_there_is_not_found(method: str, url: str) -> None:
    assert failed(method, url, NO_MODEL) == (404, "ModelNotFoundException", "Model not found: m")
    if not url.startswith("/v1"):
        text = "Model version: 9 does not exist for model: m"
        assert failed(method, url, NO_VERSION) == (404, "ModelVersionNotFoundException", text)


# -- scale, set default, unregister (5.4 to 5.6) -----------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("/m", Scale("m", 1, 1, wait=False)),
        ("/m/1.0?min_worker=2", Scale("m", 2, 2, "1.0", wait=False)),
        ("/m?min_worker=0&synchronous=true", Scale("m", 0, 0, wait=True)),
        ("/m?min_worker=2&max_worker=5&number_gpu=1&timeout=3", Scale("m", 2, 5, wait=False)),
        ("/m?min_worker=x&max_worker=y", Scale("m", 1, 1, wait=False)),
        ("/m?min_worker=10000000000", Scale("m", 1, 1, wait=False)),
        ("/m?min_worker=1000000000", Scale("m", 10**9, 10**9, wait=False)),
        ("/m?model_version=2.0&min_worker=1", Scale("m", 1, 1, "2.0", wait=False)),
    ],
)
def test_bounds_of_workers(query: str, expected: Scale) -> None:
    assert operation("PUT", f"/models{query}") == expected


def test_what_scaling_says() -> None:
    assert answered("PUT", "/models/m?min_worker=2", Listing(())) == (
        202,
        {"status": "Processing worker updates..."},
    )
    query = "?min_worker=2&synchronous=true"
    assert answered("PUT", f"/models/m{query}", Listing(()))[1] == {
        "status": "Workers scaled to 2 for model: m"
    }
    text = "Workers scaled to 2 for model: m, version: 1.0"
    assert answered("PUT", f"/models/m/1.0{query}", Listing(()))[1] == {"status": text}
    text = "max_worker cannot be less than min_worker."
    assert refused("PUT", "/models/m?min_worker=3&max_worker=1") == (400, "BadRequestException", text)
    assert refused("PUT", "/models/m?min_worker=-1")[:2] == (400, "BadRequestException")
    error = ServeError(Code.LOAD_FAILED, "Ours.")
    text = "Failed to start workers for model m version: 1.0"
    assert failed("PUT", "/models/m/1.0", error) == (500, "InternalServerException", text)
    assert failed("PUT", "/models/m", ServeError(Code.INVALID, "Ours."))[:2] == (400, "BadRequestException")


def test_the_default_version_is_chosen() -> None:
    assert operation("PUT", "/models/m/2.0/set-default") == SetDefault("m", "2.0")
    text = 'Default version successfully updated for model "m" to "2.0"'
    assert answered("PUT", "/models/m/2.0/set-default", Listing(())) == (200, {"status": text})
    text = "Model version 9 does not exist for model m"
    assert failed("PUT", "/models/m/9/set-default", NO_VERSION) == (
        404,
        "ModelVersionNotFoundException",
        text,
    )
    assert failed("PUT", "/models/m/9/set-default", NO_MODEL)[2] == "Model not found: m"


def test_a_version_is_unregistered() -> None:
    assert operation("DELETE", "/models/m") == Unregister("m", spares_default=True)
    assert operation("DELETE", "/models/m/2.0") == Unregister("m", "2.0", spares_default=True)
    assert answered("DELETE", "/models/m", Listing(())) == (200, {"status": 'Model "m" unregistered'})
    error = known(reasons.DEFAULT_VERSION, Code.CONFLICT, model="m", version="1.0")
    text = "Cannot remove default version for model m"
    assert failed("DELETE", "/models/m", error) == (403, "InvalidModelVersionException", text)


# -- routes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("DELETE", "/models", 405),
        ("PATCH", "/models", 405),
        ("PATCH", "/models/m", 405),
        ("POST", "/models/m", 405),
        ("POST", "/v1/models/m", 405),
        ("PUT", "/models/m/1/other", 404),
        ("GET", "/models/a/b/c/d", 404),
        ("GET", "/ping", 404),
        ("GET", "/metrics", 404),
        ("GET", "/predictions/m", 404),
        ("GET", "/", 405),
        ("OPTIONS", "/models", 405),
        ("OPTIONS", "/v1/models/m", 405),
        ("OPTIONS", "/models/m/1/other", 404),
        ("GET", "/api-description/x", 404),
    ],
)
def test_other_routes_are_refused_in_the_originals_words(method: str, path: str, status: int) -> None:
    texts = {
        404: "Requested resource is not found, please refer to API document.",
        405: "Requested method is not allowed, please refer to API document.",
    }
    found = refused(method, path)
    assert found[0] == status
    assert found[2] == texts.get(status, found[2])


def test_an_invocation_goes_before_the_management_of_a_version() -> None:
    both = wire(roles=frozenset(Role))
    assert isinstance(operation("GET", "/models/m/invoke", protocol=both), Infer)
    assert isinstance(operation("GET", "/models/m/invoke"), DescribeAll)
    assert isinstance(operation("GET", "/models/m/1.0", protocol=both), DescribeAll)
    with pytest.raises(ServeError):
        operation("GET", "/models/m", protocol=wire(roles=frozenset({Role.INFERENCE})))


def test_reading_needs_less_than_changing() -> None:
    for method, path, scope in (
        ("GET", "/models", AccessScope.OBSERVE),
        ("GET", "/models/m/1.0/set-default", AccessScope.OBSERVE),
        ("POST", "/models", AccessScope.MANAGE),
        ("PUT", "/models/m", AccessScope.MANAGE),
        ("DELETE", "/models/m", AccessScope.MANAGE),
    ):
        assert EXACT.head(Head(method, path, "", {})).scope is scope


def test_options_come_from_the_operator() -> None:
    own = ByType(TorchServeConfig("/s", "file://.*", 2, True))
    found = management_options(ProtocolContext(own=own, as_original=True, may_change=False))
    assert (found.store.folder, found.workers, found.registers) == ("/s", 2, False)
    assert (found.may_change, found.exact) == (False, True)
    assert found.store.place("file:///x/m.mar") == "/x/m.mar"
    with pytest.raises(ServeError):
        management_options(ProtocolContext(own=ByType(TorchServeConfig(allowed_urls="("))))
