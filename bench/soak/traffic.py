"""The mixed traffic of the soak: actors that each ask one thing at a pace of their own, and check what they get."""

import http.client
import json
import queue
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as triton
from bench.requests import Request
from bench.soak import models
from tritonclient.utils import InferenceServerException

ROW = np.arange(16, dtype=np.float32).reshape(1, 16)
WIDE = np.ones((1, 2**19), np.float32)
PICTURE = bytes(range(256)) * 256
PARTS = 10
"""Reads of 16 KiB of a stream of some 5 MiB."""
AWAY = frozenset({400, 404, 503})
"""Statuses of a model that is being loaded, exchanged or unloaded at this moment."""
TIMED = "JSON"
"""The kind of request whose waits are kept."""


class Books:
    """It keeps how many answers of each kind came, what was wrong, and the waits of one kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: list[float] = []
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def note(self, kind: str, seconds: float) -> None:
        with self._lock:
            self.counts[kind] += 1
            if kind == TIMED:
                self._waits.append(seconds)

    def complain(self, text: str) -> None:
        with self._lock:
            self.wrong.append(text)

    def take_waits(self) -> list[float]:
        """The seconds that each request of the timed kind took since this was asked last."""
        with self._lock:
            taken, self._waits = self._waits, []
        return taken


class Session:
    """A connection to the server that an actor keeps, made anew when it is lost. `address` is host and port."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._connection = http.client.HTTPConnection(address, timeout=60)

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body of one answer."""
        self._connection.request(method, path, body, headers or {})
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def infer(self, model: str, data: Any, path: str = "") -> tuple[int, bytes]:
        """One v2 request in binary; `path` where it is not the model's own."""
        request = Request(model, "x", data)
        return self.ask("POST", path or request.path, request.body(), request.headers())

    def close(self) -> None:
        self._connection.close()


class Traffic:
    """All actors on one server, from entering to leaving. Addresses are host and port."""

    def __init__(self, http_address: str, grpc_address: str, store: Path) -> None:
        self.books = Books()
        self._http, self._grpc, self._store = http_address, grpc_address, store
        self._leaves = threading.Event()
        self._version = 2
        self._threads = [threading.Thread(target=self._live, args=row, name=row[0]) for row in self._actors()]

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._leaves.set()
        for thread in self._threads:
            thread.join()

    def _actors(self) -> Sequence[tuple[str, float, Callable[[Session], None]]]:
        """Each kind of traffic, the seconds between two requests of it, and what is done."""
        return (
            (TIMED, 0.05, _ask_json),
            ("handler", 0.1, lambda session: _echo(session, "handler", ROW)),
            ("2 MiB", 1.0, lambda session: _echo(session, "wide", WIDE)),
            ("gRPC", 0.1, self._ask_rpc),
            ("gRPC stream", 1.0, self._ask_stream),
            ("DJL", 0.2, lambda session: _predict(session, "djl_echo")),
            ("TorchServe", 0.2, lambda session: _predict(session, "torchserve_echo")),
            ("cut off", 0.5, _leave_early),
            ("refused", 0.5, _ask_wrongly),
            ("loads", 3.0, _come_and_go),
            ("while it loads", 0.25, lambda session: _echo(session, "comes_and_goes", ROW, AWAY)),
            ("versions", 5.0, self._change_version),
            ("while versions change", 0.2, _ask_scaled),
            ("metrics", 5.0, _scrape),
            ("large refused", 2.0, _ask_much_wrongly),
            ("large refused over gRPC", 2.0, self._ask_much_wrongly_by_rpc),
            ("deferred", 0.5, _defer),
            ("slow reader", 2.0, lambda session: _read_slowly(session, PARTS)),
            ("nobody reads", 3.0, lambda session: _read_slowly(session, 0)),
        )

    def _live(self, kind: str, pause: float, act: Callable[[Session], None]) -> None:
        session = Session(self._http)
        while not self._leaves.wait(pause):
            began = time.perf_counter()
            try:
                act(session)
            except Exception as error:
                self.books.complain(f"{kind}: {type(error).__name__}: {error}"[:300])
                session.close()
            else:
                self.books.note(kind, time.perf_counter() - began)
        session.close()

    def _ask_rpc(self, _session: Session) -> None:
        with triton.InferenceServerClient(self._grpc) as client:
            answer = client.infer("handler", [_tensor()])
            _expect(np.array_equal(answer.as_numpy("y"), ROW), "another tensor came back")

    def _ask_much_wrongly_by_rpc(self, _session: Session) -> None:
        tensor = triton.InferInput("no such input", list(WIDE.shape), "FP32")
        tensor.set_data_from_numpy(WIDE)
        with triton.InferenceServerClient(self._grpc) as client:
            try:
                client.infer("wide", [tensor])
            except InferenceServerException:
                return
        raise RuntimeError("an input that there is not was taken")

    def _ask_stream(self, _session: Session) -> None:
        parts: queue.Queue[Any] = queue.Queue()
        with triton.InferenceServerClient(self._grpc) as client:
            client.start_stream(lambda result, error: parts.put(error or result))
            client.async_stream_infer("repeat", [_tensor()])
            for _ in range(8):
                part = parts.get(timeout=60)
                _expect(
                    not isinstance(part, Exception) and np.array_equal(part.as_numpy("y"), ROW), str(part)
                )
            client.stop_stream()

    def _change_version(self, session: Session) -> None:
        self._version = 3 - self._version
        models.choose_version(self._store, self._version)
        status, body = session.ask("POST", "/v2/repository/models/scale/load")
        _expect(status == 200, f"{status} {body!r}")
        status, body = session.infer("scale", ROW, f"/v2/models/scale/versions/{self._version}/infer")
        _expect(status == 200 and body.endswith((ROW * self._version).tobytes()), f"{status} {body!r}")


