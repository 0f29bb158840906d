"""TorchServe's gRPC services: messages as operations, and answers and statuses as 0.12.0 writes them."""

import json
from typing import Any

import pytest
from msgspec import structs

from trivium.codecs import grpc_status as status
from trivium.codecs.protobuf_schema import classes_of
from trivium.servers.torchserve.wire.grpc import (
    PING,
    PREDICT,
    SCOPES,
    SERVICES,
    STREAM,
    STREAM_2,
    TorchServeGrpc,
)
from trivium.servers.torchserve.wire.management_options import ManagementOptions
from trivium.servers.torchserve.words.layers import SequenceNames
from trivium.servers.torchserve.words.model_urls import ModelStore
from trivium.types import reasons
from trivium.types.access import AccessScope
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Generate, Generated, GeneratedChoice, Sampling
from trivium.types.listeners import Role
from trivium.types.operations import (
    DescribeAll,
    Infer,
    List,
    Listing,
    Register,
    ResponsePart,
    Scale,
    SequenceRef,
    SetDefault,
    Unregister,
    VersionStatus,
)
from trivium.types.payload import Raw, RawPart
from trivium.types.sources import ModelSource
from trivium.types.state import VersionState
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind

INFERENCE = classes_of(
    "theirs.inference",
    {
        "PredictionsRequest": "1 string model_name\n2 string model_version\n3 map<string,bytes> input\n"
        "4 oneof=_sequence_id string sequence_id",
        "PredictionResponse": "1 bytes prediction\n2 string sequence_id\n3 Status status",
        "Status": "1 int32 code\n2 string message\n3 repeated Any details",
        "Any": "1 string type_url\n2 bytes value",
        "ErrorInfo": "1 string reason",
        "TorchServeHealthResponse": "1 string health",
    },
)
MANAGEMENT = classes_of(
    "theirs.management",
    {
        "ManagementResponse": "1 string msg",
        "DescribeModel": "1 string model_name\n2 string model_version\n3 bool customized",
        "ListModels": "1 int32 limit\n2 int32 next_page_token",
        "RegisterModel": "1 int32 batch_size\n2 string handler\n3 int32 initial_workers\n4 int32 max_batch_delay\n"
        "5 string model_name\n6 int32 response_timeout\n7 string runtime\n8 bool synchronous\n9 string url\n"
        "10 bool s3_sse_kms\n11 int32 startup_timeout",
        "ScaleWorker": "1 string model_name\n2 string model_version\n3 int32 max_worker\n4 int32 min_worker\n"
        "5 int32 number_gpu\n6 bool synchronous\n7 int32 timeout",
        "SetDefault": "1 string model_name\n2 string model_version",
        "UnregisterModel": "1 string model_name\n2 string model_version",
    },
)
MANAGES = f"/{SERVICES[Role.MANAGEMENT][0]}/"


def protocol(exact: bool = True, roles: frozenset[Role] = frozenset(Role), **options: Any) -> TorchServeGrpc:
    management = ManagementOptions(ModelStore("/store"), exact=exact, **options)
    return TorchServeGrpc(lambda: "id", exact, roles, management)


EXACT, OURS = protocol(), protocol(exact=False)


def infer(method: str = PREDICT, wire: TorchServeGrpc = EXACT, **fields: Any):
    message = INFERENCE["PredictionsRequest"](**fields).SerializeToString()
    return wire.decode(RpcCall(method, {}, 3.0), message)


def manage(name: str, wire: TorchServeGrpc = EXACT, **fields: Any):
    return wire.decode(RpcCall(MANAGES + name), MANAGEMENT[name](**fields).SerializeToString())


def prediction(answer: RpcAnswer) -> bytes:
    assert answer.code == 0, answer
    return INFERENCE["PredictionResponse"].FromString(answer.message).prediction


def msg(answer: RpcAnswer) -> str:
    assert answer.code == 0, answer
    return MANAGEMENT["ManagementResponse"].FromString(answer.message).msg


def refused(name: str, wire: TorchServeGrpc = EXACT, **fields: Any) -> tuple[int, list[str]]:
    with pytest.raises(ServeError) as caught:
        manage(name, wire, **fields)
    return told(wire.refuse(RpcCall(MANAGES + name), caught.value))


