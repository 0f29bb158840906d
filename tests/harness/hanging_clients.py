"""More scenes as in `hanging`: those whose clients, files or logs hang."""

import os
import socket
import time

import tritonclient.grpc as triton
from tests.fixtures import models
from tests.harness.certificates import pair
from tests.harness.h2_peer import Peer, data, prefixed
from tests.harness.hanging import DECOUPLED, Act, Stage, asked, endless, whole
from tests.harness.ports import free_port
from tests.harness.raw_http import get, infer_request, tensor
from tests.harness.server_process import ServerProcess, until

SERVICE = "/inference.GRPCInferenceService/"
INFER, STREAM = SERVICE + "ModelInfer", SERVICE + "ModelStreamInfer"
NOISY = "[print('x' * 1000) for _ in range(20)]"


def full_pipe(stage: Stage) -> int:
    """A pipe that nobody reads, to the brim; the end to write to."""
    reading, writing = os.pipe()
    stage.kept.callback(os.close, reading)
    stage.kept.callback(os.close, writing)
    fill(writing)
    return writing


def full_fifo(stage: Stage, name: str) -> str:
    """The same with a name."""
    path = stage.folder / name
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    stage.kept.callback(os.close, descriptor)
    fill(descriptor)
    return str(path)


def fill(descriptor: int) -> None:
    os.set_blocking(descriptor, False)
    try:
        while os.write(descriptor, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(descriptor, True)


def many(server: ServerProcess, count: int = 100) -> None:
    """Requests that are answered."""
    assert {server.ask(asked()).status for _ in range(count)} == {200}


# -- clients over HTTP


def body_never_comes(stage: Stage) -> Act:
    models.identity(stage.models, "echo", rows=16)
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n{"
    chunk = (
        b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"
    )

    def act(server: ServerProcess) -> None:
        stage.send(server, head, chunk)
        time.sleep(0.2)

    return act


def head_never_ends(stage: Stage) -> Act:
    models.identity(stage.models, "echo", rows=16)

    def act(server: ServerProcess) -> None:
        stage.send(server, b"", b"GET /v2 HTTP/1.1\r\nHost: local", get("/v2") * 3 + b"POST ")
        time.sleep(0.2)

    return act


def small_plug(stage: Stage, port: int) -> socket.socket:
    plug = stage.kept.enter_context(socket.socket())
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plug.connect(("127.0.0.1", port))
    return plug


def nobody_reads_the_answer(stage: Stage) -> Act:
    models.identity(stage.models, "wide", datatype="FP32", dims="-1")
    request = infer_request("wide", tensor("x", [0.5] * 3_000_000, [3_000_000]))

    def act(server: ServerProcess) -> None:
        small_plug(stage, server.port).sendall(request)
        time.sleep(1.0)

    return act


def nobody_reads_the_metrics(stage: Stage) -> Act:
    models.identity(stage.models, "echo", rows=16)
    stage.words += ["--metrics-port", "0"]

    def act(server: ServerProcess) -> None:
        until(lambda: "Metrics on " in server.said(), server.said)
        port = int(server.said().partition("Metrics on http://127.0.0.1:")[2].partition("/")[0])
        plug = small_plug(stage, port)
        plug.sendall(get("/metrics") * 30)
        time.sleep(0.3)

    return act


def handshakes_stay_half_done(stage: Stage) -> Act:
    models.identity(stage.models, "echo", rows=16)
    certificate, key = pair(stage.folder, "server")
    stage.words = ["--grpc-port", "0"]
    for listener in ("http", "grpc"):
        stage.words += [f"--{listener}-tls-certificate", certificate, f"--{listener}-tls-key", key]

    def act(server: ServerProcess) -> None:
        for port in (server.port, grpc_port(server)):
            for said in (b"", b"\x16\x03\x01\x02\x00\x01"):
                stage.plug(port).sendall(said)
        time.sleep(0.2)

    return act


# -- clients over gRPC


def grpc_port(server: ServerProcess) -> int:
    return int(server.grpc_address.rpartition(":")[2])


def over_grpc(
    stage: Stage, server: ServerProcess, path: str, *messages: bytes, ends: bool, window: int = 65535
) -> Peer:
    """Say so much on one stream, and read nothing."""
    peer = Peer(window)
    plug = stage.plug(grpc_port(server))
    plug.sendall(peer.greeting() + peer.open(1, path) + data(1, b"".join(messages), ends))
    time.sleep(0.3)
    return peer


def message(model: str, name: str, datatype: str, shape: list[int], raw: bytes) -> bytes:
    request = triton.service_pb2.ModelInferRequest(model_name=model, raw_input_contents=[raw])
    request.inputs.add(name=name, datatype=datatype, shape=shape)
    return prefixed(request.SerializeToString())


ECHO = message("echo", "x", "FP32", [1, 4], bytes(16))
ONE = message("m", "IN", "INT32", [1, 1], bytes(4))


def with_echo(stage: Stage) -> None:
    models.identity(stage.models, "echo", rows=16)
    stage.words = ["--grpc-port", "0"]


def grpc_message_never_comes(stage: Stage) -> Act:
    with_echo(stage)
    return lambda server: [over_grpc(stage, server, path, ECHO[:20], ends=False) for path in (INFER, STREAM)]


def grpc_stream_is_idle(stage: Stage) -> Act:
    with_echo(stage)
    return lambda server: [over_grpc(stage, server, STREAM, *said, ends=False) for said in ((), (ECHO,))]


def grpc_greeting_never_ends(stage: Stage) -> Act:
    with_echo(stage)

    def act(server: ServerProcess) -> None:
        for said in (b"", b"PRI * HTTP/2.0\r\n", Peer().greeting()):
            stage.plug(grpc_port(server)).sendall(said)
        time.sleep(0.2)

    return act


def grpc_answer_is_not_read(stage: Stage) -> Act:
    with_echo(stage)
    return lambda server: over_grpc(stage, server, INFER, ECHO, ends=True, window=0)


def grpc_stream_is_not_read(stage: Stage) -> Act:
    stage.python(endless(stage), config=DECOUPLED)
    stage.words = ["--grpc-port", "0"]

    def act(server: ServerProcess) -> None:
        over_grpc(stage, server, STREAM, ONE, ends=False)
        stage.await_hang()

    return act


def grpc_call_hangs(stage: Stage) -> Act:
    stage.python(stage.sleep)
    stage.words = ["--grpc-port", "0"]

    def act(server: ServerProcess) -> None:
        over_grpc(stage, server, INFER, ONE, ends=True)
        stage.await_hang()

    return act


# -- files and logs


def nobody_reads_what_it_prints(stage: Stage) -> Act:
    stage.python(NOISY)
    stage.outputs = full_pipe(stage), full_pipe(stage)
    stage.port = free_port()
    return many


def nobody_reads_its_log(stage: Stage) -> Act:
    stage.python(NOISY)
    stage.outputs = -1, full_pipe(stage)
    return many


def nobody_reads_the_access_log(stage: Stage) -> Act:
    stage.python("pass")
    stage.words += ["--access-log", full_fifo(stage, "access")]
    return many


def nobody_reads_the_traces(stage: Stage) -> Act:
    stage.python("pass")
    stage.words += [
        "--trace-file",
        full_fifo(stage, "traces"),
        "--trace-levels",
        "timestamps",
        "--trace-rate",
        "1",
    ]
    return many


def collector_does_not_answer(stage: Stage) -> Act:
    stage.python("pass")
    listening = stage.kept.enter_context(socket.create_server(("127.0.0.1", 0)))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1/traces"
    stage.words += [
        "--trace-endpoint",
        url,
        "--trace-levels",
        "timestamps",
        "--trace-rate",
        "1",
        "--trace-delay",
        "0.1",
    ]
    return lambda server: (many(server), time.sleep(0.3))


def keys_become_a_pipe(stage: Stage) -> Act:
    models.identity(stage.models, "sleeps", delay_ms=10, datatype="INT64", dims="1")
    file = stage.folder / "keys.toml"
    file.write_text('[[key]]\nname = "k"\nsha256 = "%s"\nscopes = ["infer"]\n' % ("0" * 64))
    stage.words += ["--keys", file]

    def act(server: ServerProcess) -> None:
        file.unlink()
        os.mkfifo(file)
        stage.send(server, whole("sleeps"))
        time.sleep(1.5)

    return act


def configuration_is_a_pipe(stage: Stage) -> None:
    os.mkfifo(stage.folder / "config.toml")
    stage.words += ["--config", stage.folder / "config.toml"]


def keys_are_a_pipe(stage: Stage) -> None:
    models.identity(stage.models, "echo", rows=16)
    os.mkfifo(stage.folder / "keys.toml")
    stage.words += ["--keys", stage.folder / "keys.toml"]


def certificate_is_a_pipe(stage: Stage) -> None:
    models.identity(stage.models, "echo", rows=16)
    os.mkfifo(stage.folder / "pem")
    stage.words += ["--http-tls-certificate", stage.folder / "pem", "--http-tls-key", stage.folder / "pem"]
