"""With budgets of 64 MiB the server's memory stays within them, whatever clients declare, half send or
leave unread, and whatever handlers print."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.harness.h2_peer import prefixed
from tests.harness.hostile_input import GREETING, OPEN_WINDOW, binary_request, grpc_message, http_head, opened
from tests.harness.hostile_models import write_models
from tests.harness.memory import Peak, memory_of
from tests.harness.raw_http import HOST, connect, get, infer_request, post, read_answer, tensor
from tests.harness.server_process import ServerProcess, serve
from tritonclient.grpc import service_pb2

from trivium.frontends.h2 import frames

MIB = 2**20
BUDGET, SPARE = 64 * MIB, 64 * MIB
_SETTLED = 1.5
"""Seconds in which a server has dealt with what was sent to it: longer only means more memory seen."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """One for each scene: what an allocator keeps of one would count in the next."""
    root = write_models(tmp_path / "models")
    words = ("--max-buffered-bytes", str(BUDGET), "--max-body-bytes", str(32 * MIB))
    with serve(tmp_path / "log", *words, root) as serving:
        yield serving


@pytest.fixture
def base(server: ServerProcess) -> int:
    """What it takes when it has served a little of everything."""
    for _ in range(3):
        serve_one(server)
    return memory_of(server)


def serve_one(server: ServerProcess) -> None:
    """A request of a polite client, of 1 MiB."""
    array = np.arange(2**18, dtype=np.float32)
    with connect(server.port) as plug:
        plug.sendall(b"".join(binary_request("handler_real", "FP32", array.size, array.tobytes())))
        answer = read_answer(plug)
    assert answer.status == 200, answer.body[:500]
    assert answer.body.endswith(array.tobytes())


@contextlib.contextmanager
def many(port: int, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        plugs = [stack.enter_context(socket.create_connection((HOST, port), 60)) for _ in range(count)]
        yield plugs


def push(plug: socket.socket, data: bytes) -> None:
    """Send as much as the server takes; one that refuses need not take all."""
    with contextlib.suppress(OSError):
        plug.settimeout(1.0)
        plug.sendall(data)


def grpc_port(server: ServerProcess) -> int:
    return int(server.grpc_address.rpartition(":")[2])


def declared_and_unsent(server: ServerProcess) -> None:
    with many(server.port, 200) as plugs:
        for number, plug in enumerate(plugs):
            plug.sendall(http_head(("handler_real", "identity_real", "nobody")[number % 3], 32 * MIB))
        time.sleep(_SETTLED)
        serve_one(server)


def half_sent(server: ServerProcess) -> None:
    refused = 0
    with many(server.port, 16) as plugs:
        threads = [
            threading.Thread(target=push, args=(plug, http_head("handler_real", 32 * MIB) + bytes(12 * MIB)))
            for plug in plugs
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(_SETTLED)
        for plug in plugs:
            plug.settimeout(0.1)
            with contextlib.suppress(OSError, AssertionError):
                answer = read_answer(plug)
                assert (answer.status, answer.fields["retry-after"]) == (503, "1")
                refused += 1
    assert refused, "all found room for what is thrice the budget"


def slow_readers_of_json(server: ServerProcess) -> None:
    array = np.random.default_rng(22).random(2**18, np.float32)
    request = b"".join(binary_request("identity_real", "FP32", array.size, array.tobytes(), as_json=True))
    with many(server.port, 20) as plugs:
        for plug in plugs:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            push(plug, request)
        time.sleep(3 * _SETTLED)


def slow_readers_of_tensors(server: ServerProcess) -> None:
    array = np.zeros(2**21, np.float32)
    request = b"".join(binary_request("handler_real", "FP32", array.size, array.tobytes()))
    with many(server.port, 20) as plugs:
        for plug in plugs:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            push(plug, request)
        time.sleep(_SETTLED)


def half_sent_streams(server: ServerProcess) -> None:
    part = frames.head(2**14, frames.DATA, 0, 0)[:-4]
    with many(grpc_port(server), 2) as plugs:
        for plug in plugs:
            push(plug, GREETING + OPEN_WINDOW)
            for stream in range(1, 200, 2):
                number = stream.to_bytes(4, "big")
                data = prefixed(bytes(16 * MIB))[:MIB]
                pieces = [part + number + data[at : at + 2**14] for at in range(0, MIB, 2**14)]
                push(plug, opened(stream) + b"".join(pieces))
        time.sleep(_SETTLED)


def slow_readers_over_grpc(server: ServerProcess) -> None:
    message = service_pb2.ModelInferRequest(model_name="handler_real")
    message.inputs.add(name="x", datatype="FP32", shape=[2**21])
    message.raw_input_contents.append(bytes(2**23))
    request = b"".join(grpc_message(message))
    with many(grpc_port(server), 20) as plugs:
        for plug in plugs:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            push(plug, request)
        time.sleep(_SETTLED)


NOISE = 100 * MIB
NOISY = f"""
import sys
import numpy as np
import triton_python_backend_utils as pb_utils

def shout():
    for _ in range({NOISE} // 2 // 2**16):
        sys.stdout.write(("x" * 1023 + chr(10)) * 64)
        sys.stderr.write("y" * 2**16)

shout()

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        shout()
        config.add_input({{"name": "x", "data_type": "TYPE_FP32", "dims": [1]}})
        config.add_output({{"name": "y", "data_type": "TYPE_FP32", "dims": [1]}})
        return config
    def initialize(self, args):
        shout()
    def execute(self, requests):
        shout()
        x = pb_utils.get_input_tensor_by_name(requests[0], "x")
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x.as_numpy())])]
    def finalize(self):
        shout()
"""
"""Of a probe and of a worker: by the import of its module, and by whatever they call."""


def noise(server: ServerProcess, models: Path) -> None:
    (models / "noisy" / "1").mkdir(parents=True)
    (models / "noisy" / "1" / "model.py").write_text(NOISY)
    (models / "noisy" / "config.pbtxt").write_text('backend: "python" instance_group { kind: KIND_CPU }')
    for _ in range(2):
        assert server.ask(post("/v2/repository/models/noisy/load", b"")).status == 200, server.said()[-4000:]
        answer = server.ask(infer_request("noisy", tensor("x", [1.0], [1])))
        assert answer.status == 200, answer.body
        assert server.ask(post("/v2/repository/models/noisy/unload", b"")).status == 200


SCENES = {
    # with the budgets that it fills: those of bodies, and of answers that nobody has read
    declared_and_unsent: 0,
    half_sent: 1,
    slow_readers_of_json: 2,
    slow_readers_of_tensors: 2,
    half_sent_streams: 1,
    slow_readers_over_grpc: 2,
}


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_memory_stays_within_its_budgets(server: ServerProcess, base: int, scene) -> None:  # type: ignore[no-untyped-def]
    with Peak(server) as peak:
        scene(server)
    print(f"{scene.__name__}: {(peak.most - base) / MIB:.0f} MiB above the base of {base / MIB:.0f}")
    assert peak.most <= base + SCENES[scene] * BUDGET + SPARE
    serve_one(server)
    with connect(server.port) as plug:
        plug.sendall(get("/v2/health/live"))
        assert read_answer(plug).status == 200


def test_noise_of_workers_and_probes_takes_no_memory(
    server: ServerProcess, base: int, tmp_path: Path
) -> None:
    with Peak(server) as peak:
        noise(server, tmp_path / "models")
    print(f"noise: {(peak.most - base) / MIB:.0f} MiB above the base of {base / MIB:.0f}")
    assert peak.most <= base + SPARE
    assert server.log.stat().st_size < NOISE // 4
    serve_one(server)