def told(answer: RpcAnswer) -> tuple[int, list[str]]:
    return answer.code, answer.details.split("\n")


def known(reason: str, code: Code = Code.NOT_FOUND, **metadata: object) -> ServeError:
    return ServeError(code, "Ours.", info=ErrorInfo.of(reason, **metadata))


NO_MODEL = known(reasons.UNKNOWN_MODEL, model="m")
NO_VERSION = known(reasons.UNKNOWN_VERSION, model="m", version="9")
ARCHIVE, HTTP = "org.pytorch.serve.archive.model.", "org.pytorch.serve.http."


# -- inference ---------------------------------------------------------------------------------------------


def test_each_input_is_a_field_of_the_request() -> None:
    operation, _ = infer(model_name="m", model_version="1.0", input={"data": b"x"})
    payload = Raw((RawPart(b"x", name="data"),), path=None)
    for found, expected in (
        (operation, Infer("m", payload, "1.0", "id", deadline=3.0)),
        (infer(model_name="m")[0], Infer("m", Raw((), path=None), "", "id", deadline=3.0)),
    ):
        assert structs.replace(found, as_generate=None) == expected


def test_a_prediction_is_the_first_part_alone_and_a_stream_all_of_them() -> None:
    parts = [ResponsePart(Raw((RawPart(text),)), final=False) for text in (b"a", b"b")]
    for method, expected in ((PREDICT, [b"a"]), (STREAM, [b"a", b"b"])):
        _, encoder = infer(method, model_name="m")
        answers = [encoder.encode(part) for part in (*parts, ResponsePart())]
        assert [prediction(each) for each in answers if each.message is not None] == expected
        assert [each.final for each in answers] == [False, False, True]
        assert (answers[-1].message is None) is (method == STREAM)


def test_a_status_that_a_handler_sets_is_dropped() -> None:
    answer = infer(model_name="m")[1].encode(ResponsePart(Raw((RawPart(b"x"),), {"a": "b"}, status=404)))
    assert (prediction(answer), answer.final) == (b"x", True)


def test_a_stream_of_one_part_is_one_message() -> None:
    answer = infer(STREAM, model_name="m")[1].encode(ResponsePart(Raw((RawPart(b"x"),))))
    assert (prediction(answer), answer.final) == (b"x", True)


NO_WORKER = (
    'Model "m" has no worker to serve inference request. Please use scale workers API to add workers. If this is a '
    "sequence inference, please check if it is closed, or expired; or exceeds maxSequenceJobQueueSize"
)


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (NO_MODEL, status.INTERNAL, ["Model not found: m", f"{ARCHIVE}ModelNotFoundException"]),
        (
            NO_VERSION,
            status.INTERNAL,
            [
                "Model version: 9 does not exist for model: m",
                f"{ARCHIVE}ModelVersionNotFoundException",
            ],
        ),
        (ServeError(Code.NOT_READY, "Ours."), status.INTERNAL, [NO_WORKER, "InternalServerException.()"]),
        (ServeError(Code.QUEUE_FULL, "Ours."), status.INTERNAL, [NO_WORKER, "InternalServerException.()"]),
        (
            ServeError(Code.MODEL_FAILED, "Prediction failed: no", status=503),
            status.UNAVAILABLE,
            ["Prediction failed", f"{HTTP}InternalServerException"],
        ),
        (
            ServeError(Code.MODEL_FAILED, "theirs", status=404),
            status.NOT_FOUND,
            ["theirs", f"{HTTP}InternalServerException"],
        ),
        (
            ServeError(Code.MODEL_FAILED, "theirs", status=418),
            status.FAILED_PRECONDITION,
            ["theirs", f"{HTTP}InternalServerException"],
        ),
        (
            ServeError(Code.WORKER_DIED, "Ours."),
            status.INTERNAL,
            ["Worker died.", f"{HTTP}InternalServerException"],
        ),
        (
            known(reasons.KILLED, Code.WORKER_DIED, model="m", killed=True),
            status.INTERNAL,
            ["Worker died.", f"{HTTP}InternalServerException"],
        ),
        (
            ServeError(Code.OUT_OF_MEMORY, "Out of resources: no", status=507),
            status.INTERNAL,
            ["Out of resources", f"{HTTP}InternalServerException"],
        ),
    ],
)
def test_a_prediction_fails_in_the_originals_words(error: ServeError, code: int, lines: list[str]) -> None:
    for method in (PREDICT, STREAM):
        version = "9" if error is NO_VERSION else ""
        _, encoder = infer(method, model_name="m", model_version=version)
        assert told(encoder.encode(ResponsePart(error=error))) == (code, lines)


