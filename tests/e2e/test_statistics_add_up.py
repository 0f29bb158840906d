"""Acceptance D of issue 4: after a known load the statistics say what was sent, over both wires, to the last request.

One server, one load in a fixed order: client batches of many sizes, merged ones, every reason for failing, hits and
misses of the cache, cancellations over both wires, answers in parts, an ensemble. Nothing here waits for a time:
a model that is told to waits for a file.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as over_grpc
import tritonclient.http as over_http
from tests.harness.raw_http import connect, infer_request, reset, tensor
from tests.harness.server_process import SECONDS, ServerProcess, serve
from tritonclient.utils import InferenceServerException

MODEL = """
import os, time, numpy as np, triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def initialize(self, args):
        self.folder = args["model_repository"]
    def execute(self, requests):
        values = [pb_utils.get_input_tensor_by_name(r, "IN").as_numpy() for r in requests]
        first = int(values[0].flat[0])
        if first == 14:
            return []
        if first >= 1000:  # waits until it may go on
            open(os.path.join(self.folder, "in%d" % first), "w").close()
            while not os.path.exists(os.path.join(self.folder, "go%d" % first)):
                time.sleep(0.001)
        return [self.one(x) for x in values]
    def one(self, x):
        if x.flat[0] == 13:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("no 13"))
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", x + 1)])
"""
PARTS = """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            x = pb_utils.get_input_tensor_by_name(r, "IN").as_numpy()
            sender = r.get_response_sender()
            for _ in range(int(x.flat[0])):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", x)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
ENDS = (
    'input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }'
)
ONE = "instance_group { kind: KIND_CPU }"
QUEUE = "max_queue_size: 3 default_timeout_microseconds: 60000000 allow_timeout_override: true"
MAPS = 'input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }'
CONFIGS = {
    "work": f'backend: "python" {ONE} dynamic_batching {{ default_queue_policy {{ {QUEUE} }} }}',
    "kept": f'backend: "python" {ONE} response_cache {{ enable: true }}',
    "parts": f'backend: "python" {ONE} model_transaction_policy {{ decoupled: true }}',
    "whole": f'platform: "ensemble" ensemble_scheduling {{ step {{ model_name: "work" model_version: -1 {MAPS} }} }}',
}
COMPUTE = ("compute_input", "compute_infer", "compute_output")
DURATIONS = ("success", "fail", "queue", *COMPUTE, "cache_hit", "cache_miss")


class Books:
    """What was sent to one model, counted here; and what it may have done with it."""

    def __init__(self) -> None:
        self.went_well = self.failed = self.rows = self.hits = self.misses = 0
        self.batches: Counter[int] = Counter()