def _expect(holds: bool, why: str) -> None:
    if not holds:
        raise RuntimeError(why)


def _tensor() -> Any:
    tensor = triton.InferInput("x", list(ROW.shape), "FP32")
    tensor.set_data_from_numpy(ROW)
    return tensor


def _ask_json(session: Session) -> None:
    inputs = [{"name": "x", "datatype": "FP32", "shape": [1, 16], "data": ROW.ravel().tolist()}]
    status, body = session.ask("POST", "/v2/models/echo/infer", json.dumps({"inputs": inputs}).encode())
    _expect(
        status == 200 and json.loads(body)["outputs"][0]["data"] == ROW.ravel().tolist(), f"{status} {body!r}"
    )


def _echo(session: Session, model: str, data: Any, also: frozenset[int] = frozenset()) -> None:
    status, body = session.infer(model, data)
    right = status in also or (status == 200 and body.endswith(data.tobytes()))
    _expect(right, f"{status} {body[:200]!r}")


def _ask_scaled(session: Session) -> None:
    status, body = session.infer("scale", ROW)
    right = status in AWAY or (status == 200 and body.endswith((ROW.tobytes(), (ROW * 2).tobytes())))
    _expect(right, f"{status} {body[:200]!r}")


def _predict(session: Session, model: str) -> None:
    status, body = session.ask("POST", f"/predictions/{model}", PICTURE)
    _expect(status == 200 and body == PICTURE, f"{status} {body[:200]!r}")


def _leave_early(session: Session) -> None:
    """Send half a request, and reset the connection."""
    host, _, port = session.address.partition(":")
    plug = socket.create_connection((host, int(port)), 60)
    plug.sendall(
        b"POST /predictions/djl_echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65536\r\n\r\n"
        + PICTURE[:32768]
    )
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    plug.close()


def _ask_wrongly(session: Session) -> None:
    status, _ = session.ask("POST", "/v2/models/echo/infer", b'{"inputs": [')
    _expect(status == 400, str(status))
    status, _ = session.ask("GET", "/v2/models/nobody")
    _expect(status == 404, str(status))


def _ask_much_wrongly(session: Session) -> None:
    """Send numbers that are read in a thread, and are wrong at their end."""
    body = b"x\n" + b"1.5\n" * 400_000 + b"no number\n"
    status, _ = session.ask("POST", "/predictions/wide", body, {"Content-Type": "text/csv"})
    _expect(400 <= status < 500, str(status))


def _defer(session: Session) -> None:
    """Ask for an answer to be kept, and fetch it; every fourth is left."""
    status, body = session.ask("POST", "/predictions/djl_echo", PICTURE, {"x-synchronous": "false"})
    _expect(status == 200, f"{status} {body[:200]!r}")
    token = json.loads(body)["nextToken"] if body[:1] == b"{" else body.decode()
    if hash(token) % 4:
        for _ in range(1000):
            status, body = session.ask("POST", "/predictions/djl_echo", b"", {"x-starting-token": token})
            if status == 200:
                return
            _expect(status == 202, f"{status} {body[:200]!r}")
            time.sleep(0.01)


def _read_slowly(session: Session, parts: int) -> None:
    """Open a stream of some megabytes, read so many parts of it a little at a time, and leave."""
    host, _, port = session.address.partition(":")
    with socket.socket() as plug:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        plug.settimeout(60)
        plug.connect((host, int(port)))
        body = json.dumps({"x": ROW.ravel().tolist()}).encode()
        head = b"POST /v2/models/verbose/generate_stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        plug.sendall(head % len(body) + body)
        for _ in range(parts):
            _expect(bool(plug.recv(2**14)), "the stream ended early")
            time.sleep(0.01)
        if not parts:
            time.sleep(1.0)
    status, answer = session.infer("verbose", ROW)  # one that is read waits for the computing alone
    _expect(status in (200, 400, 501), f"{status} {answer[:200]!r}")


def _come_and_go(session: Session) -> None:
    for act in ("unload", "load"):
        status, body = session.ask("POST", f"/v2/repository/models/comes_and_goes/{act}")
        _expect(status == 200, f"{act}: {status} {body!r}")


def _scrape(session: Session) -> None:
    status, _ = session.ask("GET", "/metrics")
    _expect(status == 200, str(status))
