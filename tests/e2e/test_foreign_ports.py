"""The ports of `djl-serving` and `torchserve` as strangers find them: slow clients, frames that no library sends, and
calls that their clients give up, over TCP, Unix sockets and TLS. Somebody else is served all the while.
"""

import contextlib
import json
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.harness.certificates import pair
from tests.harness.djl_serving import djl_serving
from tests.harness.h2_peer import Peer, data, prefixed
from tests.harness.raw_http import PATIENCE, Answer, connect, get, read_answer
from tests.harness.server_process import SECONDS, until
from tests.harness.torchserve_command import TorchServeFolder, torchserve
from tests.harness.torchserve_management import INFERENCE
from tests.harness.waits import DJL, PREDICT, PREDICTIONS, PREDICTIONS_2

from trivium.frontends.h2 import frames

SHORT = {
    "TRIVIUM_HEADER_TIMEOUT": "1",
    "TRIVIUM_BODY_TIMEOUT": "1",
    "TRIVIUM_GRPC_MESSAGE_TIMEOUT": "1",
    "TRIVIUM_DRAIN_TIMEOUT": "2",
}
CODE = """
import os, time
FOLDER = {folder!r}
def answered(body):
    if body == b"hang":
        open(os.path.join(FOLDER, "hangs"), "w").close()
        while not os.path.exists(os.path.join(FOLDER, "go")):
            time.sleep(0.02)
    return body
"""
DJL_CODE = (
    CODE
    + """
from djl_python import Output
def handle(inputs):
    if inputs.is_empty():
        return None
    return Output().add(answered(inputs.get_as_bytes()))
"""
)
TS_CODE = (
    CODE
    + """
def handle(data, context):
    if data is None:
        return None
    return [answered(bytes(row.get("body", row.get("data")))) for row in data]
"""
)


@dataclass(frozen=True)
class ForeignPorts:
    """How one command is reached: doors for HTTP by name, gRPC ports by name, and a call that infers."""

    folder: Path
    doors: Mapping[str, Callable[[], socket.socket]]
    grpc_ports: Mapping[str, int]
    method: str
    kind: str
    message: Callable[[bytes], bytes]
    told: Callable[[bytes], bytes]

    def infer(self, channel: grpc.Channel, body: bytes, **more: Any) -> Any:
        """A call, whose answer may be waited for by `result`, or read."""
        call = getattr(channel, self.kind)(self.method)
        started = call.future if self.kind == "unary_unary" else call
        return started(self.message(body), timeout=SECONDS, **more)

    def answer(self, channel: grpc.Channel, body: bytes, **more: Any) -> bytes:
        """The answer to a prediction."""
        call = self.infer(channel, body, **more)
        return self.told(call.result() if self.kind == "unary_unary" else next(iter(call)))

    @property
    def inference(self) -> str:
        """Where gRPC infers."""
        return f"127.0.0.1:{self.grpc_ports['inference']}"


@contextlib.contextmanager
def djl(folder: Path) -> Iterator[ForeignPorts]:
    certificate, key = pair(folder, "own")
    model = folder / "models" / "m"
    model.mkdir(parents=True)
    (model / "model.py").write_text(DJL_CODE.format(folder=str(folder)))
    (model / "serving.properties").write_text("engine=Python\nminWorkers=1\nmaxWorkers=1\n")
    path = folder / "s"
    variables = {
        **SHORT,
        "SERVING_INFERENCE_ADDRESS": f"unix:{path}",
        "SERVING_MANAGEMENT_ADDRESS": "https://127.0.0.1:0",
        "SERVING_CERTIFICATE_FILE": certificate,
        "SERVING_PRIVATE_KEY_FILE": key,
        "SERVING_GRPC_PORT": "0",
    }
    with djl_serving(folder / "log", "-m", f"m={model}", variables=variables, listens=False) as server:
        port = int(server.await_line(re.compile(r"MANAGEMENT API bind to: https://[\w.]+:(\d+)"))[1])
        rpc = int(server.await_line(re.compile(r"GRPC API bind to: [\w.]+:(\d+)"))[1])
        yield ForeignPorts(
            folder,
            {"a Unix socket": lambda: over_unix(path), "TLS": lambda: over_tls(port, certificate)},
            {"inference": rpc},
            PREDICT,
            "unary_stream",
            lambda body: DJL["Request"](model_name="m", input=body).SerializeToString(),
            lambda said: DJL["Response"].FromString(said).output,
        )


