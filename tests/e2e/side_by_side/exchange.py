"""One request to one server, as raw bytes, and its answer in a form in which two servers can be compared.

Decides what counts (status, content type, error text, body) and what does not: durations, times, the order of keys.
"""

import http.client
import json
import queue
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import json_format
from tests.harness.raw_http import HOST, PATIENCE
from tritonclient.grpc import service_pb2 as pb

SERVICE = "/inference.GRPCInferenceService/"
_TIMES = {"ns", "last_inference"}


@dataclass(frozen=True)
class Request:
    """What is sent: `bytes` over HTTP; over gRPC messages to a method, several of them on a stream."""

    name: str
    is_bad: bool
    data: bytes = b""
    method: str = ""
    messages: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Answer:
    """Over gRPC `status` is the code's name, and there is no content type."""

    status: str
    content_type: str
    text: str
    body: Any

    def differs_from(self, other: "Answer") -> tuple[str, ...]:
        """In which of the four."""
        pairs = {
            "status": (self.status, other.status),
            "content type": (self.content_type, other.content_type),
            "text": (self.text, other.text),
            "body": (self.body, other.body),
        }
        return tuple(name for name, (mine, yours) in pairs.items() if mine != yours)


def exchange(request: Request, http_address: str, channel: grpc.Channel) -> Answer:
    """Send it and wait for the whole answer."""
    if not request.method:
        return _over_http(request.data, http_address)
    if request.method == "ModelStreamInfer":
        return _over_stream(request, channel)
    return _over_grpc(request, channel)


def _over_http(data: bytes, address: str) -> Answer:
    port = int(address.rpartition(":")[2])
    with socket.create_connection((HOST, port), PATIENCE) as connection:
        connection.sendall(data)
        response = http.client.HTTPResponse(connection, method=data.split(b" ", 1)[0].decode())
        response.begin()
        body = response.read()
    kind = response.headers.get("Content-Type", "")
    length = response.headers.get("Inference-Header-Content-Length")
    read = _read_body(body, None if length is None else int(length))
    text = ""
    if isinstance(read, dict) and list(read) == ["error"]:
        text, read = read["error"], None
    return Answer(str(response.status), kind, text, read)


def _read_body(body: bytes, length: int | None) -> Any:
    if length is not None:
        return _parsed(body[:length]), body[length:]
    if not body or body[:1] not in b"{[":
        return body
    return _parsed(body)


def _parsed(text: bytes) -> Any:
    return _without_times(json.loads(text))


def _over_grpc(request: Request, channel: grpc.Channel) -> Answer:
    call = channel.unary_unary(SERVICE + request.method)
    try:
        answer = call(request.messages[0], timeout=PATIENCE)
    except grpc.RpcError as error:
        return Answer(error.code().name, "", error.details() or "", None)
    kind = getattr(pb, f"{request.method}Response")
    return Answer("OK", "", "", _as_document(kind.FromString(answer)))


def _over_stream(request: Request, channel: grpc.Channel) -> Answer:
    """All responses in order. The stream is closed when every request has had its last one."""
    outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    responses: list[Any] = []
    call = channel.stream_stream(SERVICE + request.method)(iter(outbox.get, None), timeout=PATIENCE)
    for message in request.messages:
        outbox.put(message)
    outbox.put(None)
    try:
        responses += [_as_document(pb.ModelStreamInferResponse.FromString(data)) for data in call]
    except grpc.RpcError as error:
        return Answer(error.code().name, "", error.details() or "", responses)
    return Answer("OK", "", _texts(responses), responses)


def _texts(responses: Iterable[Any]) -> str:
    return "; ".join(response.pop("error_message") for response in responses if "error_message" in response)


def _as_document(message: Any) -> Any:
    document = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return _without_times(document)


def _without_times(document: Any) -> Any:
    """Without what depends on the clock alone."""
    if isinstance(document, dict):
        return {key: _without_times(value) for key, value in document.items() if key not in _TIMES}
    if isinstance(document, list):
        return [_without_times(each) for each in document]
    return document