def test_a_request_that_names_no_model_is_refused() -> None:
    with pytest.raises(ServeError) as caught:
        infer(input={"data": b"x"})
    lines = ["Parameter model_name is required.", "BadRequestException.()"]
    assert told(EXACT.refuse(RpcCall(PREDICT), caught.value)) == (status.INTERNAL, lines)
    assert "Set its model_name" in OURS.refuse(RpcCall(PREDICT), caught.value).details


START, END = "ts_request_sequence_start", "ts_request_sequence_end"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"sequence_id": "s"}, SequenceRef("s")),
        ({"sequence_id": "s", "input": {START: b"True", END: b"no"}}, SequenceRef("s", True)),
        ({"sequence_id": "s", "input": {END: b"true"}}, SequenceRef("s", False, True)),
        ({"input": {START: b"true"}}, None),  # the server makes an id
    ],
)
def test_a_message_of_a_stream_names_its_sequence(
    fields: dict[str, Any], expected: SequenceRef | None
) -> None:
    assert infer(STREAM_2, model_name="m", **fields)[0].sequence == expected
    assert infer(PREDICT, model_name="m", **fields)[0].sequence == expected


def test_other_names_say_that_a_sequence_ends() -> None:
    wire = TorchServeGrpc(lambda: "id", names=SequenceNames("i", "s", "e"))
    operation, _ = infer(
        STREAM_2, wire, model_name="m", sequence_id="1", input={"e": b"true", START: b"true"}
    )
    assert operation.sequence == SequenceRef("1", False, True)


def in_stream(answer: RpcAnswer) -> tuple[int, str, str, str]:
    assert (answer.code, answer.final) == (0, True)
    said = INFERENCE["PredictionResponse"].FromString(answer.message).status
    (detail,) = said.details
    reason = INFERENCE["ErrorInfo"].FromString(detail.value).reason
    return said.code, said.message, detail.type_url, reason


DETAIL = "type.googleapis.com/google.rpc.ErrorInfo"


def test_a_stream_goes_on_behind_a_message_that_is_refused() -> None:
    cases = [({}, "model_name"), ({"model_name": "m"}, "sequenceId")]
    for fields, name in cases:
        with pytest.raises(ServeError) as caught:
            infer(STREAM_2, **fields)
        expected = (status.INTERNAL, f"Parameter {name} is required.", DETAIL, "BadRequestException.()")
        assert in_stream(EXACT.refuse(RpcCall(STREAM_2), caught.value)) == expected
    with pytest.raises(ServeError) as caught:
        EXACT.decode(RpcCall(STREAM_2), b"\xff\xff")
    assert in_stream(EXACT.refuse(RpcCall(STREAM_2), caught.value))[0] == status.INVALID_ARGUMENT


@pytest.mark.parametrize("code", [Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.DRAINING])
def test_a_stream_ends_where_nobody_may_go_on(code: Code) -> None:
    answer = EXACT.refuse(RpcCall(STREAM_2), ServeError(code, "No."))
    assert (answer.code > 0, answer.message) == (True, None)


@pytest.mark.parametrize(
    ("error", "code", "message", "reason"),
    [
        (NO_MODEL, status.INTERNAL, "Model not found: m", f"{ARCHIVE}ModelNotFoundException"),
        (
            known(reasons.QUEUE_FULL, Code.QUEUE_FULL),
            status.INTERNAL,
            NO_WORKER,
            "InternalServerException.()",
        ),
        (
            ServeError(Code.WORKER_DIED, "It did."),
            status.INTERNAL,
            "Worker died.",
            f"{HTTP}InternalServerException",
        ),
        (ServeError(Code.INVALID, "Not\nso."), status.INVALID_ARGUMENT, "Not\nso.", ""),
    ],
)
def test_an_error_of_one_request_is_a_message_of_its_stream(
    error: ServeError, code: int, message: str, reason: str
) -> None:
    _, encoder = infer(STREAM_2, model_name="m", sequence_id="s")
    said = in_stream(encoder.encode(ResponsePart(error=error)))
    assert said == (code, message, DETAIL, reason)