@contextlib.contextmanager
def torch(folder: Path) -> Iterator[ForeignPorts]:
    certificate, key = pair(folder, "own")
    place = TorchServeFolder(folder)
    place.model("m", TS_CODE.format(folder=str(folder)), "minWorkers: 1\nmaxWorkers: 1\n")
    path = folder / "s"
    text = (
        "disable_token_authorization=true\nload_models=all\n"
        f"inference_address=unix:{path}\nmanagement_address=https://127.0.0.1:0\n"
        f"certificate_file={certificate}\nprivate_key_file={key}\n"
    )
    with torchserve(place, text=text, variables=SHORT) as server:
        until(lambda: "Model m loaded" in server.said(), server.said)
        port, metrics = server.port("Management"), server.port("Metrics")
        rpcs = {"inference": server.port("gRPC inference"), "management": server.port("gRPC management")}
        yield ForeignPorts(
            folder,
            {
                "a Unix socket": lambda: over_unix(path),
                "TLS": lambda: over_tls(port, certificate),
                "TCP": lambda: connect(metrics),
            },
            rpcs,
            PREDICTIONS,
            "unary_unary",
            lambda body: INFERENCE["PredictionsRequest"](
                model_name="m", input={"data": body}
            ).SerializeToString(),
            lambda said: INFERENCE["PredictionResponse"].FromString(said).prediction,
        )


def over_unix(path: Path) -> socket.socket:
    plug = socket.socket(socket.AF_UNIX)
    plug.settimeout(PATIENCE)
    plug.connect(str(path))
    return plug


def over_tls(port: int, certificate: str) -> socket.socket:
    context = ssl.create_default_context(cafile=certificate)
    return context.wrap_socket(connect(port), server_hostname="localhost")


@pytest.fixture(scope="module", params=[djl, torch], ids=["djl-serving", "torchserve"])
def ports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignPorts]:
    with request.param(tmp_path_factory.mktemp("ports")) as found:
        yield found


# -- slow clients over HTTP

SLOW = {
    "half a head": b"POST /predictions/m HTTP/1.1\r\nHost: loc",
    "half a body": b"POST /predictions/m HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc",
    "half a chunk": b"POST /predictions/m HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n50\r\nabc",
    "half a large body": b"POST /predictions/m HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\nabc",
}


def slowly(enter: Callable[[], socket.socket], sent: bytes) -> Answer:
    with enter() as plug:
        plug.sendall(sent)
        return read_answer(plug)


def test_slow_heads_and_bodies_are_told_and_let_go(ports: ForeignPorts) -> None:
    """A listener that knows no such path need not wait for the body."""
    with ThreadPoolExecutor(16) as threads:
        told = {
            (door, name): threads.submit(slowly, enter, sent)
            for door, enter in ports.doors.items()
            for name, sent in SLOW.items()
        }
        for enter in ports.doors.values():
            assert slowly(enter, get("/")).status in (200, 404, 405)  # others are answered meanwhile
        for (door, name), one in told.items():
            expected = (408,) if door == "a Unix socket" or name == "half a head" else (404, 405, 408)
            assert one.result(SECONDS).status in expected, (door, name, one.result())


@contextlib.contextmanager
def plain_djl(folder: Path) -> Iterator[int]:
    with djl_serving(folder / "log", split=True, variables=SHORT) as server:
        yield server.management


@contextlib.contextmanager
def plain_torch(folder: Path) -> Iterator[int]:
    with torchserve(TorchServeFolder(folder), variables=SHORT) as server:
        yield server.port("Management")


MANAGED_SLOW = {
    **SLOW,
    "half the head of a registration": b"POST /models?url=m.mar HTTP/1.1\r\nHost: loc",
    "half the body of a registration": b"POST /models?url=m HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 99\r\n\r\nabc",
    "half a chunk of it": b"PUT /models/m HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n50\r\nabc",
}


