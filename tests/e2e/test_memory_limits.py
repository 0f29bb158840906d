"""Processes whose address space is limited, as `ulimit -v` does it: a stream that comes to that end says so, alone.

Handlers of both streaming dialects take memory while they answer in parts, in a worker that limits itself and in one
that has inherited the server's limit.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, IncompleteRead

import pytest
from tests.fixtures import models
from tests.harness.handlers import djl
from tests.harness.server_process import SECONDS, ServerProcess, running, until, withstanding

ROOM = 2**29
"""Bytes that a worker which limits itself may take beyond what it has."""
OF_SERVER = 4 * 2**30
"""Bytes of address space of a server, and of each of its workers: threads and libraries reserve gigabytes of it."""

LIMIT = f"""
import resource

def limit():
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + {ROOM}, resource.RLIM_INFINITY))
"""
GROW = """
def parts(grows):
    yield b"first"
    kept = []
    while grows:
        kept.append(bytes(2**25))
        if len(kept) % 4 == 0:
            yield b"more"
    yield b"last"
"""
TRITON = """
import numpy as np, triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        limit()

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            told = pb_utils.get_input_tensor_by_name(request, "told").as_numpy().item()
            for part in parts(told == b"grow"):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("said", np.array([part], object))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
DJL = """
from djl_python import Output
is_limited = False

def handle(inputs):
    global is_limited
    if not is_limited:
        is_limited = True
        limit()
    if inputs.is_empty():
        return None
    output = Output()
    output.add_stream_content(parts(inputs.get_as_bytes() == b"grow"), lambda piece: piece)
    return output
"""
CONFIG = (
    'backend: "python" input { name: "told" data_type: TYPE_STRING dims: 1 } '
    'output { name: "said" data_type: TYPE_STRING dims: 1 } instance_group { kind: KIND_CPU count: 1 } '
    "model_transaction_policy { decoupled: true }"
)
KINDS = ("triton", "djl")


def asked(server: ServerProcess, kind: str, told: str) -> bytes:
    """All that comes of a stream until its end."""
    path, body = "/predictions/grows", told
    if kind == "triton":
        path, body = "/v2/models/story/generate_stream", json.dumps({"told": told})
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)) as client:
        client.request("POST", path, body)
        try:
            return client.getresponse().read()
        except IncompleteRead as broken:  # a stream that fails has no end
            return broken.partial


@pytest.fixture(scope="module", params=["worker", "server"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("limits")
    root = folder / "models"
    models.identity(root, "echo", rows=16)
    limit, prefix = LIMIT, ()
    if request.param == "server":
        limit = "def limit():\n    pass\n"
        prefix = ("bash", "-c", f'ulimit -v {OF_SERVER // 1024}; exec "$@"', "bash")
    (root / "story" / "1").mkdir(parents=True)
    (root / "story" / "config.pbtxt").write_text(CONFIG)
    (root / "story" / "1" / "model.py").write_text(limit + GROW + TRITON)
    grows = djl(folder, "grows", limit + GROW + DJL)
    log = folder / "log"
    with running(log, "serve", "--profile", "djl", root, grows, prefix=prefix, models_raise=True) as server:
        until(server.is_ready, server.said)
        yield server


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_reaches_the_limit_says_so_and_ends_alone(server: ServerProcess, kind: str) -> None:
    assert b"last" in asked(server, kind, "well")
    before = {worker.pid for worker in server.workers()}
    with withstanding(server):
        for _ in range(2):
            told = asked(server, kind, "grow")
            assert b"first" in told
            assert b"last" not in told
            assert b"MemoryError" in told, told[-500:]
            assert b"last" in asked(server, kind, "well")
    assert {worker.pid for worker in server.workers()} == before, "a worker ended with its stream"
