"""While one connection or one address does its worst, polite clients of other addresses lose nothing and go on."""

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.harness.hostile_input import (
    GREETING,
    OPEN_WINDOW,
    binary_request,
    http_head,
    huffman,
    opened,
    tiny_chunks,
    tiny_data,
)
from tests.harness.hostile_models import write_models
from tests.harness.raw_http import HOST, read_answer
from tests.harness.server_process import ServerProcess, serve

POLITE, SECONDS = 16, 3.0
MIB = 2**20
ADDRESSES = tuple(f"127.0.0.{number}" for number in range(2, 21))
CONNECTIONS = 200
_ATTEMPTS = 3
"""What the machine takes from the polite ones, it does not take thrice, by chance, when they are disturbed."""
SMALL = b"".join(binary_request("identity_real", "FP32", 16, bytes(64)))
LARGE = b"".join(binary_request("identity_real", "FP32", MIB // 4, np.zeros(MIB // 4, np.float32).tobytes()))


def call_from(address: str, port: int) -> socket.socket:
    return socket.create_connection((HOST, port), 60, (address, 0))


class PoliteClients:
    """Each on a connection of its own, from an address of its own: a request, its answer, the next; every tenth large.
    `rate` is theirs together, per second.
    """

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._done = [0] * POLITE
        self._lost: list[str] = []

    def rate(self) -> float:
        until = time.monotonic() + SECONDS
        self._done = [0] * POLITE
        threads = [threading.Thread(target=self._ask, args=(number, until)) for number in range(POLITE)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self._lost, self._lost
        return sum(self._done) / (time.monotonic() - began)

    def _ask(self, number: int, until: float) -> None:
        try:
            with call_from(ADDRESSES[number], self._server.port) as plug:
                while time.monotonic() < until:
                    plug.sendall(LARGE if self._done[number] % 10 == 9 else SMALL)
                    answer = read_answer(plug)
                    assert answer.status == 200, answer.body[:300]
                    self._done[number] += 1
        except Exception as error:
            self._lost.append(repr(error))


class Rude:
    """Does its worst from one address until the block ends: `connections` at a time, each `act` over and over."""

    def __init__(
        self, port: int, connections: int, act: Callable[[socket.socket, threading.Event], None]
    ) -> None:
        self._port = port
        self._act = act
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._go_on) for _ in range(connections)]

    def __enter__(self) -> "Rude":
        for thread in self._threads:
            thread.start()
        time.sleep(0.5)
        return self

    def __exit__(self, *exc: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _go_on(self) -> None:
        while not self._ends.is_set():
            with contextlib.suppress(OSError), call_from("127.0.0.1", self._port) as plug:
                plug.settimeout(1.0)
                self._act(plug, self._ends)
            self._ends.wait(0.05)


def keep(plug: socket.socket, ends: threading.Event) -> None:
    """Hold the connection for as long as the server lets us."""
    while not ends.wait(0.2):
        plug.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            if not plug.recv(2**16):
                return


def send(pieces: tuple[bytes, ...]) -> Callable[[socket.socket, threading.Event], None]:
    def act(plug: socket.socket, ends: threading.Event) -> None:
        for piece in pieces:
            for at in range(0, len(piece), 2**18):
                if ends.is_set():
                    return
                plug.sendall(piece[at : at + 2**18])
        keep(plug, ends)

    return act


CHANCE = random.Random(22)
STREAMS = b"".join(opened(stream) for stream in range(1, 8192, 2))
WORST: dict[str, tuple[str, int, Callable[[socket.socket, threading.Event], None]]] = {
    "one connection with 4,096 open streams": ("grpc", 1, send((GREETING + OPEN_WINDOW, STREAMS))),
    "one address with connections full of streams": ("grpc", 8, send((GREETING + OPEN_WINDOW, STREAMS))),
    "one address with idle gRPC connections": ("grpc", CONNECTIONS, send((GREETING,))),
    "one connection with DATA of one byte": ("grpc", 1, send(tiny_data(CHANCE, "identity", 32 * MIB))),
    "one address with headers that take long": ("grpc", 4, send(huffman(CHANCE, "identity", 8 * MIB))),
    "one address with idle connections": ("http", CONNECTIONS, send(())),
    "one address with half-sent bodies": (
        "http",
        80,
        send((http_head("identity_real", 8 * MIB), bytes(2 * MIB))),
    ),
    "one address with chunks of one byte": ("http", 4, send(tiny_chunks(CHANCE, "identity", 32 * MIB))),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = write_models(tmp_path_factory.mktemp("fairness") / "models")
    words = ("--max-connections", str(CONNECTIONS), "--max-buffered-bytes", str(128 * MIB))
    words += ("--max-body-bytes", str(16 * MIB))
    with serve(Path(tmp_path_factory.mktemp("logs")) / "log", *words, root) as serving:
        yield serving


@pytest.mark.alone  # it measures rates
@pytest.mark.parametrize("worst", WORST)
def test_polite_clients_lose_nothing_and_keep_half_their_rate(server: ServerProcess, worst: str) -> None:
    wire, connections, act = WORST[worst]
    port = server.port if wire == "http" else int(server.grpc_address.rpartition(":")[2])
    polite, found = PoliteClients(server), []
    for _ in range(_ATTEMPTS):
        undisturbed = polite.rate()
        with Rude(port, connections, act):
            found.append(polite.rate() / undisturbed)
        if found[-1] >= 0.5:
            break
    print(f"{worst}: {max(found):.2f} of the undisturbed rate")
    assert max(found) >= 0.5, f"{found} of the undisturbed rate"
