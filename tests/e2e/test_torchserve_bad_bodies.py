"""Bad bodies sent to TorchServe's inference routes: each is answered rightly, or cut off; neighbours are answered all
the while, and nothing of it is left.
"""

import json
import socket
from collections.abc import Iterator

import grpc
import pytest
from tests.fixtures import models
from tests.harness.raw_http import connect, get, post, read_answer
from tests.harness.server_process import SECONDS, ServerProcess, serve_handlers, until, withstanding
from tests.harness.torchserve_command import TorchServeFolder
from tests.harness.torchserve_management import INFERENCE

from trivium.servers.torchserve.wire.grpc import PING, SCOPES, STREAM, STREAM_2
from trivium.wires.v2.grpc import SCOPES as OPEN_INFERENCE

TELLS = """
import json
def handle(data, context):
    if data is None:
        return None
    return [json.dumps({name: type(value).__name__ for name, value in row.items()}) for row in data]
"""
LIMIT = 100_000
BODY = "application/json"
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=edge"
DISPOSITION = b'Content-Disposition: form-data; name="f%d"; filename="a.txt"\r\n'
LONG_HEADER = b"--edge\r\n" + b"X: " + b"x" * 20_000


def part(number: int, data: bytes = b"1") -> bytes:
    return b"--edge\r\n" + DISPOSITION % number + b"\r\n" + data + b"\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("torchserve")
    models.identity(root / "models", "echo", rows=16)
    tells = TorchServeFolder(root).model("tells", TELLS)
    words = ("--profile", "torchserve-command", "--torchserve-open-inference", "--max-body-bytes", str(LIMIT))
    with serve_handlers(root / "log", *words, root / "models", tells) as serving:
        until(lambda: serving.ask(post("/predictions/tells", b"")).status == 200, serving.said)
        yield serving


def sent(body: bytes, kind: str, path: str = "/predictions/tells") -> bytes:
    return post(path, body, f"Content-Type: {kind}\r\n".encode())


def is_closed(plug: socket.socket) -> bool:
    """Has the other side closed the connection, with an end or a reset?"""
    try:
        return plug.recv(1) == b""
    except ConnectionResetError:
        return True