class Load:
    """One client of each wire, and the books."""

    def __init__(self, serving: ServerProcess, root: Path) -> None:
        self.serving = serving
        self.root = root
        self.http = over_http.InferenceServerClient(serving.address, concurrency=8, network_timeout=SECONDS)
        self.grpc = over_grpc.InferenceServerClient(serving.grpc_address)
        self.books = {model: Books() for model in CONFIGS}

    def close(self) -> None:
        self.http.close()
        self.grpc.close()

    def send(self, model: str, value: int, rows: int = 1, *, grpc: bool = False, **fields: Any) -> None:
        """A request that goes well and is an execution of its own."""
        client, kind = (self.grpc, over_grpc) if grpc else (self.http, over_http)
        result = client.infer(model, [of(kind, value, rows)], **fields)
        assert result.as_numpy("OUT").tolist() == [[value + 1]] * rows
        books = self.books[model]
        books.went_well += 1
        books.rows += rows
        books.batches[rows] += 1

    def fail(self, model: str, value: int, words: str, rows: int = 1, **fields: Any) -> None:
        """A request that fails, over HTTP."""
        with pytest.raises(InferenceServerException, match=words):
            self.http.infer(model, [of(over_http, value, rows)], **fields)
        self.books[model].failed += 1

    def told(self, model: str) -> dict[str, Any]:
        """Its statistics by both wires, which must not differ."""
        (by_http,) = self.http.get_inference_statistics(model)["model_stats"]
        (by_grpc,) = self.grpc.get_inference_statistics(model).model_stats
        for name in ("inference_count", "execution_count", "last_inference", "name", "version"):
            assert by_http[name] == getattr(by_grpc, name)
        for name in DURATIONS:
            pair = getattr(by_grpc.inference_stats, name)
            assert by_http["inference_stats"][name] == {"count": pair.count, "ns": pair.ns}, name
        batches = [
            {"batch_size": row.batch_size}
            | {name: {"count": getattr(row, name).count, "ns": getattr(row, name).ns} for name in COMPUTE}
            for row in by_grpc.batch_stats
        ]
        assert by_http["batch_stats"] == batches
        return dict(by_http)

    def until(self, claim: Callable[[], object]) -> None:
        deadline = time.monotonic() + SECONDS
        while not claim():
            assert time.monotonic() < deadline, self.serving.said()
            time.sleep(0.005)

    def fails(self, model: str) -> int:
        (report,) = self.http.get_inference_statistics(model)["model_stats"]
        return int(report["inference_stats"]["fail"]["count"])

    def gate(self, value: int) -> Callable[[], None]:
        """The model `work` is busy with a request until the function that this returns is called."""
        thread = threading.Thread(target=self.send, args=("work", value), kwargs={"grpc": True})
        thread.start()
        self.until((self.root / "work" / f"in{value}").exists)

        def opened() -> None:
            (self.root / "work" / f"go{value}").touch()
            thread.join(SECONDS)

        return opened


def of(kind: Any, value: int, rows: int = 1) -> Any:
    data = kind.InferInput("IN", [rows, 1], "INT32")
    data.set_data_from_numpy(np.full((rows, 1), value, np.int32))
    return data


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Load]:
    root = tmp_path_factory.mktemp("models")
    for name, config in CONFIGS.items():
        (root / name / "1").mkdir(parents=True)
        (root / name / "config.pbtxt").write_text(f"max_batch_size: 8 {ENDS} {config}")
        if "python" in config:
            (root / name / "1" / "model.py").write_text(PARTS if name == "parts" else MODEL)
    with serve(tmp_path_factory.mktemp("log") / "log", root, "--cache-bytes", "1000000") as serving:
        load = Load(serving, root)
        try:
            yield load
        finally:
            load.close()


def test_it_adds_up(load: Load) -> None:
    sizes(load)
    failures(load)
    merged_refused_expired_cancelled(load)
    cancelled_while_it_runs(load)
    kept(load)
    parts(load)
    ensemble(load)
    for model, books in load.books.items():
        check(load.told(model), books)


def sizes(load: Load) -> None:
    for rows in (1, 2, 3, 5, 8, 8, 1):
        load.send("work", rows, rows)
        load.send("work", rows, rows, grpc=True)


def failures(load: Load) -> None:
    load.fail("work", 1, "batch", rows=9)
    bad = over_grpc.InferInput("IN", [1, 2], "INT32")
    bad.set_data_from_numpy(np.zeros((1, 2), np.int32))
    with pytest.raises(InferenceServerException):
        load.grpc.infer("work", [bad])
    load.books["work"].failed += 1
    load.fail("work", 13, "no 13", rows=2)
    load.fail("work", 14, "Number of InferenceResponse", rows=3)
    load.books["work"].batches.update({2: 1, 3: 1})


