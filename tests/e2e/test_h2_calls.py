"""Our HTTP/2 layer, seen by grpc's own client: answers, refusals, large messages, streams, and going down."""

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
from tests.harness.echo_rpc import SERVER_STREAM, ScriptedCore, echo_server
from tests.harness.server_process import ServerProcess, serve
from tests.harness.triton_grpc import ONE_ROW, Conversation, calling, given, repeating, write_repeat
from tritonclient.utils import InferenceServerException

SERVICE = "/inference.GRPCInferenceService/"
INFER, STREAM = SERVICE + "ModelInfer", SERVICE + "ModelStreamInfer"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One for all calls that leave it as it is."""
    root = tmp_path_factory.mktemp("calls") / "models"
    models.identity(root, "echo", rows=16)
    models.identity(root, "wide", datatype="UINT8", dims="-1")
    models.identity(root, "slow", rows=1, delay_ms=300)
    write_repeat(root)
    limits = ("--max-body-bytes", "40000000", "--max-connections", "8")
    with serve(tmp_path_factory.mktemp("logs") / "log", *limits, root) as serving:
        yield serving


def channel_to(server: ServerProcess) -> grpc.Channel:
    return grpc.insecure_channel(server.grpc_address, [("grpc.max_send_message_length", -1)])


def request_of(model: str, array: Any, datatype: str = "FP32") -> bytes:
    message = triton.service_pb2.ModelInferRequest(model_name=model, raw_input_contents=[array.tobytes()])
    message.inputs.add(name="x", datatype=datatype, shape=array.shape)
    return bytes(message.SerializeToString())


ECHO = request_of("echo", ONE_ROW)
SLOW = request_of("slow", ONE_ROW)
HUGE = request_of("wide", np.zeros(41_000_000, np.uint8), "UINT8")


def slowly() -> Iterator[bytes]:
    """A client that does not say that it has sent all."""
    yield SLOW
    time.sleep(1)


Code = grpc.StatusCode
ROUTES = (
    "those of the Open Inference Protocol begin with /inference.GRPCInferenceService/, and the health check is "
    "/grpc.health.v1.Health/Check."
)
TOO_LARGE = "SERVER: Received message larger than max (41000029 vs. 40000000)"

REFUSALS: dict[str, tuple[Callable[[grpc.Channel], Any], Any, str]] = {
    "unknown method": (
        lambda c: c.unary_unary(SERVICE + "Guess")(b""),
        Code.UNIMPLEMENTED,
        f"There is no RPC '{SERVICE}Guess' here; {ROUTES}",
    ),
    "unknown service": (
        lambda c: c.unary_unary("/a.B/C")(b""),
        Code.UNIMPLEMENTED,
        f"There is no RPC '/a.B/C' here; {ROUTES}",
    ),
    "no message": (
        lambda c: c.unary_unary(INFER)(b"\xff"),
        Code.INVALID_ARGUMENT,
        "The 1 bytes of the request are no message ModelInferRequest",
    ),
    "no model": (
        lambda c: c.unary_unary(INFER)(request_of("nobody", ONE_ROW)),
        Code.NOT_FOUND,
        "There is no model 'nobody'. There are: echo, repeat, slow, wide.",
    ),
    "wrong shape": (
        lambda c: c.unary_unary(INFER)(request_of("echo", np.zeros((1, 5), np.float32))),
        Code.INVALID_ARGUMENT,
        "Model 'echo' got shape [1,5] for input 'x'",
    ),
    "too large": (lambda c: c.unary_unary(INFER)(HUGE), Code.RESOURCE_EXHAUSTED, TOO_LARGE),
    "too large when unpacked": (
        lambda c: c.unary_unary(INFER)(HUGE, compression=grpc.Compression.Gzip),
        Code.RESOURCE_EXHAUSTED,
        "Decompressed message larger than max",
    ),
    "too large on a stream": (
        lambda c: list(c.stream_stream(STREAM)(iter([HUGE]))),
        Code.RESOURCE_EXHAUSTED,
        TOO_LARGE,
    ),
    "late": (lambda c: c.unary_unary(INFER)(SLOW, timeout=0.1), Code.DEADLINE_EXCEEDED, ""),
    "late stream": (
        lambda c: list(c.stream_stream(STREAM)(slowly(), timeout=0.1)),
        Code.DEADLINE_EXCEEDED,
        "",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_is_a_code_and_its_text(server: ServerProcess, what: str) -> None:
    ask, code, text = REFUSALS[what]
    with channel_to(server) as channel, pytest.raises(grpc.RpcError) as caught:
        ask(channel)
    assert caught.value.code() is code
    assert caught.value.details().startswith(text)


def test_more_calls_than_are_allowed(tmp_path: Path) -> None:
    """On a server of its own: a call that its client has just given up may still be counted on the others' one."""
    models.identity(tmp_path / "models", "slow", rows=1, delay_ms=300)
    with (
        serve(tmp_path / "log", "--max-connections", "8", tmp_path / "models") as server,
        channel_to(server) as channel,
    ):
        infer = channel.unary_unary(INFER)
        asked = [infer.future(SLOW, timeout=60) for _ in range(12)]
        errors = [one.exception() for one in asked]
    refused = [(error.code(), error.details()) for error in errors if error is not None]
    assert refused == [(Code.RESOURCE_EXHAUSTED, "Concurrent RPC limit exceeded!")] * 4


