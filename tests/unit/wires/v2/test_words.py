"""In whose words errors are told, over HTTP and gRPC: rows of the sheet's sections 4.1 to 4.14, 5.3 and 5.4."""

import json

import pytest

from trivium.codecs import data_reasons
from trivium.servers.triton.words.http_errors import TritonErrors, id_in
from trivium.servers.triton.words.rpc_errors import TritonRpcErrors
from trivium.servers.triton.words.v2 import V2
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import ResponsePart
from trivium.types.wire import Body, Head, RpcCall, Target
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.abilities import KServeOptions
from trivium.wires.v2.errors import refuse
from trivium.wires.v2.generate import GenerateEncoder, GenerateStreamEncoder
from trivium.wires.v2.grpc import SERVICE, KServeGrpc
from trivium.wires.v2.grpc_errors import status_of
from trivium.wires.v2.grpc_infer_request import of_request
from trivium.wires.v2.http import KServeHttp
from trivium.wires.v2.routes import Verb
from trivium.wires.v2.words import OWN_ERRORS, OWN_RPC_ERRORS

WORDS = TritonErrors()
PROTOCOL = KServeHttp("triton", "2.51.0", KServeOptions(may_change=True, original=V2, as_original=True))
POLL = "failed to poll from model repository"
PLAIN, JSON, EVENTS = b"text/plain", b"application/json", b"text/event-stream"


def _error(code, kind=None, status=None, **facts):
    return ServeError(
        code, "own words", status=status, info=None if kind is None else ErrorInfo.of(kind, **facts)
    )


def _answer(error, verb, model="m", request_id=""):
    return refuse(WORDS.of_answer(error, verb, model, request_id))


def _told(answer):
    kind = answer.fields.split(b"\r\n")[0].removeprefix(b"Content-Type: ")
    return answer.status, kind, json.loads(answer.buffers[0])["error"]


UNKNOWN = _error(Code.NOT_FOUND, reasons.UNKNOWN_MODEL, model="m")
VERSION = _error(Code.NOT_FOUND, reasons.UNKNOWN_VERSION, model="m", version="7")


@pytest.mark.parametrize(
    ("error", "verb", "told"),
    [
        (UNKNOWN, Verb.METADATA, (404, JSON, "Request for unknown model: 'm' is not found")),
        (UNKNOWN, Verb.INFER, (404, PLAIN, "Request for unknown model: 'm' is not found")),
        (VERSION, Verb.CONFIG, (404, JSON, "Request for unknown model: 'm' version 7 is not found")),
        (UNKNOWN, Verb.STATISTICS, (400, JSON, "requested model 'm' is not available")),
        (VERSION, Verb.STATISTICS, (400, JSON, "requested model version is not available for model 'm'")),
        (UNKNOWN, Verb.TRACE_SETTINGS, (400, JSON, "Request for unknown model : m")),
        (_error(Code.NOT_READY, status=400), Verb.READY, (400, PLAIN, "Model version not ready")),
        (
            _error(Code.NOT_FOUND, reasons.UNKNOWN_VERSION, model="m", version="x"),
            Verb.METADATA,
            (404, PLAIN, "Not Found"),
        ),
        (
            _error(Code.NOT_FOUND, reasons.UNKNOWN_REGION, region="r"),
            Verb.REGIONS,
            (404, JSON, "Unable to find system shared memory region: 'r'"),
        ),
        (
            _error(Code.NOT_FOUND, reasons.UNKNOWN_REGION, region="r"),
            Verb.INFER,
            (404, JSON, "Unable to find shared memory region: 'r'"),
        ),
        (
            _error(Code.NOT_FOUND),
            Verb.LOAD,
            (500, JSON, "failed to load 'm', failed to poll from model repository"),
        ),
        (_error(Code.MODEL_FAILED), Verb.INFER, (500, PLAIN, "own words")),
        (_error(Code.UNKNOWN), Verb.INFER, (400, PLAIN, "own words")),
        (_error(Code.INVALID, status=409), Verb.INFER, (400, PLAIN, "own words")),
        (_error(Code.NOT_READY), Verb.INFER, (503, PLAIN, "own words")),
        (_error(Code.INVALID, reasons.ENDLESS), Verb.INFER, (400, JSON, "own words")),
        (
            _error(Code.INVALID, data_reasons.UNFIT, input="x"),
            Verb.GENERATE,
            (400, JSON, "The schema can not convert input 'x' to tensor with proper shape"),
        ),
        (_error(Code.MODEL_FAILED), Verb.GENERATE, (400, JSON, "own words")),
    ],
)
def test_of_answers(error, verb, told):
    assert _told(_answer(error, verb)) == told


