"""gRPC at its edges: deadlines, messages too large, bytes that are none, a server that goes down, ports."""

import contextlib
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from tests.fixtures import models
from tests.harness.commands import refusal
from tests.harness.raw_http import connect
from tests.harness.server_process import ServerProcess, serve, until, withstanding
from tests.harness.triton_grpc import ONE_ROW, Conversation, calling, given, repeating, write_repeat
from tritonclient.utils import InferenceServerException

INFER = "/inference.GRPCInferenceService/ModelInfer"


def asking(client: triton.InferenceServerClient, model: str, **how: Any) -> Any:
    return client.infer(model, [given("x", ONE_ROW)], **how)


def fails(client: triton.InferenceServerClient, model: str) -> int:
    (version,) = client.get_inference_statistics(model).model_stats
    return int(version.inference_stats.fail.count)


def test_a_deadline_that_passes_in_the_queue_costs_no_compute(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "slow", rows=1, delay_ms=200)
    with serve(tmp_path / "log", tmp_path / "models") as server, calling(server.grpc_address) as client:
        with ThreadPoolExecutor(8) as threads:
            first = [threads.submit(asking, client, "slow") for _ in range(6)]
            time.sleep(0.1)
            with pytest.raises(InferenceServerException) as caught:
                asking(client, "slow", client_timeout=0.2)
            assert caught.value.status() == "StatusCode.DEADLINE_EXCEEDED"
            for one in first:
                one.result(120)
        until(lambda: fails(client, "slow") == 1, lambda: "no failure was counted")
        (version,) = client.get_inference_statistics("slow").model_stats
        assert (version.execution_count, version.inference_count) == (6, 6)


