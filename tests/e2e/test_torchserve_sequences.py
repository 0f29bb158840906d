"""TorchServe's sequences over the real server: a state stays with its worker, ends, is lost, bounded, and left."""

import json
import os
import queue
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.harness.server_process import until
from tests.harness.torchserve_command import TorchServeFolder, torchserve
from tests.harness.torchserve_management import INFERENCE, Managed, archive, managed

import requests

ID, START, END = "ts_request_sequence_id", "ts_request_sequence_start", "ts_request_sequence_end"
ADDS = """
import json, os, time
SUMS = {}
def handle(data, context):
    if data is None:
        return None
    answers = []
    for i, row in enumerate(data):
        name = context.get_sequence_id(i)
        body = row.get("body", row.get("data", b"0"))
        text = bytes(body).decode() if isinstance(body, (bytes, bytearray)) else str(body)
        if context.get_request_header(i, "describe") == "True":
            answers.append({"sums": len(SUMS)})
            continue
        if text == "die":
            os._exit(3)
        if text.startswith("wait for "):
            open(text[9:] + ".begun", "w").close()
            while not os.path.exists(text[9:]):
                time.sleep(0.005)
            text = "0"
        if text == "over":
            context.set_response_header(i, context.header_key_sequence_end, name)
            text = "0"
        SUMS[name] = SUMS.get(name, 0) + int(text)
        context.set_response_header(i, context.header_key_sequence_id, name)
        headers = {key: value for key, value in context.get_all_request_header(i).items() if "seq" in key.lower()}
        answers.append({"sum": SUMS[name], "pid": os.getpid(), "batch": len(data), "headers": headers})
    return answers
"""
STREAMS = """
import time
TEXT, STOPPED = {}, set()
def handle(data, context):
    if data is None:
        return None
    time.sleep(0.005)
    ids = [context.get_request_id(i) for i in range(len(data))]
    names = [context.get_sequence_id(i) for i in range(len(data))]
    for i, row in enumerate(data):
        if row:
            TEXT[ids[i]] = bytes(row["body"]).decode()
            if TEXT[ids[i]] in ("stop", "over"):
                STOPPED.add(names[i])
            if TEXT[ids[i]] == "over":
                context.set_response_header(i, context.header_key_sequence_end, names[i])
            if TEXT[ids[i]] == "strange":
                context.set_response_header(i, context.header_key_sequence_end, "nobody;;one more, ")
    ends = [name in STOPPED or TEXT[each] != "stream" for each, name in zip(ids, names)]
    context.stopping_criteria = [lambda _, end=end: end for end in ends]
    answers = ["%s," % TEXT[each] for each in ids]
    STOPPED.clear()
    return answers
"""
ASYNC = """
import asyncio
from ts.handler_utils.utils import send_intermediate_predict_response as send
GATE, SEEN = asyncio.Event(), []
class Handler:
    async def handle(self, data, context):
        text = bytes(data[0]["body"]).decode()
        SEEN.append(text)
        if text == "wait":
            await GATE.wait()
        if text == "seen":
            return [str(SEEN.count("wait"))]
        if text == "go":
            GATE.set()
        if text == "raise":
            raise ValueError("as told")
        if text == "stream":
            for each in "abc":
                send([each], context.request_ids, "ok", 200, context)
                await asyncio.sleep(0.001)
        return [text]
"""
CONFIG = "minWorkers: {workers}\nmaxWorkers: {workers}\nbatchSize: {batch}\nmaxBatchDelay: 20\nsequenceBatching: true\n"
BOUNDS = "sequenceMaxIdleMSec: {idle}\nmaxNumSequence: {most}\nmaxSequenceJobQueueSize: {waiting}\n"
REFUSED = "has no worker to serve inference request. Please use scale workers API to add workers. If this is a sequence"