def test_a_full_queue_says_when_to_come_back():
    answer = _answer(ServeError(Code.QUEUE_FULL, "own", 1.5), Verb.INFER, request_id="a")
    assert _told(answer) == (503, PLAIN, "[request id: a] Exceeds maximum queue size")
    assert b"Retry-After: 2\r\n" in answer.fields


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("GET", "/v2/models", (404, PLAIN, "Not Found")),
        ("GET", "/v2/models/m/infer", (405, PLAIN, "Method Not Allowed")),
        ("PUT", "/v2/health/live", (405, PLAIN, "Method Not Allowed")),
        ("GET", "/v2/repository/index", (405, JSON, "Method Not Allowed")),
        (
            "POST",
            "/v2/repository/r/models/m/load",
            (501, JSON, "'repository_name' specification is not supported"),
        ),
    ],
)
def test_of_heads(method, path, told):
    with pytest.raises(ServeError) as refusal:
        PROTOCOL.head(Head(method, path, "", {}))
    answer = PROTOCOL.refuse(refusal.value)
    assert _told(answer) == told
    assert answer.reason == (b"Not Allowed" if told[0] == 405 else None)


def _refused(path, body, headers=None, protocol=PROTOCOL):
    head = Head("POST", path, "", headers or {}, len(body))
    with pytest.raises(ServeError) as refusal:
        protocol.decode(head, protocol.head(head), Body(body))
    return _told(protocol.refuse(refusal.value))


ONE_FIELD = (
    "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', "
    "'shared_memory_region' in 'parameters'. But "
)
LENGTH = b"inference-header-content-length"