@pytest.mark.parametrize("serve", [plain_djl, plain_torch])
def test_slow_heads_and_bodies_on_plain_management_ports(
    tmp_path: Path, serve: Callable[[Path], contextlib.AbstractContextManager[int]]
) -> None:
    """What manages models over TCP, 8081 as a rule, is as patient as what infers, and no more."""
    with serve(tmp_path) as port, ThreadPoolExecutor(16) as threads:
        told = {
            name: threads.submit(slowly, lambda: connect(port), sent) for name, sent in MANAGED_SLOW.items()
        }
        for _ in range(20):  # others are answered meanwhile
            assert slowly(lambda: connect(port), get("/models")).status == 200
        for name, one in told.items():
            expected = (408,) if "head" in name else (400, 404, 405, 408, 413)
            assert one.result(SECONDS).status in expected, (name, one.result())


def test_who_closes_a_unix_socket_or_tls_while_it_waits_is_cancelled(ports: ForeignPorts) -> None:
    """A worker that hangs is behind it, so that only a cancellation lets what follows through once it goes on."""
    gate, hangs = ports.folder / "go", ports.folder / "hangs"
    asked = b"POST /predictions/m HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nhang"
    gate.unlink(missing_ok=True)
    hangs.unlink(missing_ok=True)
    try:
        with ports.doors["a Unix socket"]() as first:
            first.sendall(asked)
            until(hangs.exists, lambda: "nothing hangs")
            hangs.unlink()
            for _ in range(20):
                with ports.doors["a Unix socket"]() as plug:
                    plug.sendall(asked)
            with ports.doors["a Unix socket"]() as half:
                half.sendall(asked)
                half.shutdown(socket.SHUT_WR)
                answer = read_answer(half)
                assert answer.status >= 400
                assert b"the client closed its sending side" in answer.body
            gate.touch()
            assert read_answer(first).status == 200
            assert slowly(ports.doors["a Unix socket"], asked.replace(b"hang", b"well")).body == b"well"
            assert not hangs.exists(), "a request was run whose client had left"
    finally:
        gate.touch()


# -- frames over gRPC

FRAMES: Mapping[str, Callable[[Peer, str], bytes]] = {
    "a frame that is too large": lambda peer, method: frames.head(2**20, frames.DATA, 0, 1),
    "data of a stream that is not open": lambda peer, method: data(1, b"x"),
    "headers of a server's stream": lambda peer, method: frames.head(1, frames.HEADERS, 4, 2) + b"\x82",
    "headers that cannot be read": lambda peer, method: frames.head(4, frames.HEADERS, 4, 1) + b"\xff" * 4,
    "a window of nothing": lambda peer, method: frames.head(4, frames.WINDOW_UPDATE, 0, 0) + bytes(4),
    "settings of a wrong size": lambda peer, method: frames.head(5, frames.SETTINGS, 0, 0) + bytes(5),
    "a push": lambda peer, method: frames.head(4, frames.PUSH_PROMISE, 4, 1) + bytes(4),
    "a continuation of nothing": lambda peer, method: frames.head(0, frames.CONTINUATION, 4, 1),
    "headers without end": lambda peer, method: (
        frames.head(1000, frames.HEADERS, 0, 1)
        + bytes(1000)
        + (frames.head(1000, frames.CONTINUATION, 0, 1) + bytes(1000)) * 2000
    ),
    "pings without end": lambda peer, method: frames.ping(b"12345678") * 40_000,
}


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_that_no_library_sends_end_their_connection_alone(ports: ForeignPorts, frame: str) -> None:
    with grpc.insecure_channel(ports.inference) as neighbour:
        for port in ports.grpc_ports.values():
            assert ports.answer(neighbour, b"well") == b"well"
            peer = Peer()
            with connect(port) as plug:
                with contextlib.suppress(ConnectionError):
                    plug.sendall(peer.greeting() + FRAMES[frame](peer, ports.method))
                with contextlib.suppress(ConnectionError):
                    while got := plug.recv(65536):
                        peer.hear(got)
            assert peer.goaways, f"{frame}: it was not told why"
            assert peer.goaways[-1][1] != frames.NO_ERROR
        assert ports.answer(neighbour, b"well") == b"well"