def config(workers: int = 1, batch: int = 1, idle: int = 60_000, most: int = 2, waiting: int = 1) -> str:
    text = CONFIG.format(workers=workers, batch=batch)
    return text + BOUNDS.format(idle=idle, most=most, waiting=waiting)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    store = tmp_path_factory.mktemp("store")
    archive(store, "adds", code=ADDS, config=config(2, most=40, waiting=10))
    archive(store, "batched", code=ADDS, config=config(1, batch=4, most=8, waiting=10))
    archive(store, "few", code=ADDS, config=config(waiting=2))
    archive(store, "brief", code=ADDS, config=config(idle=200, most=1))
    archive(store, "old", code=ADDS, config=config(most=1) + "sequenceTimeoutMSec: 300\n")
    archive(
        store, "streams", code=STREAMS, config=config(2, most=2, waiting=4) + "continuousBatching: true\n"
    )
    archive(store, "hasty", code=ADDS, config="minWorkers: 2\nmaxWorkers: 2\nclientTimeoutInMills: 250\n")
    archive(store, "async", code=ASYNC, config="minWorkers: 1\nmaxWorkers: 1\nasyncCommunication: true\n")
    archive(store, "tickets", code=ADDS, config="minWorkers: 2\nmaxWorkers: 2\nuseJobTicket: true\n")
    log = tmp_path_factory.mktemp("log") / "log"
    with managed(log, store, store) as serving:
        until(serving.process.is_ready, serving.process.said)
        yield serving


def ask(server: Managed, model: str, text: object = 0, name: str | None = None, **headers: str) -> Any:
    """The status and the text of an answer, which is JSON where all went well."""
    named = {} if name is None else {ID: name}
    answer = server.infer(
        "POST", f"/predictions/{model}", data=str(text).encode(), headers={**named, **headers}
    )
    said = answer.json()
    return (answer.status_code, said if answer.status_code == 200 else said["message"])


def total(server: Managed, model: str, text: object = 0, name: str | None = None, **headers: str) -> int:
    status, said = ask(server, model, text, name, **headers)
    assert status == 200, said
    return int(said["sum"])


def test_sequences_add_up_each_at_one_worker(server: Managed) -> None:
    def run(number: int) -> set[int]:
        pids, sums = set(), []
        for value in range(1, 6):
            status, said = ask(server, "adds", value * number, f"s{number}")
            assert status == 200, said
            pids.add(said["pid"])
            sums.append(said["sum"])
        assert sums == [number * each for each in (1, 3, 6, 10, 15)]
        assert len(pids) == 1
        return pids

    with ThreadPoolExecutor(8) as pool:
        assert len(set.union(*pool.map(run, range(1, 17)))) == 2


def test_a_server_makes_an_id_for_who_has_none(server: Managed) -> None:
    first = server.infer("POST", "/predictions/adds", data=b"5")
    name = first.headers[ID]
    assert name.startswith("ts-seq-")
    assert first.json()["headers"] == {ID: name, START: "true"}
    status, said = ask(server, "adds", 6, name)
    assert (status, said["sum"], said["headers"]) == (200, 11, {ID: name})
    assert server.infer("POST", "/predictions/adds", data=b"5").headers[ID] != name


def test_names_of_headers_may_have_any_capitals(server: Managed) -> None:
    assert total(server, "adds", 1, **{"TS_Request_Sequence_ID": "caps"}) == 1
    assert total(server, "adds", 2, "caps") == 3


def test_a_batch_has_one_request_of_each_sequence(server: Managed) -> None:
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda i: ask(server, "batched", 1, f"b{i % 2}"), range(4)))
    assert {status for status, _ in said} == {200}
    assert sorted(each["sum"] for _, each in said) == [1, 1, 2, 2]
    assert {each["batch"] for _, each in said} <= {1, 2}


def test_a_client_of_another_protocol_has_sequences_too(server: Managed) -> None:
    body = {"inputs": [{"name": "body", "datatype": "BYTES", "shape": [1], "data": ["4"]}]}
    for expected in (4, 8):
        asked = {**body, "parameters": {"sequence_id": "v2", "sequence_start": expected == 4}}
        answer = server.infer("POST", "/v2/models/adds/infer", json=asked)
        assert answer.status_code == 200, answer.text
        assert json.loads(answer.json()["outputs"][0]["data"][0])["sum"] == expected
    assert total(server, "adds", 1, "v2") == 9