def merged_refused_expired_cancelled(load: Load) -> None:
    """While the one instance is busy three may wait, what comes beyond that is refused. One has expired before, one is
    cancelled; the two that are left run together.
    """
    opened = load.gate(1000)
    books = load.books["work"]
    before = load.fails("work")
    load.fail("work", 1, "time", timeout=2000)
    answers: dict[int, InferenceServerException | None] = {}

    def send(i: int) -> Any:
        def take(result: object, error: InferenceServerException | None) -> None:
            answers[i] = error

        return load.grpc.async_infer("work", [of(over_grpc, 7)], take)

    calls = [send(i) for i in range(5)]
    load.until(lambda: len(answers) == 2)  # then the three others wait
    assert all(error is not None for error in answers.values())
    assert load.fails("work") == before + 3
    next(call for i, call in enumerate(calls) if i not in answers).cancel()
    load.until(lambda: load.fails("work") == before + 4)
    opened()
    load.until(lambda: len(answers) == 5)
    assert list(answers.values()).count(None) == 2
    books.failed += 3
    books.went_well += 2
    books.rows += 2
    books.batches[2] += 1


def cancelled_while_it_runs(load: Load) -> None:
    """It fails at once, over either wire, and its execution counts when it is over."""
    call = load.grpc.async_infer("work", [of(over_grpc, 2000)], lambda result, error: None)
    plug = connect(load.serving.port)
    for value, leave in ((2000, call.cancel), (3000, lambda: reset(plug))):
        before = load.fails("work")
        if value == 3000:
            plug.sendall(infer_request("work", tensor("IN", [[value]], [1, 1], "INT32")))
        load.until((load.root / "work" / f"in{value}").exists)
        leave()
        load.until(lambda before=before: load.fails("work") == before + 1)  # type: ignore[misc]
        (load.root / "work" / f"go{value}").touch()
        load.books["work"].failed += 1
        load.books["work"].batches[1] += 1
    load.send("work", 3)


def kept(load: Load) -> None:
    books = load.books["kept"]
    load.send("kept", 1)
    load.send("kept", 2, 2, grpc=True)
    for _ in range(3):
        result = load.http.infer("kept", [of(over_http, 1)], request_id="other")
        assert result.as_numpy("OUT").item() == 2
    load.grpc.infer("kept", [of(over_grpc, 2, 2)])
    for _ in range(2):
        load.fail("kept", 13, "no 13")
    load.fail("kept", 1, "batch", rows=9)
    books.batches[1] += 2
    books.hits, books.misses = 4, 4
    books.went_well += 4


def parts(load: Load) -> None:
    ends: list[object] = []
    load.grpc.start_stream(lambda result, error: ends.append(error or result))
    for count in (0, 1, 5):
        load.grpc.async_stream_infer("parts", [of(over_grpc, count)], enable_empty_final_response=True)
    load.until(lambda: len(ends) == 9)
    load.grpc.stop_stream()
    books = load.books["parts"]
    books.went_well = books.rows = books.batches[1] = 3


def ensemble(load: Load) -> None:
    for rows in (1, 4):
        load.send("whole", rows, rows)
        member = load.books["work"]
        member.went_well += 1
        member.rows += rows
        member.batches[rows] += 1
    load.fail("whole", 13, "no 13")
    load.books["work"].failed += 1
    load.books["work"].batches[1] += 1


def check(told: dict[str, Any], books: Books) -> None:
    spent = told["inference_stats"]
    assert (spent["success"]["count"], spent["fail"]["count"]) == (books.went_well, books.failed), told[
        "name"
    ]
    assert told["inference_count"] == books.rows
    assert {row["batch_size"]: row["compute_infer"]["count"] for row in told["batch_stats"]} == books.batches
    for name in COMPUTE:
        assert sum(row[name]["count"] for row in told["batch_stats"]) == told["execution_count"]
        assert spent[name]["count"] == books.went_well - books.hits
    assert spent["queue"]["count"] == books.went_well
    assert (spent["cache_hit"]["count"], spent["cache_miss"]["count"]) == (books.hits, books.misses)
    assert sum(spent[name]["ns"] for name in ("queue", *COMPUTE)) <= spent["success"]["ns"]
    assert [row["batch_size"] for row in told["batch_stats"]] == sorted(books.batches)
