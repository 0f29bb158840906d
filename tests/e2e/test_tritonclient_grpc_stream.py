"""ModelStreamInfer through NVIDIA's own client: several requests on one stream, answers in parts, errors in band."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from tests.fixtures import models
from tests.harness.server_process import ServerProcess, serve, until
from tests.harness.triton_grpc import ONE_ROW, Conversation, calling, given, is_final, repeating, write_repeat
from tritonclient.utils import InferenceServerException


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("streams") / "models"
    models.identity(root, "echo", rows=16)
    models.identity(root, "slow", rows=1, delay_ms=50)
    write_repeat(root)
    return root


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serve(tmp_path_factory.mktemp("log") / "log", root) as server:
        yield server


@pytest.fixture
def talk(server: ServerProcess) -> Iterator[Conversation]:
    with calling(server.grpc_address) as client:
        talk = Conversation(client)
        yield talk
        talk.close()


def test_plain_models_answer_once_and_finally(talk: Conversation) -> None:
    for turn in range(20):
        talk.ask("echo", [given("x", np.full((1, 4), turn, np.float32))], request_id=str(turn))
    heard = [talk.hear() for _ in range(20)]
    assert {result.get_response().id for result in heard} == {str(turn) for turn in range(20)}
    assert all(is_final(result) for result in heard)
    assert all(result.as_numpy("y")[0, 0] == float(result.get_response().id) for result in heard)


def test_a_quick_answer_overtakes_a_slow_one(talk: Conversation) -> None:
    talk.ask("slow", [given("x", ONE_ROW)], request_id="slow")
    talk.ask("echo", [given("x", ONE_ROW)], request_id="quick")
    assert [talk.hear().get_response().id for _ in range(2)] == ["quick", "slow"]


def test_answers_in_parts(talk: Conversation) -> None:
    talk.ask("repeat", repeating(5, size=1), request_id="parts")
    heard = [talk.hear() for _ in range(5)]
    assert [int(result.as_numpy("index")[0]) for result in heard] == list(range(5))
    assert [is_final(result) for result in heard] == [False] * 4 + [True]
    response = heard[0].get_response()
    assert (response.id, response.model_name, response.model_version) == ("parts", "repeat", "1")


def test_two_answers_in_parts_interleave(talk: Conversation) -> None:
    for name in ("a", "b"):
        talk.ask("repeat", repeating(20, 0.01, size=1), request_id=name)
    heard = [talk.hear().get_response().id for _ in range(40)]
    assert heard.count("a") == heard.count("b") == 20
    assert heard[:20].count("a") not in (0, 20)


def test_the_empty_end_is_sent_only_if_asked_for(talk: Conversation) -> None:
    talk.ask("repeat", repeating(2), request_id="quiet")
    assert talk.indices(2) == [0, 1]
    talk.ask("repeat", repeating(2), request_id="told", enable_empty_final_response=True)
    heard = [talk.hear() for _ in range(3)]
    assert [is_final(result) for result in heard] == [False, False, True]
    end = heard[2].get_response()
    assert (end.id, end.model_name, end.model_version, len(end.outputs)) == ("told", "repeat", "", 0)
    talk.ask("repeat", repeating(0), request_id="none", enable_empty_final_response=True)
    assert is_final(talk.hear())
    assert talk.is_silent()


def test_an_error_leaves_the_stream_open(talk: Conversation) -> None:
    talk.ask("nobody", [given("x", ONE_ROW)], request_id="1")
    talk.ask("echo", [given("x", np.zeros((1, 5), np.float32))], request_id="2")
    talk.ask("echo", [given("x", ONE_ROW)], request_id="3")
    heard = [talk.hear() for _ in range(3)]
    errors = [each.message() for each in heard if isinstance(each, InferenceServerException)]
    assert len(errors) == 2
    assert "no model 'nobody'" in errors[0]
    assert "got shape [1,5]" in errors[1]
    assert heard[-1].get_response().id == "3"


def test_what_cannot_be_read_is_refused_in_band_with_its_id(server: ServerProcess) -> None:
    pb2 = triton.service_pb2
    bad = pb2.ModelInferRequest(model_name="echo", id="bad")
    bad.inputs.add(name="x", datatype="FP31", shape=[1, 4])
    good = pb2.ModelInferRequest(model_name="echo", id="good", raw_input_contents=[ONE_ROW.tobytes()])
    good.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    with grpc.insecure_channel(server.grpc_address) as channel:
        stub = triton.service_pb2_grpc.GRPCInferenceServiceStub(channel)
        first, second = list(stub.ModelStreamInfer(iter([bad, good]), timeout=120))
    assert "datatype 'FP31'" in first.error_message
    assert first.infer_response.id == "bad"
    assert second.infer_response.id == "good"


def test_errors_end_the_stream_where_the_client_wants_that(server: ServerProcess) -> None:
    with calling(server.grpc_address) as client:
        talk = Conversation(client, headers={"triton_grpc_error": "true"})
        talk.ask("echo", [given("x", ONE_ROW)])
        assert is_final(talk.hear())
        talk.ask("nobody", [given("x", ONE_ROW)])
        error = talk.hear()
        assert error.status() == "StatusCode.NOT_FOUND"
        talk.close()


def test_half_closing_waits_for_the_answers(server: ServerProcess) -> None:
    with calling(server.grpc_address) as client:
        talk = Conversation(client)
        for _ in range(5):
            talk.ask("slow", [given("x", ONE_ROW)])
        talk.ask("repeat", repeating(10, 0.02, size=1))
        talk.close()
        assert len([talk.hear() for _ in range(15)]) == 15


def test_a_stream_that_is_dropped_stops_its_model_within_one_response(
    server: ServerProcess, root: Path
) -> None:
    diary = root / "repeat" / "diary"
    with calling(server.grpc_address) as client:
        talk = Conversation(client)
        began = time.monotonic()
        talk.ask("repeat", repeating(1000, 0.1), request_id="dropped")
        assert talk.indices(3) == [0, 1, 2]
        talk.close(cancel=True)

    def sent() -> list[int]:
        lines = map(json.loads, diary.read_text().splitlines())
        return [line["sent"] for line in lines if line["id"] == "dropped"]

    until(lambda: bool(sent()), lambda: "the model goes on for nobody")
    assert sent()[0] <= 2 + (time.monotonic() - began) / 0.1  # as many as there was time for, and one


def test_a_slow_reader_bounds_the_memory(server: ServerProcess) -> None:
    """400 responses of 1 MiB for a client that reads none for three seconds: the model waits, and none is lost."""
    before = server.footprint().memory
    pb2 = triton.service_pb2
    request = pb2.ModelInferRequest(model_name="repeat", id="unread")
    for tensor in repeating(400, size=2**20):
        entry = request.inputs.add()
        entry.CopyFrom(tensor._get_tensor())
        request.raw_input_contents.append(tensor._get_content())
    with grpc.insecure_channel(server.grpc_address, [("grpc.http2.bdp_probe", 0)]) as channel:
        call = channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        stream = call(iter([request.SerializeToString()]), timeout=60)
        most = 0
        for _ in range(30):
            time.sleep(0.1)
            most = max(most, server.footprint().memory - before)
        assert sum(1 for _ in stream) == 400
        assert stream.code() is grpc.StatusCode.OK
    assert most < 100 * 2**20, f"grew by {most / 2**20:.0f} MiB"
    assert server.is_ready()