def test_a_call_that_its_client_cancels(server: ServerProcess) -> None:
    with channel_to(server) as channel:
        call = channel.unary_unary(INFER).future(SLOW)
        call.cancel()
        assert call.code() is Code.CANCELLED


METADATA = (("a", "b"), ("a", "c"), ("d-bin", b"\0\xff"))
WAYS: dict[str, Callable[[grpc.Channel], bytes]] = {
    "two requests to a unary method": lambda c: c.stream_unary(INFER)(iter([ECHO, SLOW])),
    "packed by gzip": lambda c: c.unary_unary(INFER)(ECHO, compression=grpc.Compression.Gzip),
    "packed by deflate": lambda c: c.unary_unary(INFER)(ECHO, compression=grpc.Compression.Deflate),
    "metadata": lambda c: c.unary_unary(INFER)(ECHO, metadata=METADATA),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_answer_is_the_same_however_it_is_asked(server: ServerProcess, way: str) -> None:
    with channel_to(server) as channel:
        answer = channel.unary_unary(INFER)(ECHO)
        parsed = triton.service_pb2.ModelInferResponse.FromString(answer)
        assert parsed.raw_output_contents == [ONE_ROW.tobytes()]
        assert WAYS[way](channel) == answer


def test_an_empty_stream_has_no_answer(server: ServerProcess) -> None:
    with channel_to(server) as channel:
        assert list(channel.stream_stream(STREAM)(iter([]))) == []


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
    """Answers are packed where the operator wishes; the client unpacks them unseen."""
    models.identity(tmp_path / "models", "wide", datatype="UINT8", dims="-1")
    words = ("--grpc-compression", "gzip", tmp_path / "models")
    with serve(tmp_path / "log", *words) as server, calling(server.grpc_address) as client:
        for size in (1, 100_000, 1_000_000):
            array = np.zeros(size, np.uint8)
            for algorithm in (None, "gzip", "deflate"):
                result = client.infer("wide", [given("x", array, "UINT8")], compression_algorithm=algorithm)
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
        assert " none cut off" in server.said()


def test_the_clients_own_library_reports_a_slow_server(server: ServerProcess) -> None:
    with calling(server.grpc_address) as client:
        with pytest.raises(InferenceServerException) as caught:
            client.infer("slow", [given("x", ONE_ROW)], client_timeout=0.05)
        assert caught.value.status() == "StatusCode.DEADLINE_EXCEEDED"


def test_the_access_log_tells_a_deadline_from_a_change_of_mind(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "slow", rows=1, delay_ms=2000)
    log = tmp_path / "lines"
    words = ("--access-log", log, tmp_path / "models")

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


Streams = tuple[Callable[..., Any], ScriptedCore]


@pytest.fixture(scope="module")
def streams() -> Iterator[Streams]:
    """A server stream of a service of the tests' own, and the core behind it."""
    with echo_server() as (address, core), grpc.insecure_channel(address) as channel:
        yield channel.unary_stream(SERVER_STREAM), core


def until_cancelled(core: ScriptedCore) -> str:
    """The code that the newest request in work was cancelled with."""
    gives_up = time.monotonic() + 60
    while (why := core.tickets[-1].cancelled) is None:
        assert time.monotonic() < gives_up, "it was not cancelled"
        time.sleep(0.01)
    return why.code.name


def test_a_server_stream_has_several_answers(streams: Streams) -> None:
    ask, core = streams
    answers = ask(b"count it")
    assert list(answers) == [b"0", b"1", b"2"]
    assert answers.code() is Code.OK
    assert core.tickets[-1].cancelled is None


def test_an_error_behind_the_first_answer_ends_a_server_stream(streams: Streams) -> None:
    ask, _ = streams
    answers = ask(b"fail later")
    assert next(answers) == b"first"
    with pytest.raises(grpc.RpcError) as caught:
        next(answers)
    assert (caught.value.code(), caught.value.details()) == (Code.INVALID_ARGUMENT, "the second failed")


def test_a_server_stream_that_its_client_cancels_cancels_what_runs(streams: Streams) -> None:
    ask, core = streams
    answers = ask(b"wait long")
    assert next(answers) == b"first"
    answers.cancel()
    assert answers.code() is Code.CANCELLED
    assert until_cancelled(core) == "CANCELLED"


def test_a_server_stream_ends_at_its_deadline(streams: Streams) -> None:
    ask, core = streams
    answers = ask(b"wait long", timeout=2)
    assert next(answers) == b"first"
    with pytest.raises(grpc.RpcError) as caught:
        next(answers)
    assert caught.value.code() is Code.DEADLINE_EXCEEDED
    assert until_cancelled(core) in ("EXPIRED", "CANCELLED")  # the client may be ahead on a busy machine
