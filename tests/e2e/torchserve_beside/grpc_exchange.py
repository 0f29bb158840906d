"""One call of one of TorchServe's two gRPC services, by grpcio, and its answer as a document."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import grpc
from google.protobuf import json_format
from tests.e2e.torchserve_beside.exchange import PATIENCE, Request, masked
from tests.harness.raw_http import HOST

from trivium.codecs.protobuf_schema import classes_of
from trivium.servers.torchserve.wire.grpc_messages import INFERENCE_MESSAGES, MANAGEMENT_MESSAGES

_PACKAGE = "org.pytorch.serve.grpc."
_SERVICES = {
    "grpc_inference": f"/{_PACKAGE}inference.InferenceAPIsService/",
    "grpc_management": f"/{_PACKAGE}management.ManagementAPIsService/",
}
_MESSAGES = {
    **classes_of(f"{_PACKAGE}inference", INFERENCE_MESSAGES),
    **classes_of(f"{_PACKAGE}management", MANAGEMENT_MESSAGES),
}
_REQUESTS = {"Predictions": "PredictionsRequest", "StreamPredictions": "PredictionsRequest"} | {
    "StreamPredictions2": "PredictionsRequest"
}
_ANSWERS = {"Ping": "TorchServeHealthResponse"} | dict.fromkeys(_REQUESTS, "PredictionResponse")


def over_grpc(request: Request, port: int, metadata: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """Make the call on a channel of its own, and wait for its end."""
    answer = _MESSAGES[_ANSWERS.get(request.rpc, "ManagementResponse")]
    sent = [_sent(request.rpc, each) for each in request.messages]
    method = _SERVICES[request.listener] + request.rpc
    found: list[Any] = []
    with grpc.insecure_channel(f"{HOST}:{port}") as channel:
        try:
            for message in _called(channel, method, request.rpc, sent, metadata):
                read = answer.FromString(message)
                found.append(json_format.MessageToDict(read, preserving_proto_field_name=True))
        except grpc.RpcError as error:
            return {
                "status": error.code().name,
                "text": masked(error.details() or ""),
                "messages": _plain(found),
            }
    return {"status": "OK", "text": "", "messages": _plain(found)}


def _called(
    channel: grpc.Channel, method: str, rpc: str, sent: list[bytes], metadata: tuple[tuple[str, str], ...]
) -> Any:
    told: Mapping[str, Any] = {"timeout": PATIENCE, "metadata": metadata}
    call: Callable[..., Any]
    if rpc == "StreamPredictions2":
        return _conversation(channel.stream_stream(method), sent, told)
    if rpc == "StreamPredictions":
        call = channel.unary_stream(method)
        return call(sent[0], **told)
    call = channel.unary_unary(method)
    return [call(sent[0], **told)]


def _conversation(call: Any, sent: list[bytes], told: Mapping[str, Any]) -> Any:
    """One message after another, each behind the answer to the one before."""
    answered = threading.Semaphore(1)

    def messages() -> Any:
        for message in sent:
            answered.acquire(timeout=PATIENCE)
            yield message
        answered.acquire(timeout=PATIENCE)

    for answer in call(messages(), **told):
        answered.release()
        yield answer


def _sent(rpc: str, fields: Mapping[str, Any]) -> bytes:
    if rpc == "Ping":
        return b""
    if "garbage" in fields:
        return bytes(fields["garbage"])
    return bytes(_MESSAGES[_REQUESTS.get(rpc, f"{rpc}Request")](**fields).SerializeToString())


def _plain(messages: list[Any]) -> list[Any]:
    return [
        {key: masked(value) if isinstance(value, str) else value for key, value in message.items()}
        for message in messages
    ]