@pytest.mark.parametrize(
    ("path", "body", "headers", "told"),
    [
        (
            "/v2/models/m/infer",
            b"{]",
            {},
            (
                500,
                JSON,
                "failed to parse the request JSON buffer: JSON is malformed: object keys must be strings (byte 1)",
            ),
        ),
        (
            "/v2/models/m/infer",
            b'{"id":5,"inputs":[]}',
            {},
            (500, JSON, "failed to parse the request JSON buffer: Expected a string, got an integer at id"),
        ),
        (
            "/v2/models/m/infer",
            b'{"inputs":[{"name":"x","shape":[1],"datatype":"INT33","data":[1]}]}',
            {},
            (400, JSON, "invalid datatype for input x"),
        ),
        (
            "/v2/models/m/infer",
            b'{"inputs":[{"name":"x","shape":[1],"datatype":"INT33","data":[1]}',
            {},
            (
                500,
                JSON,
                "failed to parse the request JSON buffer: Invalid datatype 'INT33'; v2 has BOOL, UINT8, UINT16, "
                "UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, FP32, FP64, BF16, BYTES at inputs[0].datatype",
            ),
        ),
        ("/v2/models/m/infer", b'{"inputs":[7]}', {}, (400, JSON, f"{ONE_FIELD}no field is set")),
        (
            "/v2/models/m/infer",
            b'{"inputs":[{"name":"x","shape":[1],"datatype":"INT8","data":[1],"parameters":{"binary_data_size":1}}]}',
            {},
            (400, JSON, f"{ONE_FIELD}set 'data' 'binary_data_size'"),
        ),
        (
            "/v2/models/m/infer",
            b'{"inputs":[{"name":"x","shape":[1],"datatype":"INT8","data":[1],"parameters":{"shared_memory_region":"r",'
            b'"shared_memory_byte_size":1}}]}',
            {},
            (400, JSON, f"{ONE_FIELD}set 'data' 'shared_memory_region'"),
        ),
        (
            "/v2/models/m/infer",
            b"{}",
            {LENGTH: b"9"},
            (400, PLAIN, "inference header size should be in range (0, 2), got: 9"),
        ),
        (
            "/v2/models/m/infer",
            b"{}",
            {b"content-encoding": b"br"},
            (501, PLAIN, "Unsupported compression type"),
        ),
        (
            "/v2/models/m/infer",
            b'{"id":"a","inputs":[{"name":"x","shape":[2],"datatype":"BYTES","data":["b"]}]}',
            {},
            (
                400,
                JSON,
                "[request id: a] expected 2 string elements for inference input 'x' for model 'm', got 1",
            ),
        ),
        (
            "/v2/models/m/infer",
            b'{"inputs":[{"name":"x","shape":[2],"datatype":"INT8","data":[1]}]}',
            {},
            (500, JSON, "Unable to parse 'data': Shape does not match true shape of 'data' field"),
        ),
        (
            "/v2/repository/models/m/load",
            b'{"parameters":{"config":1}}',
            {},
            (500, JSON, "attempt to access JSON non-string as string"),
        ),
        (
            "/v2/repository/models/m/load",
            b'{"parameters":1}',
            {},
            (500, JSON, "attempt to get members for non-object"),
        ),
        (
            "/v2/logging",
            b'{"log_file":"x"}',
            {},
            (501, JSON, "log file location can not be updated through network protocol"),
        ),
        (
            "/v2/systemsharedmemory/region/r/register",
            b"{}",
            {},
            (400, JSON, "Shared memory register request has no 'key' field"),
        ),
    ],
)
def test_of_requests(path, body, headers, told):
    assert _refused(path, body, headers) == told


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b'{"id": "a"}', "a"),
        (b'{"id": 1}', ""),
        (b"[]", ""),
        (b"{", ""),
        (b"\xff", ""),
        (b'{"id": "a"' + b" " * 2**16 + b"}", ""),
    ],
)
def test_the_id_where_it_can_be_read(text, name):
    assert id_in(text) == name


def test_own_words_stay_with_the_other_profiles():
    error = _error(Code.INVALID, data_reasons.UNFIT)
    assert OWN_ERRORS.of_head(error) is error
    assert OWN_ERRORS.of_request(error, Target("infer"), b"", 0) is error
    assert OWN_ERRORS.of_answer(error, Verb.INFER, "m") is error
    assert not OWN_ERRORS.forgives(UNKNOWN, Verb.UNLOAD)
    assert OWN_RPC_ERRORS.told(error, "ModelInfer") is error
    assert not OWN_RPC_ERRORS.forgives(UNKNOWN, "RepositoryModelUnload")
    status, _, text = _refused(
        "/v2/models/m/infer", b"{]", protocol=KServeHttp("trivium", "1", KServeOptions())
    )
    assert status == 400
    assert text.startswith("The infer request is no valid JSON")


def test_what_is_not_there_may_be_unloaded():
    assert WORDS.forgives(UNKNOWN, Verb.UNLOAD)
    assert not WORDS.forgives(UNKNOWN, Verb.LOAD)
    assert TritonRpcErrors().forgives(UNKNOWN, "RepositoryModelUnload")


def test_a_model_that_fails_at_generate():
    part = ResponsePart(error=_error(Code.NOT_FOUND), model="m")
    assert _told(GenerateEncoder("", WORDS, "m").encode(part)) == (400, JSON, "own words")
    stream = GenerateStreamEncoder("", WORDS, "m").encode(part)
    assert stream.status == 400
    assert EVENTS in stream.fields
    assert stream.buffers == (b'data: {"error":"own words"}\n\n',)


