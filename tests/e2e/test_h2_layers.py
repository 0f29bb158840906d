"""Both layers of gRPC, ours and grpcio's, seen by the real client: it cannot tell which one answers."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from tests.fixtures import models
from tests.harness.server_process import ServerProcess, serve
from tests.harness.triton_grpc import ONE_ROW, Conversation, calling, given, repeating, write_repeat
from tritonclient.utils import InferenceServerException

SERVICE = "/inference.GRPCInferenceService/"
INFER, STREAM = SERVICE + "ModelInfer", SERVICE + "ModelStreamInfer"
LAYERS = ("own", "grpcio")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ServerProcess]]:
    """One of each, over the same models."""
    root = tmp_path_factory.mktemp("layers") / "models"
    models.identity(root, "echo", rows=16)
    models.identity(root, "wide", datatype="UINT8", dims="-1")
    models.identity(root, "slow", rows=1, delay_ms=300)
    write_repeat(root)
    logs = tmp_path_factory.mktemp("logs")
    limits = ("--max-body-bytes", "40000000", "--max-connections", "8")
    with serve(logs / "own", *limits, root) as own:
        with serve(logs / "grpcio", *limits, "--grpc-layer", "grpcio", root) as other:
            yield {"own": own, "grpcio": other}


@pytest.fixture(params=LAYERS)
def server(request: pytest.FixtureRequest, servers: dict[str, ServerProcess]) -> ServerProcess:
    return servers[request.param]


def request_of(model: str, array: Any, datatype: str = "FP32") -> bytes:
    message = triton.service_pb2.ModelInferRequest(model_name=model, raw_input_contents=[array.tobytes()])
    message.inputs.add(name="x", datatype=datatype, shape=array.shape)
    return bytes(message.SerializeToString())


ECHO = request_of("echo", ONE_ROW)
SLOW = request_of("slow", ONE_ROW)
HUGE = request_of("wide", np.zeros(41_000_000, np.uint8), "UINT8")


def failing(work: Callable[[], Any]) -> tuple[Any, str]:
    with pytest.raises(grpc.RpcError) as caught:
        work()
    return caught.value.code(), caught.value.details()


def too_many(channel: grpc.Channel) -> list[tuple[Any, str]]:
    infer = channel.unary_unary(INFER)
    asked = [infer.future(SLOW, timeout=60) for _ in range(12)]
    errors = [one.exception() for one in asked]
    return [(error.code(), error.details()) for error in errors if error is not None]


def slowly() -> Iterator[bytes]:
    """A client that does not say that it has sent all."""
    yield SLOW
    time.sleep(1)


def cancelled(channel: grpc.Channel) -> tuple[Any, str]:
    call = channel.unary_unary(INFER).future(SLOW)
    call.cancel()
    return call.code(), call.details()


BY_CLIENT: dict[str, Callable[[grpc.Channel], Any]] = {
    "unknown method": lambda c: failing(lambda: c.unary_unary(SERVICE + "Guess")(b"")),
    "unknown service": lambda c: failing(lambda: c.unary_unary("/a.B/C")(b"")),
    "no message": lambda c: failing(lambda: c.unary_unary(INFER)(b"\xff")),
    "no model": lambda c: failing(lambda: c.unary_unary(INFER)(request_of("nobody", ONE_ROW))),
    "wrong shape": lambda c: failing(
        lambda: c.unary_unary(INFER)(request_of("echo", np.zeros((1, 5), np.float32)))
    ),
    "too large": lambda c: failing(lambda: c.unary_unary(INFER)(HUGE)),
    "too large when unpacked": lambda c: failing(
        lambda: c.unary_unary(INFER)(HUGE, compression=grpc.Compression.Gzip)
    ),
    "too large on a stream": lambda c: failing(lambda: list(c.stream_stream(STREAM)(iter([HUGE])))),
    "late": lambda c: failing(lambda: c.unary_unary(INFER)(SLOW, timeout=0.1))[0],
    "late stream": lambda c: failing(lambda: list(c.stream_stream(STREAM)(slowly(), timeout=0.1)))[0],
    "too many": too_many,
    "cancelled": cancelled,
    "an answer": lambda c: c.unary_unary(INFER)(ECHO),
    "two requests to a unary method": lambda c: c.stream_unary(INFER)(iter([ECHO, SLOW])),
    "an empty stream": lambda c: list(c.stream_stream(STREAM)(iter([]))),
    "packed by gzip": lambda c: c.unary_unary(INFER)(ECHO, compression=grpc.Compression.Gzip),
    "packed by deflate": lambda c: c.unary_unary(INFER)(ECHO, compression=grpc.Compression.Deflate),
    "metadata": lambda c: c.unary_unary(INFER)(ECHO, metadata=(("a", "b"), ("a", "c"), ("d-bin", b"\0\xff"))),
}


@pytest.mark.parametrize("what", BY_CLIENT)
def test_a_client_sees_the_same(servers: dict[str, ServerProcess], what: str) -> None:
    said = []
    for layer in LAYERS:
        options = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(servers[layer].grpc_address, options) as channel:
            said.append(BY_CLIENT[what](channel))
    assert said[0] == said[1]


def test_sixteen_mebibytes_both_ways(server: ServerProcess) -> None:
    array = np.random.default_rng(0).integers(0, 256, 16 * 2**20, np.uint8)
    with calling(server.grpc_address) as client:
        for _ in range(3):
            result = client.infer("wide", [given("x", array, "UINT8")])
            np.testing.assert_array_equal(result.as_numpy("y"), array)


def test_many_sizes_at_once(server: ServerProcess) -> None:
    sizes = [0, 1, 1000, 16_000, 16_384, 65_535, 65_536, 300_000, 1_000_000]

    def ask(turn: int) -> None:
        array = np.full(sizes[turn % len(sizes)], turn % 256, np.uint8)
        result = client.infer("wide", [given("x", array, "UINT8")])
        np.testing.assert_array_equal(result.as_numpy("y"), array)

    with calling(server.grpc_address) as client, ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(ask, turn) for turn in range(200)]:
            done.result(120)


def test_large_messages_on_streams(server: ServerProcess) -> None:
    array = np.random.default_rng(1).integers(0, 256, 5 * 2**20, np.uint8)
    with calling(server.grpc_address) as client:
        talk = Conversation(client)
        for _ in range(6):
            talk.ask("wide", [given("x", array, "UINT8")])
            np.testing.assert_array_equal(talk.hear().as_numpy("y"), array)
        talk.close()


def test_several_streams_beside_calls(server: ServerProcess) -> None:
    with calling(server.grpc_address) as client, calling(server.grpc_address) as other:
        talk = Conversation(client)
        talk.ask("repeat", repeating(50, 0.005, size=1))
        for turn in range(50):
            row = np.full((1, 4), turn, np.float32)
            for one in (client, other):
                np.testing.assert_array_equal(one.infer("echo", [given("x", row)]).as_numpy("y"), row)
        assert talk.indices(50) == list(range(50))
        talk.close()


def test_compressed_answers(tmp_path: Path) -> None:
    """Every layer packs answers where the operator wishes; the client unpacks them unseen."""
    models.identity(tmp_path / "models", "wide", datatype="UINT8", dims="-1")
    for layer in LAYERS:
        words = ("--grpc-layer", layer, "--grpc-compression", "gzip", tmp_path / "models")
        with serve(tmp_path / "log", *words) as server, calling(server.grpc_address) as client:
            for size in (1, 100_000, 1_000_000):
                array = np.zeros(size, np.uint8)
                for algorithm in (None, "gzip", "deflate"):
                    result = client.infer(
                        "wide", [given("x", array, "UINT8")], compression_algorithm=algorithm
                    )
                    np.testing.assert_array_equal(result.as_numpy("y"), array)


def test_going_down_under_load_fails_nobody(tmp_path: Path) -> None:
    """Calls that the server had let in are answered; the client is told of all others that they did not begin."""
    models.identity(tmp_path / "models", "echo", rows=16)
    answered = threading.Semaphore(0)

    def ask_until_refused(channel: grpc.Channel) -> str:
        try:
            while True:
                channel.unary_unary(INFER)(ECHO, timeout=120)
                answered.release()
        except grpc.RpcError as error:
            return str(error.code().name)

    with serve(tmp_path / "log", tmp_path / "models") as server:
        with grpc.insecure_channel(server.grpc_address) as channel, ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(ask_until_refused, channel) for _ in range(8)]
            for _ in range(100):
                answered.acquire(timeout=120)
            server.terminate()
            ends = [one.result(120) for one in asked]
        assert server.wait() == 0
        assert set(ends) == {"UNAVAILABLE"}
        assert " 0 cut off" in server.said()


def test_the_clients_own_library_reports_a_slow_server(server: ServerProcess) -> None:
    with calling(server.grpc_address) as client:
        with pytest.raises(InferenceServerException) as caught:
            client.infer("slow", [given("x", ONE_ROW)], client_timeout=0.05)
        assert caught.value.status() == "StatusCode.DEADLINE_EXCEEDED"


@pytest.mark.parametrize("layer", LAYERS)
def test_the_access_log_tells_a_deadline_from_a_change_of_mind(tmp_path: Path, layer: str) -> None:
    models.identity(tmp_path / "models", "slow", rows=1, delay_ms=2000)
    log = tmp_path / "lines"
    words = ("--grpc-layer", layer, "--access-log", log, tmp_path / "models")

    def logged() -> list[tuple[str, int]]:
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [(line["path"], line["status"]) for line in lines if line["method"] == "gRPC"]

    def newest(count: int) -> tuple[str, int] | None:
        """The line behind so many; None for a call that left before it began."""
        gives_up = time.monotonic() + 5
        while len(lines := logged()) <= count and time.monotonic() < gives_up:
            time.sleep(0.02)
        return lines[-1] if len(lines) > count else None

    def patient(ask: Callable[[float], Any]) -> None:
        call = ask(30)
        time.sleep(0.5)
        call.cancel()

    def impatient(ask: Callable[[float], Any]) -> None:
        assert ask(1).code() == grpc.StatusCode.DEADLINE_EXCEEDED

    with serve(tmp_path / "log", *words) as server, grpc.insecure_channel(server.grpc_address) as channel:
        grpc.channel_ready_future(channel).result(120)
        infer, stream = channel.unary_unary(INFER), channel.stream_stream(STREAM)
        asks: dict[str, Callable[[float], Any]] = {
            INFER: lambda timeout: infer.future(SLOW, timeout=timeout),
            STREAM: lambda timeout: stream(slowly(), timeout=timeout),
        }
        for (path, ask), (leave, status) in product(asks.items(), ((patient, 1), (impatient, 4))):
            seen: list[tuple[str, int] | None] = []
            while (path, status) not in seen:
                # A stall of the machine makes a deadline look like a change of mind; not every time.
                assert len(seen) < 5, f"{path}, {status}: {seen}\n{server.said()}"
                count = len(logged())
                leave(ask)
                seen.append(newest(count))