def test_each_part_is_a_message_and_shows_an_id_that_the_server_made() -> None:
    parts = [
        ResponsePart(Raw((RawPart(b"a"),), {"TS_request_sequence_id": "ts-seq-1"}), final=False),
        ResponsePart(),
    ]
    for fields, shown in (({"sequence_id": "s"}, ""), ({"input": {START: b"true"}}, "ts-seq-1")):
        _, encoder = infer(STREAM_2, model_name="m", **fields)
        first, last = map(encoder.encode, parts)
        message = INFERENCE["PredictionResponse"].FromString(first.message)
        assert (message.prediction, message.sequence_id, first.final) == (b"a", shown, False)
        assert (last.message, last.final, last.code) == (None, True, 0)


# -- models that generate ----------------------------------------------------------------------------------

GREEDY = Sampling(samples=False, max_tokens=5)
PARAMETERS = {"end_of_stream_token": "<end>"}


def generating(method: str = STREAM, input: dict[str, bytes] | None = None, **fields: Any):
    """What is asked for, and the encoder that has read it."""
    given = {"text": b"hi", "max_new_tokens": b"5"} if input is None else input
    if method == STREAM_2:
        fields = {"sequence_id": "s", **fields}
    operation, encoder = infer(method, model_name="m", input=given, **fields)
    return operation.as_generate(operation.payload, PARAMETERS), encoder


def text(word: str, finish: Finish | None = None) -> ResponsePart:
    return ResponsePart(Generated((GeneratedChoice(0, word, (1,), finish=finish),)), final=finish is not None)


AS_JSON = json.dumps({"text": "hi", "max_new_tokens": 5}).encode()


@pytest.mark.parametrize(
    "input",
    [
        {"text": b"hi", "max_new_tokens": b"5"},
        {"data": AS_JSON},
        {"body": AS_JSON},
        {"text": b"hi", "max_new_tokens": b"5", START: b"true", END: b"true"},
    ],
)
def test_inputs_are_the_fields_of_a_form_or_json(input: dict[str, bytes]) -> None:
    for method, streams in ((PREDICT, False), (STREAM, True), (STREAM_2, True)):
        expected = Generate(("hi",), sampling=GREEDY, streams=streams)
        assert generating(method, input)[0] == expected


def test_embeddings_are_an_input() -> None:
    for given in ({"inputs_embeds": b"[[1, 2]]"}, {"data": b'{"inputs_embeds": [[1, 2]]}'}):
        embeds = generating(PREDICT, given)[0].embeds
        assert (embeds.tokens, embeds.width) == (1, 2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "Exactly one of 'text'"),
        ({"data": b"hello"}, "no JSON object"),
        ({"data": b'{"text": "hi", "temprature": 1}'}, "temprature"),
        ({"text": b"hi", "temprature": b"1"}, "temprature"),
        ({"text": b"hi", "num_beams": b"4"}, "num_beams"),
        ({"text": b"\xff"}, "not UTF-8"),
        ({"text": b"hi", "data": b"{}"}, "'data'"),
    ],
)
def test_what_is_no_request_to_generate_is_refused(given: dict[str, bytes], words: str) -> None:
    for method in (PREDICT, STREAM):
        operation, encoder = infer(method, model_name="m", input=given)
        with pytest.raises(ServeError, match=words) as caught:
            operation.as_generate(operation.payload, PARAMETERS)
        answer = encoder.encode(ResponsePart(error=caught.value))
        assert (answer.code, answer.details) == (status.INVALID_ARGUMENT, caught.value.message)


