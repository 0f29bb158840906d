"""Streams that are not read, or in another order than they are made: nobody else waits for their readers.

Decoupled models of one instance which make one answer after another, as most do. Real clients over both wires, and
handlers that call such a model several times.
"""

import json
import random
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.harness.raw_http import HOST, PATIENCE, get, infer_request, post, reset, tensor
from tests.harness.server_process import ServerProcess, running, serve, until
from tests.harness.tritonserver import FREE, tritonserver
from tritonclient.grpc import service_pb2, service_pb2_grpc

STORY = '''
import json, numpy as np, triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Says `count` things of `size` bytes to one request after another."""

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            told = json.loads(pb_utils.get_input_tensor_by_name(request, "told").as_numpy().item())
            for number in range(told["count"]):
                said = np.array([str(number).ljust(told["size"], ".")], object)
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("said", said)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
'''
READER = '''
import json, numpy as np, triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Has several stories told at once, and hears them in the order that it is told."""

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        told = json.loads(pb_utils.get_input_tensor_by_name(request, "told").as_numpy().item())
        stories = []
        for count in told["counts"]:
            text = json.dumps({"count": count, "size": told["size"]})
            asked = pb_utils.Tensor("told", np.array([text], object))
            wanted = pb_utils.InferenceRequest(model_name="story", requested_output_names=["said"], inputs=[asked])
            stories.append(wanted.exec(decoupled=True))
        heard = {}
        for number in told["order"]:
            parts = [one.output_tensors()[0].as_numpy().item() for one in stories[number] if one.output_tensors()]
            heard[number] = [int(part.decode().rstrip(".")) for part in parts]
        text = json.dumps([heard[number] == list(range(told["counts"][number])) for number in told["order"]])
        return pb_utils.InferenceResponse([pb_utils.Tensor("said", np.array([text], object))])
'''
TEXTS = (
    'backend: "python" input { name: "told" data_type: TYPE_STRING dims: 1 } '
    'output { name: "said" data_type: TYPE_STRING dims: 1 } instance_group { kind: KIND_CPU count: 1 } '
)
MODELS = {
    "story": (TEXTS + "model_transaction_policy { decoupled: true }", STORY),
    "reader": (TEXTS, READER),
}
MUCH = {"count": 400, "size": 2**14}
"""Some 6 MB: more than sockets, windows and the memory of one stream hold."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("unread") / "models"
    for name, (config, code) in MODELS.items():
        (root / name / "1").mkdir(parents=True)
        (root / name / "config.pbtxt").write_text(config)
        (root / name / "1" / "model.py").write_text(code)
    return root


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("scratch")
    variables = {"TMPDIR": str(folder)}
    with running(folder / "log", "serve", root, variables=variables) as server:
        yield server


class HttpStream:
    """Asks the model by generate_stream, and reads nothing until it is told to."""

    def __init__(self, http: int, grpc: str, told: dict[str, Any]) -> None:
        self.plug = socket.socket()
        self.plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        self.plug.settimeout(PATIENCE)
        self.plug.connect((HOST, http))
        body = json.dumps({"told": json.dumps(told)}).encode()
        self.plug.sendall(post("/v2/models/story/generate_stream", body))

    def read(self) -> tuple[list[int], str]:
        """The numbers of all parts, and the error at the end, if there is one."""
        answer = HTTPResponse(self.plug)
        answer.begin()
        numbers, error = [], ""
        for line in answer:
            if line != b"\n":
                said = json.loads(line.removeprefix(b"data: "))
                error = said.get("error", "")
                numbers += [] if error else [int(said["said"].rstrip("."))]
        answer.close()
        self.plug.close()
        return numbers, error

    def leave(self) -> None:
        reset(self.plug)


class GrpcStream:
    """Asks the model by ModelStreamInfer, and takes no response until it is told to."""

    def __init__(self, http: int, grpc_address: str, told: dict[str, Any]) -> None:
        self.channel = grpc.insecure_channel(grpc_address, [("grpc.use_local_subchannel_pool", 1)])
        text = json.dumps(told).encode()
        request = service_pb2.ModelInferRequest(model_name="story")
        request.inputs.add(name="told", datatype="BYTES", shape=[1]).contents.bytes_contents.append(text)
        self.call = service_pb2_grpc.GRPCInferenceServiceStub(self.channel).ModelStreamInfer(iter([request]))

    def read(self) -> tuple[list[int], str]:
        numbers = []
        try:
            for response in self.call:
                if response.error_message:
                    return numbers, response.error_message
                raw = response.infer_response.raw_output_contents
                numbers += [int(raw[0][4:].rstrip(b"."))] if raw else []
        except grpc.RpcError as error:
            return numbers, error.details()
        finally:
            self.channel.close()
        return numbers, ""

    def leave(self) -> None:
        self.channel.close()


WIRES = pytest.mark.parametrize("wire", [HttpStream, GrpcStream], ids=["http", "grpc"])


def heard(http: int, grpc_address: str, count: int) -> list[int]:
    """What the model says to one who reads."""
    numbers, error = GrpcStream(http, grpc_address, {"count": count, "size": 10}).read()
    assert not error
    return numbers


@WIRES
def test_nobody_waits_for_a_stream_that_is_not_read(server: ServerProcess, wire: Any) -> None:
    unread = wire(server.port, server.grpc_address, MUCH)
    with ThreadPoolExecutor(4) as threads:
        others = [threads.submit(heard, server.port, server.grpc_address, 50) for _ in range(8)]
        assert [other.result(PATIENCE) for other in others] == [list(range(50))] * 8
    assert unread.read() == (list(range(MUCH["count"])), "")


@WIRES
def test_nor_under_the_originals_command(root: Path, tmp_path: Path, wire: Any) -> None:
    with tritonserver(tmp_path / "log", f"--model-repository={root}", *FREE) as server:
        unread = wire(server.port("http"), server.address("grpc"), MUCH)
        assert heard(server.port("http"), server.address("grpc"), 50) == list(range(50))
        assert unread.read() == (list(range(MUCH["count"])), "")


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2]], ids=str)
def test_a_handler_reads_its_streams_in_any_order(server: ServerProcess, order: list[int]) -> None:
    told = json.dumps({"counts": [300, 200, 40], "size": 2**13, "order": order})
    answer = server.ask(infer_request("reader", tensor("told", [told], [1], "BYTES")))
    assert answer.status == 200, answer
    assert json.loads(answer.document["outputs"][0]["data"][0]) == [True] * len(order)


def test_streams_of_clients_that_leave_unread_leave_no_file(server: ServerProcess) -> None:
    unread = [wire(server.port, server.grpc_address, MUCH) for wire in (HttpStream, GrpcStream) * 2]
    assert heard(server.port, server.grpc_address, 5) == list(range(5))
    for stream in unread:
        stream.leave()
    until(lambda: not files(server), lambda: f"{files(server)} are left")
    assert heard(server.port, server.grpc_address, 5) == list(range(5))


def files(server: ServerProcess) -> list[Path]:
    """Files in which parts of answers are kept."""
    folder = Path(server.process.environ()["TMPDIR"])
    return list(folder.glob("trivium-scratch-*/unread-*"))


@WIRES
def test_beyond_the_bounds_a_reader_hears_what_was_kept_and_why_no_more_came(
    root: Path, tmp_path: Path, wire: Any
) -> None:
    bounds = ("--unread-memory", "4194304", "--unread-disk", "8388608")
    with serve(tmp_path / "log", root, *bounds) as server:
        unread = wire(server.port, server.grpc_address, {"count": 2000, "size": 2**14})
        assert heard(server.port, server.grpc_address, 50) == list(range(50))
        numbers, error = unread.read()
        assert numbers == list(range(len(numbers)))
        assert 2**20 < len(numbers) * 2**14 < 2**24
        assert "while other requests wait for the model" in error


def test_a_grpc_client_that_takes_too_little_is_cut_off(root: Path, tmp_path: Path) -> None:
    """As one over HTTP is: nobody waits for the model, and yet its thread is not held for ever."""
    with serve(tmp_path / "log", root, "--write-timeout", "1") as server:
        unread = GrpcStream(server.port, server.grpc_address, {"count": 4000, "size": 2**14})
        until(lambda: failures(server) == 1, lambda: "it is held for ever")
        numbers, error = unread.read()
        assert numbers == list(range(len(numbers)))
        assert "too slowly" in error


def failures(server: ServerProcess) -> int:
    """Requests to the model that have not ended well."""
    (stats,) = server.ask(get("/v2/models/story/stats")).document["model_stats"]
    return int(stats["inference_stats"]["fail"]["count"])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_any_interleaving(server: ServerProcess, seed: int) -> None:
    """Streams of both wires that are read in any order, all at once or never, beside handlers that do so."""
    dice = random.Random(seed)
    streams = []
    for _ in range(dice.randint(1, 12)):
        wire = dice.choice([HttpStream, GrpcStream])
        told = {"count": dice.randint(1, 500), "size": dice.choice([10, 2**12, 2**16])}
        streams.append((wire(server.port, server.grpc_address, told), told["count"]))
    counts = [dice.randint(1, 300) for _ in range(4)]
    order = dice.sample(range(4), dice.randint(1, 4))
    told = json.dumps({"counts": counts, "size": 2**12, "order": order})
    answer = server.ask(infer_request("reader", tensor("told", [told], [1], "BYTES")))
    assert json.loads(answer.document["outputs"][0]["data"][0]) == [True] * len(order)
    dice.shuffle(streams)
    read = streams[: dice.randint(0, len(streams))]
    if dice.random() < 0.5:
        with ThreadPoolExecutor(len(read) or 1) as threads:
            results = list(threads.map(lambda one: one[0].read(), read))
    else:
        results = [stream.read() for stream, _ in read]
    assert results == [(list(range(count)), "") for _, count in read]
    for stream, _ in streams[len(read) :]:
        stream.leave()
    until(lambda: not files(server), lambda: f"{files(server)} are left")