def test_messages_too_large_are_refused(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo", rows=16)
    models.identity(tmp_path / "models", "wide", datatype="UINT8", dims="-1")
    log = tmp_path / "log"
    with serve(log, "--max-body-bytes", "1000000", tmp_path / "models") as server:
        with withstanding(server), calling(server.grpc_address) as client:
            huge = [given("x", np.zeros(20_000_000, np.uint8), "UINT8")]
            for compression in (None, "gzip"):
                with pytest.raises(InferenceServerException) as caught:
                    client.infer("wide", huge, compression_algorithm=compression)
                assert caught.value.status() == "StatusCode.RESOURCE_EXHAUSTED", caught.value
            fits = client.infer("wide", [given("x", np.ones(900_000, np.uint8), "UINT8")])
            assert fits.as_numpy("y").sum() == 900_000
            talk = Conversation(client)
            talk.ask("wide", [given("x", np.zeros(2_000_000, np.uint8), "UINT8")])
            assert talk.hear().status() == "StatusCode.RESOURCE_EXHAUSTED"
            talk.close()


def call_raw(server: ServerProcess, method: str, message: bytes) -> grpc.RpcError:
    with grpc.insecure_channel(server.grpc_address) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(method)(message, timeout=120)
        return caught.value


def test_bytes_that_are_no_message(serving: ServerProcess) -> None:
    with withstanding(serving):
        for message in (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", bytes(range(256))):
            error = call_raw(serving, INFER, message)
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "no message ModelInferRequest" in error.details()


def test_methods_that_are_not_there(serving: ServerProcess) -> None:
    error = call_raw(serving, "/inference.GRPCInferenceService/Guess", b"")
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "no RPC '/inference.GRPCInferenceService/Guess'" in error.details()


def test_the_health_protocol(serving: ServerProcess) -> None:
    with grpc.insecure_channel(serving.grpc_address) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert check(b"", timeout=120) == b"\x08\x01"
        assert check(b"\x0a\x03any", timeout=120) == b"\x08\x01"


def test_bytes_that_are_no_http2(serving: ServerProcess) -> None:
    port = int(serving.grpc_address.rpartition(":")[2])
    with withstanding(serving):
        for noise in (b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 100, b""):
            with connect(port) as plug:
                with contextlib.suppress(OSError):  # it may be closed before all is sent
                    plug.sendall(noise)
                    plug.shutdown(socket.SHUT_WR)
                    while plug.recv(65536):
                        pass


LEAVING = """
import os, sys, threading, time
import numpy as np
import tritonclient.grpc as triton
from tests.harness.triton_grpc import ONE_ROW, given, repeating

client = triton.InferenceServerClient(sys.argv[1])
heard = threading.Event()
client.start_stream(lambda result, error: (heard.set(), time.sleep(60)))
client.async_stream_infer("repeat", repeating(1000, 0.0, 100_000), request_id="left")
client.async_stream_infer("slow", [given("x", ONE_ROW)])
threading.Thread(target=client.infer, args=("slow", [given("x", ONE_ROW)]), daemon=True).start()
heard.wait(30)
time.sleep(0.2)
os._exit(0)
"""


def test_clients_that_die_in_the_middle(tmp_path: Path) -> None:
    """One leaves without a word while responses are on their way, another resets its connection."""
    root = tmp_path / "models"
    models.identity(root, "echo", rows=16)
    models.identity(root, "slow", rows=1, delay_ms=500)
    write_repeat(root)
    with serve(tmp_path / "log", root) as server, withstanding(server):
        for _ in range(3):
            subprocess.run([sys.executable, "-c", LEAVING, server.grpc_address], check=True, timeout=60)
        diary = root / "repeat" / "diary"
        until(lambda: diary.exists() and diary.read_text().count("left") == 3, lambda: "the model goes on")


def test_going_down_finishes_what_is_in_work(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "slow", rows=1, delay_ms=100)
    write_repeat(tmp_path / "models")
    with serve(tmp_path / "log", tmp_path / "models") as server, calling(server.grpc_address) as client:
        idle = Conversation(client)
        with calling(server.grpc_address) as other, ThreadPoolExecutor(8) as threads:
            talk = Conversation(other)
            talk.ask("repeat", repeating(20, 0.05, size=1))
            assert talk.indices(1) == [0]
            asked = [threads.submit(asking, other, "slow") for _ in range(5)]
            time.sleep(0.05)
            server.terminate()
            assert talk.indices(19) == list(range(1, 20))
            for one in asked:
                np.testing.assert_array_equal(one.result(120).as_numpy("y"), ONE_ROW)
            for stream in (idle, talk):
                assert stream.hear().status() == "StatusCode.UNAVAILABLE"
        assert server.wait() == 0
        assert "none cut off" in server.said()
        idle.close()


def test_what_takes_too_long_is_cut_off_and_named(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "endless", rows=1, delay_ms=60_000)
    log = tmp_path / "log"
    with serve(log, "--drain-timeout", "1", tmp_path / "models", status=1) as server:
        with calling(server.grpc_address) as client, ThreadPoolExecutor(1) as thread:
            asked = thread.submit(asking, client, "endless")
            time.sleep(0.3)
            server.terminate()
            with pytest.raises(InferenceServerException):
                asked.result(120)
            assert server.wait() == 1
    assert "cut off: gRPC /inference.GRPCInferenceService/ModelInfer from ipv4:127.0.0.1" in server.said()
    assert "Stopped: 0 requests answered, 1 cut off." in server.said()


def test_the_access_log_has_calls_too(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo", rows=16)
    lines = tmp_path / "lines"
    with serve(tmp_path / "log", "--access-log", lines, tmp_path / "models") as server:
        with calling(server.grpc_address) as client:
            asking(client, "echo")
    assert (
        '"method":"gRPC","path":"/inference.GRPCInferenceService/ModelInfer","status":0' in lines.read_text()
    )


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo", rows=16)
    with serve(tmp_path / "log", "--no-grpc", tmp_path / "models") as server:
        assert server.is_ready()
    assert "gRPC" not in server.said()


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo", rows=16)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ("serve", tmp_path / "models", "--http-port", "0", "--grpc-port", str(port))
        said = refusal(*words)
    assert f"Cannot listen on 127.0.0.1 port {port}" in said
    assert "--grpc-port" in said