def test_text_is_a_message_or_one_for_each_piece_and_the_end() -> None:
    parts = [text(""), text("é"), text(""), text("z", Finish.EOS)]
    for method in (STREAM, STREAM_2):
        _, encoder = generating(method)
        answers = [encoder.encode(part) for part in parts]
        assert [each.final for each in answers] == [False, False, False, True]
        pieces = [prediction(each) for each in answers if each.message is not None]
        assert [piece.decode() for piece in pieces] == ["é", "z<end>"]
    _, encoder = generating(PREDICT)
    assert prediction(encoder.encode(text("éz", Finish.EOS))).decode() == "éz<end>"


def test_texts_of_a_stream_of_requests_are_told_apart_by_their_ids() -> None:
    parts = (text("a"), ResponsePart(error=ServeError(Code.MODEL_FAILED, "why")))
    for own, given in (("s", None), ("", {"text": b"hi", START: b"true"})):
        _, encoder = generating(STREAM_2, given, sequence_id=own)
        messages = [
            INFERENCE["PredictionResponse"].FromString(encoder.encode(part).message) for part in parts
        ]
        assert [message.sequence_id for message in messages] == [own, own]
        assert [message.status.code for message in messages] == [0, status.UNAVAILABLE]


def test_a_failure_in_mid_stream_is_that_of_any_model() -> None:
    untold = ResponsePart(Generated((GeneratedChoice(0, finish=Finish.ERROR, error="why"),)))
    lines = ["Prediction failed", f"{HTTP}InternalServerException"]
    for failed in (ResponsePart(error=ServeError(Code.MODEL_FAILED, "why")), untold):
        _, encoder = generating(STREAM)
        assert prediction(encoder.encode(text("a"))) == b"a"
        assert told(encoder.encode(failed)) == (status.UNAVAILABLE, lines)


@pytest.mark.parametrize(
    ("rows", "health"),
    [
        ((), "Healthy"),
        ((VersionStatus("m", "1", VersionState.LOADING),), "Healthy"),
        ((VersionStatus("m", "1", VersionState.FAILED, at_start=True),), "Healthy"),
        ((VersionStatus("m", "1", VersionState.FAILED, at_start=True, is_loaded=True),), "Unhealthy"),
        ((VersionStatus("m", "1", VersionState.FAILED),), "Unhealthy"),
    ],
)
def test_a_ping_is_the_pretty_document_of_http(rows: tuple[VersionStatus, ...], health: str) -> None:
    operation, encoder = EXACT.decode(RpcCall(PING), b"")
    assert operation == List()
    answer = encoder.encode(ResponsePart(answer=Listing(rows)))
    found = INFERENCE["TorchServeHealthResponse"].FromString(answer.message)
    assert found.health == f'{{\n  "status": "{health}"\n}}'


# -- management --------------------------------------------------------------------------------------------


def test_a_registration_does_not_wait_unless_it_says_so() -> None:
    operation, _ = manage("RegisterModel", url="m.mar")
    assert isinstance(operation, Register)
    assert (operation.source.uri, operation.wait, operation.keeps_default) == ("/store/m.mar", False, True)
    operation, encoder = manage(
        "RegisterModel",
        url="m.mar",
        model_name="n",
        handler="h.py",
        runtime="python",
        batch_size=2,
        max_batch_delay=3,
        initial_workers=4,
        response_timeout=-5,
        startup_timeout=6,
        synchronous=True,
    )
    assert isinstance(operation, Register)
    assert operation.wait
    assert {key: each.value for key, each in operation.source.over.items()} == {
        "handler": "h.py",
        "runtime": "python",
        "batch_size": "2",
        "max_batch_delay": "3",
        "initial_workers": "4",
        "startup_timeout": "6",
    }
    row = VersionStatus("n", "1.0", VersionState.READY, source=operation.source, least=4)
    answer = encoder.encode(ResponsePart(answer=Listing((row,))))
    assert msg(answer) == 'Model "n" Version: 1.0 registered with 4 initial workers'


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model_name": "m"}, Scale("m", 1, 1, wait=False)),
        (
            {"model_name": "m", "model_version": "2", "min_worker": 2, "max_worker": 3, "synchronous": True},
            Scale("m", 2, 3, "2", wait=True),
        ),
        ({"model_name": "m", "min_worker": -1, "max_worker": -1}, Scale("m", 1, 1, wait=False)),
        ({"model_name": "m", "min_worker": 10**9}, Scale("m", 10**9, 10**9, wait=False)),
    ],
)
def test_bounds_of_workers(fields: dict[str, Any], expected: Scale) -> None:
    assert manage("ScaleWorker", **fields)[0] == expected


