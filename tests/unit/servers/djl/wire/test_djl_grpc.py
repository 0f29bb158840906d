"""DJL's gRPC service: messages as operations, and answers as messages."""

import json
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from trivium.codecs import ndlist
from trivium.codecs.grpc_status import INTERNAL, INVALID_ARGUMENT, NOT_FOUND
from trivium.codecs.protobuf_schema import classes_of
from trivium.servers.djl.wire.generated_answer import begin, piece_of
from trivium.servers.djl.wire.grpc import PING, PREDICT, SCOPES, SERVICES, DjlGrpc
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Finish, Generated, GeneratedChoice, TokenText
from trivium.types.listeners import Role
from trivium.types.operations import Infer, List, Listing, ResponsePart, VersionStatus
from trivium.types.payload import Generate, Raw, RawPart, Tensors
from trivium.types.state import VersionState
from trivium.types.wire import CostlyRpcAnswer, RpcCall, RpcKind

THEIRS = classes_of(
    "theirs",
    {
        "InferenceRequest": "1 string model_name\n2 string model_version\n4 map<string,bytes> headers\n5 bytes input",
        "InferenceResponse": "1 int32 code\n2 map<string,bytes> headers\n3 bytes output",
        "PingResponse": "1 int32 code\n2 map<string,string> model_status",
    },
)
PROTOCOL = DjlGrpc(lambda: "id", epoch=lambda: 5.0)


def request(**fields: Any) -> bytes:
    return THEIRS["InferenceRequest"](**fields).SerializeToString()


def decoded(message: bytes, method: str = PREDICT, timeout: float | None = None):
    return PROTOCOL.decode(RpcCall(method, {}, timeout), message)


def read(answer: Any, name: str = "InferenceResponse") -> Any:
    assert answer.code == 0, answer
    made = THEIRS[name]()
    made.ParseFromString(answer.message)
    return made


def test_a_prediction_is_an_inference_on_a_body() -> None:
    message = request(
        model_name="m", model_version="v1", headers={"X-A": b"1", "Content-Type": b"text/plain"}, input=b"hi"
    )
    infer, _ = decoded(message, timeout=3.0)
    assert structs.replace(infer, as_generate=None) == Infer(
        "m",
        Raw((RawPart(b"hi", "text/plain"),), {"X-A": "1", "Content-Type": "text/plain"}),
        "v1",
        "id",
        deadline=3.0,
    )


def test_a_message_that_is_none_is_refused() -> None:
    with pytest.raises(ServeError) as caught:
        decoded(b"\xff\xff")
    assert PROTOCOL.refuse(RpcCall(PREDICT), caught.value).code == INVALID_ARGUMENT


def test_each_part_is_a_message_and_headers_come_with_the_first() -> None:
    _, encoder = decoded(request(model_name="m"))
    first = encoder.encode(ResponsePart(Raw((RawPart(b"a"),), {"x": "1"}, status=201), final=False))
    assert not first.final
    assert (read(first).code, dict(read(first).headers), read(first).output) == (201, {"x": b"1"}, b"a")
    second = encoder.encode(ResponsePart(Raw((RawPart(b"b"),), {"x": "1"}), final=False))
    assert (read(second).code, dict(read(second).headers), read(second).output) == (201, {}, b"b")
    last = encoder.encode(ResponsePart())
    assert (last.message, last.final) == (None, True)


def test_an_answer_without_anything_is_one_message() -> None:
    _, encoder = decoded(request(model_name="m"))
    answer = encoder.encode(ResponsePart(Raw((), status=204)))
    assert (read(answer).code, read(answer).output, answer.final) == (204, b"", True)


def test_tensors_are_an_ndlist() -> None:
    _, encoder = decoded(request(model_name="m"))
    answer = read(encoder.encode(ResponsePart(Tensors.of({"y": np.ones(2, np.float32)}))))
    assert answer.headers["content-type"] == b"tensor/ndlist"
    assert len(ndlist.decode(answer.output, 2**20)) == 1


def test_errors_end_the_call() -> None:
    _, encoder = decoded(request(model_name="m"))
    assert encoder.encode(ResponsePart(error=ServeError(Code.NOT_FOUND, "no m"))).code == NOT_FOUND
    assert encoder.encode(ResponsePart(Generate(("text",)))).code != 0