@pytest.mark.parametrize(
    ("error", "method", "told"),
    [
        (UNKNOWN, "ModelInfer", (5, "Request for unknown model: 'm' is not found")),
        (UNKNOWN, "ModelStatistics", (3, "requested model 'm' is not available")),
        (VERSION, "ModelStatistics", (3, "requested model version is not available for model 'm'")),
        (UNKNOWN, "TraceSetting", (3, "Request for unknown model : m")),
        (
            _error(Code.NOT_FOUND, reasons.UNKNOWN_VERSION, model="m", version="x"),
            "ModelMetadata",
            (
                3,
                "failed to get model version from specified version string 'x' (details: stol), version should be an "
                "integral value > 0",
            ),
        ),
        (
            _error(Code.NOT_FOUND, reasons.UNKNOWN_REGION, region="r"),
            "SystemSharedMemoryStatus",
            (5, "Unable to find system shared memory region: 'r'"),
        ),
        (
            _error(Code.NOT_FOUND),
            "RepositoryModelLoad",
            (13, "failed to load 'm', failed to poll from model repository"),
        ),
        (
            _error(Code.UNSUPPORTED, request_reasons.RESTRICTED_API, header="k"),
            "ModelInfer",
            (14, "This protocol is restricted, expecting header 'k'"),
        ),
        (_error(Code.MODEL_FAILED), "ModelInfer", (13, "own words")),
        (_error(Code.UNKNOWN), "ModelInfer", (2, "own words")),
        (_error(Code.INVALID, status=409), "ModelInfer", (6, "own words")),
        (_error(Code.EXPIRED), "ModelInfer", (14, "Request timeout expired")),
        (_error(Code.UNSUPPORTED, status=403), "ModelInfer", (7, "own words")),
    ],
)
def test_over_grpc(error, method, told):
    found = TritonRpcErrors().told(error, method, "m")
    assert (status_of(found), found.message) == told


def test_a_refusal_of_a_stream_names_model_and_request():
    protocol = KServeGrpc("triton", "2.51.0", KServeOptions(original=V2, as_original=True))
    error = of_request(_error(Code.INVALID, request_reasons.NO_DATA, input="x"), "a", "m")
    answer = protocol.refuse(RpcCall(SERVICE + "ModelStreamInfer"), error)
    assert b"unable to find data for input tensor 'x' for model 'm' in request." in (answer.message or b"")
    assert answer.code == 0


def test_a_model_is_blamed_for_what_nobody_refused_before():
    assert TritonRpcErrors().blames_model(_error(Code.NOT_FOUND))
    assert not TritonRpcErrors().blames_model(UNKNOWN)
    assert not OWN_RPC_ERRORS.blames_model(_error(Code.NOT_FOUND))
    assert OWN_RPC_ERRORS.blames_model(_error(Code.MODEL_FAILED))


def test_extensions_are_those_of_the_original():
    alone = KServeOptions(original=V2, as_original=True)
    assert alone.extensions[:2] == ("classification", "sequence")
    assert "system_shared_memory" not in alone.extensions
    assert (
        "system_shared_memory" in KServeOptions(original=V2, as_original=True, shares_memory=True).extensions
    )


@pytest.mark.parametrize(
    ("reason", "facts", "words"),
    [
        (reasons.NO_SEQUENCE, {}, "must specify a non-zero or non-empty correlation ID"),
        (reasons.SEQUENCE_ROWS, {}, "must specify batch-size 1 due to requirements of sequence batcher"),
        (reasons.UNSTARTED, {"sequence": 7, "idle": 0}, "START flag on the first request of the sequence"),
        (reasons.UNSTARTED, {"sequence": 7, "idle": 1.5}, "has been expired (1.5 s without one)"),
    ],
)
def test_requests_that_belong_to_no_sequence(reason: str, facts: dict[str, object], words: str) -> None:
    error = ServeError(Code.INVALID, "own words", info=ErrorInfo.of(reason, model="m", **facts))
    assert WORDS.of_answer(error, Verb.INFER, "m").message.endswith(words)
    assert TritonRpcErrors().told(error, "ModelInfer", "m").message.endswith(words)