def test_lists_and_descriptions_are_the_documents_of_http() -> None:
    operation, encoder = manage("ListModels")
    assert operation == List()
    row = VersionStatus("m", "1", VersionState.READY, source=ModelSource("/store/m.mar"))
    assert msg(encoder.encode(ResponsePart(answer=Listing((row,))))) == (
        '{\n  "nextPageToken": "0",\n  "models": []\n}'
    )
    text = '{\n  "models": [\n    {\n      "modelName": "m",\n      "modelUrl": "m.mar"\n    }\n  ]\n}'
    assert msg(manage("ListModels", limit=-1)[1].encode(ResponsePart(answer=Listing((row,))))) == text
    assert manage("DescribeModel", model_name="m", model_version="all")[0] == DescribeAll("m")
    asked = manage("DescribeModel", model_name="m", customized=True)[0]
    assert isinstance(asked, DescribeAll)
    assert asked.asked is not None


def test_the_default_version_and_the_end_of_one() -> None:
    operation, encoder = manage("SetDefault", model_name="m", model_version="2")
    assert operation == SetDefault("m", "2")
    text = 'Default version successfully updated for model "m" to "2"'
    assert msg(encoder.encode(ResponsePart(answer=Listing(())))) == text
    operation, encoder = manage("UnregisterModel", model_name="m")
    assert operation == Unregister("m", spares_default=True)
    assert msg(encoder.encode(ResponsePart(answer=Listing(())))) == 'Model "m" unregistered'


MISSING = [f"{HTTP}BadRequestException"]


@pytest.mark.parametrize(
    ("name", "fields", "code", "lines"),
    [
        ("RegisterModel", {}, status.INVALID_ARGUMENT, ["Parameter url is required.", *MISSING]),
        ("UnregisterModel", {}, status.INVALID_ARGUMENT, ["Parameter url is required.", *MISSING]),
        (
            "RegisterModel",
            {"url": "../m.mar"},
            status.NOT_FOUND,
            ["Relative path is not allowed in url: ../m.mar", f"{ARCHIVE}ModelNotFoundException"],
        ),
        (
            "RegisterModel",
            {"url": "m.mar", "runtime": "ruby"},
            status.INVALID_ARGUMENT,
            ["Invalid RuntimeType value: ruby", *MISSING],
        ),
        (
            "ScaleWorker",
            {"model_name": "m", "min_worker": 3, "max_worker": 1},
            status.INVALID_ARGUMENT,
            ["max_worker cannot be less than min_worker.", *MISSING],
        ),
        ("DescribeModel", {}, status.NOT_FOUND, ["Model not found: ", f"{ARCHIVE}ModelNotFoundException"]),
        ("SetDefault", {}, status.NOT_FOUND, ["Model not found: ", f"{ARCHIVE}ModelNotFoundException"]),
    ],
)
def test_a_wish_is_refused_in_the_originals_words(
    name: str, fields: dict[str, Any], code: int, lines: list[str]
) -> None:
    assert refused(name, **fields) == (code, lines)
    found, (first, *_) = refused(name, OURS, **fields)
    assert (found, first.startswith(lines[0].rstrip(".").rstrip())) == (code, True)