@pytest.mark.parametrize(
    ("state", "multi", "code", "status"),
    [
        (VersionState.READY, False, 200, "Healthy"),
        (VersionState.LOADING, False, 200, "PENDING"),
        (VersionState.LOADING, True, 207, "PENDING"),
        (VersionState.FAILED, True, 500, "FAILED"),
    ],
)
def test_a_ping_says_how_models_are(state: VersionState, multi: bool, code: int, status: str) -> None:
    operation, encoder = DjlGrpc(lambda: "id", multi).decode(RpcCall(PING), b"")
    assert operation == List()
    answer = read(
        encoder.encode(ResponsePart(answer=Listing((VersionStatus("m", "1", state),)))), "PingResponse"
    )
    assert (answer.code, dict(answer.model_status)) == (code, {"m": status})


def test_there_are_two_rpcs() -> None:
    assert [PROTOCOL.kind(method) for method in SCOPES] == [RpcKind.UNARY, RpcKind.SERVER_STREAM]
    assert all(method.startswith(f"/{SERVICES[Role.INFERENCE][0]}/") for method in SCOPES)
    with pytest.raises(ServeError):
        PROTOCOL.kind(f"/{SERVICES[Role.INFERENCE][0]}/Train")


# -- models that generate ----------------------------------------------------------------------------------


def generating(body: bytes | dict[str, object], parameters: dict[str, str] | None = None):
    """What is asked for, and the encoder that has read it."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    infer, encoder = decoded(request(model_name="m", input=data))
    return infer.as_generate(infer.payload, parameters or {}), encoder


def said(text: str, finish: Finish | None = None) -> ResponsePart:
    choice = GeneratedChoice(0, text, (1,), (TokenText(1, text, -0.5),), finish)
    return ResponsePart(Generated((choice,)), final=finish is not None)


PARTS = (said("He"), said("y", Finish.EOS))
MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("document", "kind", "count"),
    [
        ({"inputs": "hi"}, b"application/json", 1),
        ({"inputs": "hi", "stream": True}, b"application/jsonlines", 2),
        ({"inputs": "hi", "parameters": {"output_formatter": "sse"}}, b"text/event-stream", 2),
        ({"messages": MESSAGES}, b"application/json", 1),
        ({"messages": MESSAGES, "stream": True}, b"application/jsonlines", 2),
    ],
)
def test_text_is_written_as_over_http(document: dict[str, object], kind: bytes, count: int) -> None:
    generate, encoder = generating(document)
    raw = Raw((RawPart(json.dumps(document).encode()),))
    expected, writer = begin(raw, {}, "id", 5.0)
    assert generate == expected
    answers = [encoder.encode(part) for part in PARTS]
    assert [answer.final for answer in answers] == [False, True]
    messages = [read(answer) for answer in answers if answer.message is not None]
    assert b"".join(message.output for message in messages) == b"".join(
        piece_of(part, writer) for part in PARTS
    )
    assert [dict(message.headers) for message in messages] == [{"content-type": kind}] + [{}] * (count - 1)
    assert {message.code for message in messages} == {200}


@pytest.mark.parametrize(
    "body", [b"", b"hello", b"[]", {}, {"inputs": "hi", "parameters": {"temprature": 1}}]
)
def test_what_is_no_request_to_generate_ends_the_call(body: bytes | dict[str, object]) -> None:
    infer, encoder = decoded(
        request(model_name="m", input=body if isinstance(body, bytes) else json.dumps(body).encode())
    )
    with pytest.raises(ServeError) as caught:
        infer.as_generate(infer.payload, {})
    answer = encoder.encode(ResponsePart(error=caught.value))
    assert (answer.code, answer.details) == (INVALID_ARGUMENT, caught.value.message)


def test_a_failure_in_mid_stream_ends_the_call() -> None:
    untold = Generated((GeneratedChoice(0, finish=Finish.ERROR, error="why"),))
    for failed in (ResponsePart(error=ServeError(Code.WORKER_DIED, "why")), ResponsePart(untold)):
        _, encoder = generating({"inputs": "hi", "stream": True})
        assert read(encoder.encode(PARTS[0])).output
        answer = encoder.encode(failed)
        assert (answer.code, answer.details, answer.message) == (INTERNAL, "why", None)


def test_many_tokens_are_written_elsewhere() -> None:
    tokens = tuple(TokenText(number, "a", -0.5) for number in range(100))
    _, encoder = generating({"inputs": "hi", "parameters": {"details": True}})
    answer = encoder.encode(ResponsePart(Generated((GeneratedChoice(0, "a" * 100, tokens=tokens),))))
    assert isinstance(answer, CostlyRpcAnswer)
    assert len(json.loads(read(answer.write()).output)["details"]["tokens"]) == 100