BAD = {
    "ten thousand fields": (sent(b"&".join(b"f%d=1" % i for i in range(10_000)), FORM), 413, ""),
    "ten thousand fields of one name": (sent(b"f=1&" * 10_000, FORM), 413, ""),
    "ten thousand ampersands": (sent(b"&" * 10_000, FORM), 413, ""),
    "a thousand parts and one": (sent(b"".join(map(part, range(1001))) + b"--edge--\r\n", PARTS), 413, ""),
    "a part without an end": (sent(part(1)[:-2], PARTS), 400, "BadRequestException"),
    "parts without the last line": (sent(part(1) + part(2), PARTS), 400, "BadRequestException"),
    "a part without a name": (
        sent(b"--edge\r\nContent-Disposition: form-data\r\n\r\n1\r\n--edge--\r\n", PARTS),
        400,
        "BadRequestException",
    ),
    "a part whose header does not end": (sent(LONG_HEADER, PARTS), 400, "BadRequestException"),
    "another boundary": (sent(b"--other\r\n\r\n\r\n--other--\r\n", PARTS), 400, "BadRequestException"),
    "no part at all": (sent(b"", PARTS), 400, "BadRequestException"),
    "a boundary that is none": (
        sent(b"x", "multipart/form-data; boundary=" + "x" * 100),
        400,
        "BadRequestException",
    ),
    "a query of ten thousand arguments": (
        post("/tells/predict?" + "a&" * 3500, b""),
        400,
        "BadRequestException",
    ),
    "a name that is not UTF-8": (post("/predictions/%ff", b""), 400, "BadRequestException"),
    "no HTTP": (b"POST\r\n\r\n", 400, "BadRequestException"),
    "two lengths": (
        b"POST /predictions/tells HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        400,
        "BadRequestException",
    ),
    "chunks that are none": (
        b"POST /predictions/tells HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        400,
        "BadRequestException",
    ),
    "too large by its length": (post("/predictions/tells", bytes(LIMIT + 1)), 413, ""),
    "too large by its chunks": (
        b"POST /predictions/tells HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"%x\r\n%b\r\n2\r\nab\r\n0\r\n\r\n" % (LIMIT - 1, bytes(LIMIT - 1)),
        413,
        "",
    ),
    "too large where its client asks first": (
        b"POST /predictions/tells HTTP/1.1\r\nHost: h\r\nContent-Length: 100001\r\nExpect: 100-continue\r\n\r\n",
        413,
        "",
    ),
    "JSON that a model of tensors cannot read": (
        sent(b'{"inputs": [', BODY, "/v2/models/echo/infer"),
        400,
        "BadRequestException",
    ),
    "JSON nested without end": (
        sent(b"[" * 90_000, BODY, "/v2/models/echo/infer"),
        400,
        "BadRequestException",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_refused_and_its_connection_closed(server: ServerProcess, name: str) -> None:
    request, status, kind = BAD[name]
    with withstanding(server):
        with connect(server.port) as plug:
            plug.sendall(request)
            answer = read_answer(plug)
            assert (answer.status, answer.fields["connection"]) == (status, "close"), answer
            if status == 413:
                assert set(answer.fields) == {"content-length", "connection"}
                assert answer.body == b""
            else:
                assert answer.document["type"] == kind
                assert answer.document["code"] == status
                assert len(answer.document["message"]) > 20
            assert is_closed(plug)
        if status == 413:
            until(lambda: "A request is answered with 413: " in server.said(), server.said)


@pytest.mark.parametrize(
    ("body", "kind", "row"),
    [
        (b'{"a": [1', BODY, {"body": "bytearray"}),
        (b"", BODY, {"body": "bytearray"}),
        (b"[" * 90_000, BODY, {"body": "bytearray"}),
        (b"1" * 90_000, BODY, {"body": "bytearray"}),
        (b'{"a": NaN}', BODY, {"body": "dict"}),
        (b"\xff\xfe", "text/plain", {"body": "bytearray"}),
        (b"x", "multipart/form-data", {"body": "bytearray"}),
        (b"x", "nonsense", {"body": "bytearray"}),
        (b"", FORM, {}),
        (b"x", FORM, {}),
        (b"%zz=%ff&&a", FORM, {"%zz": "bytearray"}),
        (b"&".join(b"f%d=1" % i for i in range(1000)), FORM, {f"f{i}": "bytearray" for i in range(1000)}),
    ],
)
def test_what_a_handler_can_be_given_it_is_given(
    server: ServerProcess, body: bytes, kind: str, row: dict[str, str]
) -> None:
    with withstanding(server):
        answer = server.ask(sent(body, kind))
        assert (answer.status, json.loads(answer.body)) == (200, row), answer


@pytest.mark.parametrize("path", ["/predictions/tells", "/v1/models/tells:predict", "/tells/predict"])
def test_a_client_that_leaves_in_the_middle_leaves_nothing(server: ServerProcess, path: str) -> None:
    with withstanding(server):
        for request in (post(path, bytes(90_000)), sent(part(1), PARTS, path), get(path)):
            with connect(server.port) as plug:
                plug.sendall(request[: len(request) // 2])


# -- over gRPC ---------------------------------------------------------------------------------------------

PACKAGE = "/org.pytorch.serve.grpc.openinference.GRPCInferenceService/"
READ = ("ModelReady", "ModelMetadata", "ModelInfer")
"""Those of TorchServe's open inference service whose messages have fields."""

RPCS = [
    *(method for method in SCOPES if method != PING),
    *(PACKAGE + name for name in READ if f"/inference.GRPCInferenceService/{name}" in OPEN_INFERENCE),
]
NO_MESSAGES = (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", bytes(range(256)), b"\x0b" * 2000, b"\x0a\x02x")


@pytest.mark.parametrize("method", RPCS)
def test_bytes_that_are_no_message_are_refused_by_each_rpc(server: ServerProcess, method: str) -> None:
    with withstanding(server), grpc.insecure_channel(server.grpc_address) as channel:
        for message in NO_MESSAGES:
            code, text = ended(channel, method, message)
            assert code is grpc.StatusCode.INVALID_ARGUMENT, (message, text)
            assert "no message" in text or "The message is no" in text
            assert method.rpartition("/")[2].removesuffix("2").removeprefix("Stream")[:7] in text


def ended(channel: grpc.Channel, method: str, message: bytes) -> tuple[grpc.StatusCode, str]:
    """How a call ends that sends this; of a stream of requests how its answer does: the call outlives it."""
    try:
        if method == STREAM_2:
            call = channel.stream_stream(method, None, INFERENCE["PredictionResponse"].FromString)
            (answer,) = call(iter([message]), timeout=SECONDS)
            known = {code.value[0]: code for code in grpc.StatusCode}
            return known[answer.status.code], answer.status.message
        kind = channel.unary_stream if method == STREAM else channel.unary_unary
        found = kind(method)(message, timeout=SECONDS)
        pytest.fail(f"{method} has answered {list(found)!r}")
    except grpc.RpcError as error:
        return error.code(), error.details()


def test_a_ping_has_no_fields_and_reads_none(server: ServerProcess) -> None:
    with withstanding(server), grpc.insecure_channel(server.grpc_address) as channel:
        for message in (b"", *NO_MESSAGES):
            assert b"Healthy" in channel.unary_unary(PING)(message, timeout=SECONDS)