def test_what_is_no_http2_and_what_is_slow(ports: ForeignPorts) -> None:
    with grpc.insecure_channel(ports.inference) as neighbour:
        for port in ports.grpc_ports.values():
            with connect(port) as half, connect(port) as noise, connect(port) as plain:
                half.sendall(frames.PREFACE[:10])  # and no more: the others are served all the while
                noise.sendall(bytes(range(256)) * 10)
                plain.sendall(get("/"))
                assert plain.recv(65536).startswith(b"HTTP/1.1 505 ")
                with contextlib.suppress(ConnectionError):
                    while noise.recv(65536):
                        pass
                assert ports.answer(neighbour, b"well") == b"well"
        peer = Peer()
        message = prefixed(ports.message(b"well"))
        with connect(ports.grpc_ports["inference"]) as plug:
            plug.sendall(peer.greeting() + peer.open(1, ports.method) + data(1, message[:7]))
            heard = peer.streams[1]
            while not heard.has_ended and (got := plug.recv(65536)):
                peer.hear(got)
        assert heard.has_ended
        assert heard.status not in (0, None)
        assert ports.answer(neighbour, b"well") == b"well"


# -- calls that their clients give up


def test_calls_of_grpcio_that_are_cancelled_half_closed_or_carry_too_much(ports: ForeignPorts) -> None:
    gate, hangs = ports.folder / "go", ports.folder / "hangs"
    gate.unlink(missing_ok=True)
    hangs.unlink(missing_ok=True)
    try:
        with grpc.insecure_channel(ports.inference) as channel:
            first = ports.infer(channel, b"hang")
            until(hangs.exists, lambda: "nothing hangs")
            hangs.unlink()
            waiting = [ports.infer(channel, b"hang") for _ in range(20)]
            for call in waiting:
                call.cancel()
            for long in ("a" * 20_000, "a" * 100_000):  # on the connection that the first one waits on
                with pytest.raises(grpc.RpcError) as caught:
                    ports.answer(channel, b"well", metadata=(("x-long", long),))
                assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                assert "The metadata of this call exceed" in (caught.value.details() or "")
            gate.touch()
            assert ports.answer(channel, b"well") == b"well"
            assert not hangs.exists(), "a call was run that had been cancelled"
            assert first.code() is grpc.StatusCode.OK if ports.kind == "unary_unary" else list(first)
        if "management" in ports.grpc_ports:
            with grpc.insecure_channel(ports.inference) as channel:
                stream = channel.stream_stream(PREDICTIONS_2)
                message = INFERENCE["PredictionsRequest"](
                    model_name="m", input={"data": b"well"}, sequence_id="s"
                )
                said = list(stream(iter([message.SerializeToString()]), timeout=SECONDS))
                assert [INFERENCE["PredictionResponse"].FromString(each).prediction for each in said] == [
                    b"well"
                ]
    finally:
        gate.touch()


def test_calls_of_grpc_js(ports: ForeignPorts, tmp_path: Path) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not here: gRPC's JavaScript client cannot be run")
    if ports.kind != "unary_unary":
        pytest.skip("DJL's service has no call with one answer, which this script makes")
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "@grpc/grpc-js"]
    if subprocess.run(install, cwd=tmp_path, capture_output=True, check=False, timeout=SECONDS).returncode:
        pytest.skip("npm cannot install @grpc/grpc-js here: no registry is reached")
    gate, hangs = ports.folder / "go", ports.folder / "hangs"
    hangs.unlink(missing_ok=True)
    gate.unlink(missing_ok=True)
    message = INFERENCE["PredictionsRequest"](model_name="m", input={"data": b"well"}, sequence_id="s")
    try:
        script = subprocess.Popen(
            [
                *(
                    "node",
                    str(Path(__file__).parent / "calls.js"),
                    ports.inference,
                    PREDICTIONS,
                    PREDICTIONS_2,
                ),
                *(message.SerializeToString().hex(), ports.message(b"hang").hex()),
            ],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
        )
        until(hangs.exists, lambda: "nothing hangs")
        gate.touch()
        told = json.loads(script.communicate(timeout=SECONDS)[0])
    finally:
        gate.touch()
    assert told.pop("overLong") == "RESOURCE_EXHAUSTED"
    assert told.pop("acrossOverLong") == 2, "a call that has too much metadata ended its neighbour's"
    answered = "OK " + message_of(b"well")
    assert told.pop("cancelled") in ("CANCELLED", answered.replace("well", "hang"))
    assert told == {"plain": answered, "halfClosed": "OK, parts: 1", "afterwards": answered}


def message_of(prediction: bytes) -> str:
    """The message of an answer, as the script prints it."""
    return INFERENCE["PredictionResponse"](prediction=prediction).SerializeToString().decode("latin-1")