def test_too_many_sequences_are_refused_until_one_ends(server: Managed) -> None:
    assert total(server, "few", 1, "one") == total(server, "few", 1, "two") == 1
    for name in ("three", None):
        status, message = ask(server, "few", 1, name)
        assert status == 503
        assert REFUSED in message
    assert total(server, "few", 1, "one", **{END: "true"}) == 2
    assert total(server, "few", 1, "three") == 1
    assert total(server, "few", "over", "two") == 1  # the handler ends it
    assert total(server, "few", 1, "four") == 1
    assert server.describe("few?customized=true")[0]["customizedMetadata"] == {"sums": 4}
    for name in ("three", "four"):
        assert total(server, "few", 0, name, **{END: "TRUE"}) == 1


def test_a_full_sequence_refuses_and_the_others_go_on(server: Managed, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with ThreadPoolExecutor(4) as pool:
        runs = pool.submit(ask, server, "few", f"wait for {gate}", "full")
        until(Path(f"{gate}.begun").exists, server.process.said)
        wait = [pool.submit(ask, server, "few", 1, "full") for _ in range(2)]
        until(lambda: _waiting(server, "few") == 2, server.process.said)
        status, message = ask(server, "few", 1, "full")
        other = pool.submit(ask, server, "few", 7, "other")
        gate.touch()
        assert (status, REFUSED in message) == (503, True)
        assert [each.result()[1]["sum"] for each in (runs, *wait)] in ([0, 1, 2], [0, 2, 1])
        assert other.result()[0] == 200
    for name in ("full", "other"):
        total(server, "few", 0, name, **{END: "true"})


def _waiting(server: Managed, model: str) -> int:
    return int(server.describe(model)[0]["jobQueueStatus"]["pendingRequests"])


def test_an_idle_sequence_gives_its_place_to_another(server: Managed) -> None:
    assert total(server, "brief", 1, "one") == 1
    until(lambda: ask(server, "brief", 1, "two")[0] == 200, server.process.said)


def test_an_old_sequence_gives_its_place_to_another(server: Managed) -> None:
    assert total(server, "old", 1, "one") == 1
    until(lambda: ask(server, "old", 1, "two")[0] == 200, server.process.said)


def test_a_sequence_whose_worker_dies_begins_anew(server: Managed) -> None:
    assert total(server, "adds", 5, "dies") == 5
    beside = [f"beside{i}" for i in range(4)]
    pids = {name: ask(server, "adds", 3, name)[1]["pid"] for name in beside}
    dead = ask(server, "adds", 0, "dies")[1]["pid"]
    status, message = ask(server, "adds", "die", "dies")
    assert (status, message.startswith("Worker died.")) == (500, True)
    assert (
        total(server, "adds", 1, "dies") == 1
    )  # its state is gone, and not that of those at the other worker
    for name in beside:
        assert total(server, "adds", 1, name) == (1 if pids[name] == dead else 4)
    assert server.infer("GET", "/ping").json() == {"status": "Healthy"}


def test_a_client_that_leaves_takes_its_request_and_not_its_sequence(server: Managed, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    assert total(server, "adds", 1, "left") == 1
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.post(
            f"{server.process.url}/predictions/adds",
            f"wait for {gate}",
            headers={ID: "left"},
            timeout=(5, 0.3),
        )
    gate.touch()
    assert total(server, "adds", 2, "left") == 3


def test_a_request_stops_the_stream_of_another_in_its_sequence(server: Managed) -> None:
    url = f"{server.process.url}/predictions/streams"
    with (
        requests.post(url, b"stream", headers={ID: "one"}, stream=True, timeout=60) as one,
        requests.post(url, b"stream", headers={ID: "two"}, stream=True, timeout=60) as two,
    ):
        assert next(one.iter_content(7)) == next(two.iter_content(7)) == b"stream,"
        assert requests.post(url, b"x", headers={ID: "three"}, timeout=60).status_code == 503
        assert requests.post(url, b"stop", headers={ID: "one"}, timeout=60).text == "stop,"
        assert set(one.content.split(b",")) <= {b"stream", b""}
        assert requests.post(url, b"over", headers={ID: "two"}, timeout=60).text == "over,"
        assert set(two.content.split(b",")) <= {b"stream", b""}
    assert requests.post(url, b"x", headers={ID: "three"}, timeout=60).text == "x,"
    for name in ("one", "three"):
        assert requests.post(url, b"over", headers={ID: name}, timeout=60).text == "over,"


def test_the_end_of_a_sequence_that_there_is_not_is_nobodys(server: Managed) -> None:
    url = f"{server.process.url}/predictions/streams"

    def asked(text: bytes, name: str) -> tuple[int, str]:
        answer = requests.post(url, text, headers={ID: name}, timeout=60)
        return answer.status_code, answer.text

    with requests.post(url, b"stream", headers={ID: "one"}, stream=True, timeout=60) as one:
        assert next(one.iter_content(7)) == b"stream,"
        assert asked(b"strange", "two") == (200, "strange,")
        assert asked(b"x", "three")[0] == 503  # neither of the two has ended
        assert asked(b"over", "two") == (200, "over,")
        assert asked(b"over", "one") == (200, "over,")
        assert set(one.content.split(b",")) <= {b"stream", b""}
    assert asked(b"over", "three") == (200, "over,")


def test_a_stream_of_requests_over_grpc_is_a_sequence(server: Managed) -> None:
    def message(text: bytes, name: str = "rpc", model: str = "adds", **inputs: bytes) -> dict[str, Any]:
        return {"model_name": model, "sequence_id": name, "input": {"data": text, **inputs}}

    with server.rpcs() as rpcs:
        said = [json.loads(each.prediction) for each in rpcs.sequence(*map(message, (b"1", b"2", b"3")))]
        assert [each["sum"] for each in said] == [1, 3, 6]
        assert said[0]["headers"] == {ID: "rpc"}
        assert total(server, "adds", 4, "rpc") == 10  # the call has ended, and not the sequence
        (last,) = rpcs.sequence(message(b"1", **{END: b"true"}))
        assert json.loads(last.prediction)["headers"] == {ID: "rpc", END: "true"}
        (first,) = rpcs.sequence(message(b"7", "", **{START: b"true"}))
        assert first.sequence_id.startswith("ts-seq-")
        assert total(server, "adds", 1, first.sequence_id) == 8
        wrong = [message(b"1", ""), message(b"1", model="nope"), message(b"5", "right")]
        answers = rpcs.sequence(*wrong)
        assert sorted(each.status.message for each in answers) == [
            "",
            "Model not found: nope",
            "Parameter sequenceId is required.",
        ]
        assert json.loads(next(each.prediction for each in answers if each.prediction))["sum"] == 5
        (died,) = rpcs.sequence(message(b"die", "right"))
        assert (died.status.code, died.status.message) == (13, "Worker died.")


def test_with_tickets_nobody_waits_for_a_worker(server: Managed, tmp_path: Path) -> None:
    gates = [tmp_path / "one", tmp_path / "two"]
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(ask, server, "tickets", f"wait for {gate}") for gate in gates]
        until(lambda: all(map(os.path.exists, [f"{gate}.begun" for gate in gates])), server.process.said)
        status, message = ask(server, "tickets")
        assert (status, REFUSED in message) == (503, True)
        gates[0].touch()
        assert runs[0].result()[0] == 200
        until(lambda: ask(server, "tickets")[0] == 200, server.process.said)
        gates[1].touch()
        assert runs[1].result()[0] == 200


def test_a_model_gives_its_clients_so_much_time(server: Managed, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with server.rpcs() as rpcs:
        status, message = ask(server, "hasty", f"wait for {gate}")
        assert (status, "its deadline of 0.25 s" in message) == (408, True)
        code, text = rpcs.predict(model_name="hasty", input={"data": b"wait for " + bytes(gate)})
        assert (code, "RequestTimeoutException" in text) == ("DEADLINE_EXCEEDED", True)
    status, message = ask(server, "hasty")  # both workers are busy for nobody
    assert status == 408
    gate.touch()
    until(lambda: ask(server, "hasty")[0] == 200, server.process.said)


def test_an_asynchronous_handler_has_many_requests_at_once(server: Managed) -> None:
    with ThreadPoolExecutor(30) as pool, server.rpcs() as rpcs:
        waiting = [pool.submit(server.predict, "async", "wait") for _ in range(30)]
        until(lambda: server.predict("async", "seen")[1] == "30", server.process.said)
        status, said = server.predict("async", "raise")
        assert (status, json.loads(said)["message"].startswith("Prediction failed")) == (503, True)
        assert rpcs.stream(model_name="async", input={"body": b"stream"}) == [b"a", b"b", b"c", b"stream"]
        streamed = server.infer("POST", "/predictions/async", data=b"stream")
        assert (streamed.text, streamed.headers["ts_stream_next"]) == ("abcstream", "true")
        assert server.predict("async", "go") == (200, "go")
        assert {each.result() for each in waiting} == {(200, "wait")}


def test_the_description(server: Managed) -> None:
    (about,) = server.describe("old")
    keys = (
        "stateful",
        "sequenceMaxIdleMSec",
        "sequenceTimeoutMSec",
        "maxNumSequence",
        "maxSequenceJobQueueSize",
    )
    assert [about[key] for key in keys] == [True, 60_000, 300, 1, 1]


def test_a_server_that_goes_down_ends_the_streams_of_requests(tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    folder.model("adds", ADDS, config())
    asked: queue.Queue[Any] = queue.Queue()
    asked.put(INFERENCE["PredictionsRequest"](model_name="adds", sequence_id="s", input={"data": b"4"}))
    with torchserve(folder, "--models", "adds") as server:
        until(lambda: "Model adds loaded" in server.said(), server.said)
        with grpc.insecure_channel(f"127.0.0.1:{server.port('gRPC inference')}") as channel:
            method = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/StreamPredictions2"
            call = channel.stream_stream(
                method,
                lambda message: message.SerializeToString(),
                INFERENCE["PredictionResponse"].FromString,
            )
            answers = call(iter(asked.get, None))
            assert json.loads(next(answers).prediction)["sum"] == 4
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(grpc.RpcError) as caught:
                next(answers)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            asked.put(None)


def test_the_command_names_the_headers_and_ends_with_sequences_open(tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    folder.model("adds", ADDS, config(most=3))
    gate = tmp_path / "gate"
    names = "".join(f"ts_header_key_sequence_{each}=my-seq-{each}\n" for each in ("id", "start", "end"))
    text = f"disable_token_authorization=true\n{names}"
    with torchserve(folder, "--models", "adds", text=text) as server, ThreadPoolExecutor(1) as pool:

        def post(body: str, **headers: str) -> requests.Response:
            url = f"http://127.0.0.1:{server.port('Inference')}/predictions/adds"
            return requests.post(url, body.encode(), headers=headers, timeout=60)

        until(lambda: post("0", **{"my-seq-end": "true"}).status_code == 200, server.said)
        first = post("5")
        assert first.json()["headers"].keys() == {"my-seq-id", "my-seq-start"}
        name = first.headers["my-seq-id"]
        assert post("6", **{"my-seq-id": name}).json()["sum"] == 11
        open_one = pool.submit(post, f"wait for {gate}", **{"my-seq-id": name})
        until(Path(f"{gate}.begun").exists, server.said)
        server.process.send_signal(signal.SIGTERM)
        gate.touch()
        assert open_one.result().json()["sum"] == 11
