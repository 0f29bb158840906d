"""Clients that no library makes, over sockets: a neighbour is served all the while, and nothing is left of them."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
from tests.e2e.serving import Serving, serve, until, withstanding
from tests.e2e.test_h2_calls import ECHO, INFER, STREAM, request_of
from tests.e2e.triton_grpc import ONE_ROW, calling, given
from tests.e2e.wire import connect
from tests.fixtures import models
from tests.unit.frontends.h2.peer import Peer, data, prefixed

from trivium.frontends.h2 import frames


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    root = tmp_path_factory.mktemp("hostile") / "models"
    models.identity(root, "echo", rows=16)
    models.identity(root, "wide", datatype="UINT8", dims="-1")
    models.identity(root, "endless", rows=1, delay_ms=60_000)
    with serve(tmp_path_factory.mktemp("log") / "log", "--drain-timeout", "1", root) as server:
        yield server


class Client:
    """A peer on a socket."""

    def __init__(self, plug: socket.socket, peer: Peer | None = None) -> None:
        self.plug = plug
        self.peer = peer or Peer()
        self.is_closed = False

    def say(self, *pieces: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            self.plug.sendall(b"".join(pieces))

    def hear(self) -> None:
        """What comes next."""
        try:
            got = self.plug.recv(65536)
        except ConnectionError:
            got = b""
        self.is_closed = not got
        self.peer.hear(got)

    def hear_until(self, holds: Callable[[], bool]) -> None:
        while not holds() and not self.is_closed:
            self.hear()
        assert holds(), "the connection was closed before"

    def hear_the_end(self) -> int:
        """The code of the GOAWAY behind which the connection was closed."""
        while not self.is_closed:
            self.hear()
        return self.peer.goaways[-1][1]


@contextlib.contextmanager
def client_of(server: Serving, peer: Peer | None = None) -> Iterator[Client]:
    with connect(int(server.grpc_address.rpartition(":")[2])) as plug:
        client = Client(plug, peer)
        client.say(client.peer.greeting())
        yield client


def test_a_call_by_hand_byte_by_byte(server: Serving) -> None:
    with withstanding(server), client_of(server) as client:
        for byte in client.peer.call(1, INFER, ECHO):
            client.say(bytes([byte]))
        heard = client.peer.streams[1]
        client.hear_until(lambda: heard.has_ended)
        assert (heard.status, ONE_ROW.tobytes() in heard.messages[0]) == (0, True)


@pytest.mark.parametrize("method", [INFER, STREAM])
def test_a_deadline_beyond_all_time(server: Serving, method: str) -> None:
    with withstanding(server), client_of(server) as client:
        client.say(client.peer.call(1, method, ECHO, more=(("grpc-timeout", "99999999H"),)))
        heard = client.peer.streams[1]
        client.hear_until(lambda: heard.has_ended)
        assert (heard.status, len(heard.messages)) == (0, 1)


def test_http1_gets_an_answer_that_says_where_it_is(server: Serving) -> None:
    with connect(int(server.grpc_address.rpartition(":")[2])) as plug:
        plug.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
        said = b""
        while got := plug.recv(65536):
            said += got
        assert said.startswith(b"HTTP/1.1 505 ")
        assert b"This port speaks gRPC" in said


FLOODS: dict[str, Callable[[Peer, int], bytes]] = {
    "resets": lambda peer, turn: (
        peer.call(2 * turn + 1, INFER, ECHO) + frames.reset(2 * turn + 1, frames.CANCEL)
    ),
    "settings": lambda peer, turn: frames.settings([(frames.INITIAL_WINDOW_SIZE, turn)]),
    "pings": lambda peer, turn: frames.ping(b"%08d" % turn),
    "empty data": lambda peer, turn: data(1, b"") if turn else peer.open(1, INFER),
    "continuations": lambda peer, turn: (
        frames.head(0, frames.CONTINUATION, 0, 1) if turn else frames.head(0, frames.HEADERS, 0, 1)
    ),
    "priorities": lambda peer, turn: frames.head(5, frames.PRIORITY, 0, 1) + bytes(5),
    "headers without end": lambda peer, turn: (
        frames.head(1000, frames.CONTINUATION if turn else frames.HEADERS, 0, 1) + b"\x00" * 1000
    ),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_floods(server: Serving, flood: str) -> None:
    with withstanding(server), client_of(server) as client:
        for start in range(0, 40_000, 100):
            client.say(*(FLOODS[flood](client.peer, turn) for turn in range(start, start + 100)))
            client.plug.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.hear()
            client.plug.settimeout(10)
            if client.is_closed or client.peer.goaways:
                break
        assert client.hear_the_end() == frames.ENHANCE_YOUR_CALM


def test_answers_that_nobody_reads(server: Serving) -> None:
    """200 answers of 1 MiB, and a socket that is not read."""
    message = request_of("wide", np.zeros(2**20, np.uint8), "UINT8")
    most = server.footprint().memory + 150 * 2**20
    with withstanding(server), client_of(server) as client:
        client.say(client.peer.grow(0, 2**30))
        client.plug.settimeout(1)
        with contextlib.suppress(TimeoutError):
            for turn in range(200):
                stream = 2 * turn + 1
                client.plug.sendall(client.peer.open(stream, INFER) + client.peer.grow(stream, 2**22))
                payload = prefixed(message)
                for at in range(0, len(payload), 2**18):
                    part = payload[at : at + 2**18]
                    client.plug.sendall(data(stream, part, at + len(part) == len(payload)))
                assert server.footprint().memory < most
        assert server.footprint().memory < most


def test_calls_that_never_end_their_message(server: Serving) -> None:
    with withstanding(server):
        with client_of(server) as client:
            for turn in range(1000):
                client.say(
                    client.peer.open(2 * turn + 1, (INFER, STREAM)[turn % 2]),
                    data(2 * turn + 1, b"\0\0\1\0\0abc"),
                )
        with calling(server.grpc_address) as other:
            assert other.infer("echo", [given("x", ONE_ROW)]).as_numpy("y").shape == (1, 4)


def test_a_connection_that_is_lost_cancels_its_calls(server: Serving) -> None:
    def cancelled() -> int:
        with calling(server.grpc_address) as other:
            (version,) = other.get_inference_statistics("endless").model_stats
            return int(version.inference_stats.fail.count)

    before = cancelled()
    with client_of(server) as client:
        for stream in (1, 3, 5):
            client.say(client.peer.call(stream, INFER, request_of("endless", ONE_ROW)))
        time.sleep(0.2)
    until(lambda: cancelled() >= before + 2, lambda: "calls go on for a client that left")


def test_a_client_that_pings_too_often_is_calmed(tmp_path: Path) -> None:
    """grpcio's own client, which is told so and connects again."""
    models.identity(tmp_path / "models", "endless", rows=1, delay_ms=60_000)
    options = [
        ("grpc.keepalive_time_ms", 100),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_time_between_pings_ms", 100),
    ]
    with serve(tmp_path / "log", "--drain-timeout", "1", tmp_path / "models") as server:
        with grpc.insecure_channel(server.grpc_address, options) as channel:
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(INFER)(request_of("endless", ONE_ROW), timeout=30)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "too_many_pings" in caught.value.details()


def test_a_client_may_ping_where_that_is_allowed(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "slow", rows=1, delay_ms=2000)
    options = [("grpc.keepalive_time_ms", 100), ("grpc.http2.max_pings_without_data", 0)]
    words = ("--grpc-min-ping-interval", "0.05", "--grpc-keepalive-time", "0.3", tmp_path / "models")
    with serve(tmp_path / "log", *words) as server:
        with grpc.insecure_channel(server.grpc_address, options) as channel:
            assert channel.unary_unary(INFER)(request_of("slow", ONE_ROW), timeout=30)


def test_old_connections_are_replaced_unseen(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo", rows=16)
    words = ("--grpc-connection-age", "0.3", "--grpc-connection-grace", "5", tmp_path / "models")
    with serve(tmp_path / "log", *words) as server:
        with grpc.insecure_channel(server.grpc_address) as channel:
            infer = channel.unary_unary(INFER)
            ends = time.monotonic() + 2
            count = 0
            while time.monotonic() < ends:
                assert infer(ECHO, timeout=30)
                count += 1
            assert count > 50