@pytest.mark.parametrize(
    ("name", "fields", "error", "code", "lines"),
    [
        (
            "RegisterModel",
            {"url": "m.mar"},
            ServeError(Code.NOT_FOUND, "Ours."),
            status.NOT_FOUND,
            ["Model not found at: m.mar", f"{ARCHIVE}ModelNotFoundException"],
        ),
        (
            "RegisterModel",
            {"url": "m.mar"},
            known(reasons.NOT_LOADED, Code.LOAD_FAILED, model="m", version="1.0"),
            status.INTERNAL,
            ["Failed to start workers for model m version: 1.0", f"{HTTP}InternalServerException"],
        ),
        (
            "RegisterModel",
            {"url": "s3://b/m.mar"},
            ServeError(Code.LOAD_FAILED, "Ours."),
            status.INVALID_ARGUMENT,
            [
                "Failed to download archive from: s3://b/m.mar",
                "org.pytorch.serve.archive.DownloadArchiveException",
            ],
        ),
        (
            "RegisterModel",
            {"url": "m.mar"},
            known(reasons.REGISTERED_TWICE, Code.CONFLICT, model="m", version="1.0"),
            status.UNKNOWN,
            [""],
        ),
        (
            "ScaleWorker",
            {"model_name": "m"},
            NO_MODEL,
            status.NOT_FOUND,
            ["Model not found: m", f"{ARCHIVE}ModelNotFoundException"],
        ),
        (
            "SetDefault",
            {"model_name": "m", "model_version": "9"},
            NO_VERSION,
            status.NOT_FOUND,
            ["Model version 9 does not exist for model m", f"{ARCHIVE}ModelVersionNotFoundException"],
        ),
        (
            "UnregisterModel",
            {"model_name": "m", "model_version": "9"},
            NO_VERSION,
            status.NOT_FOUND,
            ["Model version: 9 does not exist for model: m", f"{ARCHIVE}ModelVersionNotFoundException"],
        ),
        (
            "UnregisterModel",
            {"model_name": "m"},
            known(reasons.DEFAULT_VERSION, Code.CONFLICT, model="m", version="1.0"),
            status.PERMISSION_DENIED,
            ["Cannot remove default version for model m", f"{ARCHIVE}InvalidModelVersionException"],
        ),
    ],
)
def test_a_wish_fails_in_the_originals_words(
    name: str, fields: dict[str, Any], error: ServeError, code: int, lines: list[str]
) -> None:
    assert told(manage(name, **fields)[1].encode(ResponsePart(error=error))) == (code, lines)
    assert "Ours." in manage(name, OURS, **fields)[1].encode(ResponsePart(error=error)).details


def test_without_the_model_api_nothing_is_registered_and_unregistered() -> None:
    for name, fields in (("RegisterModel", {"url": "m.mar"}), ("UnregisterModel", {"model_name": "m"})):
        closed = protocol(registers=False)
        lines = ["Model API disabled", "org.pytorch.serve.archive.model.ModelException"]
        assert refused(name, closed, **fields) == (status.PERMISSION_DENIED, lines)
        code, (text, _) = refused(name, protocol(exact=False, registers=False), **fields)
        assert (code, "--torchserve-no-model-api" in text) == (status.PERMISSION_DENIED, True)
        assert refused(name, protocol(may_change=False), **fields)[0] == status.PERMISSION_DENIED


# -- messages and methods ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", sorted(set(SCOPES) - {PING, STREAM_2}))
def test_what_is_no_message_or_too_large_is_refused(method: str) -> None:
    field = b"\x0a\x01m"  # the first field, which every one of them has, again and again
    for data, code in ((b"\xff\xff", status.INVALID_ARGUMENT), (field * 10**5, status.RESOURCE_EXHAUSTED)):
        with pytest.raises(ServeError) as caught:
            EXACT.decode(RpcCall(method), data)
        assert EXACT.refuse(RpcCall(method), caught.value).code == code


def test_each_listener_has_the_services_of_its_roles() -> None:
    for role, (service,) in SERVICES.items():
        wire = protocol(roles=frozenset({role}))
        for method in SCOPES:
            if method.startswith(f"/{service}/"):
                assert wire.kind(method) in RpcKind
            else:
                with pytest.raises(ServeError):
                    wire.kind(method)
    kinds = {EXACT.kind(method) for method in SCOPES if method.startswith(MANAGES)}
    assert kinds == {RpcKind.UNARY}
    assert (EXACT.kind(STREAM), EXACT.kind(STREAM_2)) == (RpcKind.SERVER_STREAM, RpcKind.STREAM)
    with pytest.raises(ServeError):
        EXACT.kind(f"{MANAGES}Nope")


def test_reading_needs_less_than_changing() -> None:
    assert EXACT.scope(MANAGES + "ListModels") is AccessScope.OBSERVE
    assert EXACT.scope(MANAGES + "RegisterModel") is AccessScope.MANAGE
    assert EXACT.scope(PREDICT) is AccessScope.INFER
    assert EXACT.scope("/no/such") is AccessScope.MANAGE
