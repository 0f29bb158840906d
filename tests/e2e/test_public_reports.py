"""What people have reported of the originals: requests that never end, and servers that die of clients who leave.

Each report is made again with small models of our own, under the original's own command.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.harness.raw_http import ask, connect, infer_request, post, reset, tensor
from tests.harness.server_process import SECONDS, until
from tests.harness.torchserve_command import TorchServeFolder, torchserve
from tests.harness.triton_grpc import Conversation, calling, given
from tests.harness.triton_http import write
from tests.harness.tritonserver import tritonserver

ONE = """
backend: "python"
max_batch_size: 0
input { name: "x" data_type: TYPE_INT32 dims: 1 }
output { name: "y" data_type: TYPE_INT32 dims: 1 }
"""
DOUBLES = """
import time, triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.02)
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x * 2)]))
        return answers
"""
CALLS = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x")
            call = pb_utils.InferenceRequest(model_name="doubles", requested_output_names=["y"], inputs=[x])
            y = pb_utils.get_output_tensor_by_name(call.exec(), "y").as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", y + 1)]))
        return answers
"""
THREADS = """
import threading, time, triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.answer, args=(request,), daemon=True).start()
        return None

    def answer(self, request):
        sender = request.get_response_sender()
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        time.sleep(0.01)
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", x * 2)]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
FETCHES = """
import queue, threading, time, numpy as np, triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.found = queue.Queue()
        threading.Thread(target=self.fetch, daemon=True).start()

    def fetch(self):
        number = 0
        while number < 20:
            x = pb_utils.Tensor("x", np.array([number], np.int32))
            call = pb_utils.InferenceRequest(model_name="doubles", requested_output_names=["y"], inputs=[x])
            try:
                answer = call.exec()
            except pb_utils.TritonModelException as error:
                assert "only supported during the 'execute' function" in str(error)
                time.sleep(0.01)
                continue
            if answer.has_error():  # that model may not be ready yet
                time.sleep(0.01)
                continue
            self.found.put(pb_utils.get_output_tensor_by_name(answer, "y").as_numpy())
            number += 1

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", self.found.get(timeout=60))]) for _ in requests]
"""
LIMITED = """
instance_group {{ kind: KIND_CPU count: 1 rate_limiter {{ resources {{ name: "R1" count: 1 }} priority: {} }} }}
"""


def asked(port: int, model: str, x: int) -> int:
    answer = ask(port, infer_request(model, tensor("x", [x], [1], "INT32")))
    assert answer.status == 200, answer
    return int(answer.document["outputs"][0]["data"][0])


def test_models_that_hold_a_resource_and_call_one_that_needs_none(tmp_path: Path) -> None:
    """triton-inference-server/server#8358: whoever waits for the resource keeps the model that its holder calls from
    running, for ever.
    """
    root = tmp_path / "models"
    write(
        root,
        "doubles",
        ONE + "instance_group { kind: KIND_CPU count: 1 rate_limiter { priority: 9 } }",
        DOUBLES,
    )
    write(root, "b", ONE + LIMITED.format(5), CALLS)
    write(root, "c", ONE + LIMITED.format(1), CALLS)
    words = (f"--model-repository={root}", "--rate-limit=execution_count", "--rate-limit-resource=R1:1")
    with tritonserver(tmp_path / "log", *words) as server, ThreadPoolExecutor(12) as threads:
        port = server.port("http")
        answers = [threads.submit(asked, port, "bc"[x % 2], x) for x in range(60)]
        assert [answer.result(SECONDS) for answer in answers] == [2 * x + 1 for x in range(60)]


def test_a_decoupled_model_with_threads_under_streams_that_come_and_go(tmp_path: Path) -> None:
    """triton-inference-server/server#5951: it hangs after some minutes at 100 requests a second, and a new client is
    not heard any more.
    """
    root = tmp_path / "models"
    write(root, "threads", ONE + "model_transaction_policy { decoupled: true }", THREADS)
    with tritonserver(tmp_path / "log", f"--model-repository={root}") as server:
        for is_rude in (True, False, True, False):
            with calling(server.address("grpc")) as client:
                talk = Conversation(client)
                for x in range(200):
                    talk.ask("threads", [given("x", np.array([x], np.int32), "INT32")])
                heard = [int(talk.hear().as_numpy("y")[0]) for _ in range(20 if is_rude else 200)]
                talk.close(cancel=is_rude)
            assert set(heard) <= {2 * x for x in range(200)}
            assert len(set(heard)) == len(heard)


def test_a_model_whose_own_thread_calls_another(tmp_path: Path) -> None:
    """triton-inference-server/server#5815: such a call, outside of `execute`, never returns. It is
    refused while the model is initialized, and answered from then on.
    """
    root = tmp_path / "models"
    write(root, "doubles", ONE, DOUBLES)
    write(root, "fetches", ONE, FETCHES)
    words = (
        f"--model-repository={root}",
        *("--model-control-mode=explicit", "--load-model=doubles", "--load-model=fetches"),
    )
    with tritonserver(tmp_path / "log", *words) as server:
        answers = [asked(server.port("http"), "fetches", 0) for _ in range(20)]
        assert answers == [2 * number for number in range(20)]


def test_http_clients_that_leave_have_their_requests_cancelled(tmp_path: Path) -> None:
    """triton-inference-server/server#3581, #8030 and #8982: over HTTP the server does not notice that its client has
    left, and computes on, also for those that have not begun.
    """
    root, diary = tmp_path / "models", tmp_path / "diary"
    diary.touch()
    code = DOUBLES.replace("time.sleep(0.02)", f"time.sleep(0.3); open({str(diary)!r}, 'a').write('x')")
    write(root, "slow", ONE, code)
    request = infer_request("slow", tensor("x", [1], [1], "INT32"))
    with tritonserver(tmp_path / "log", f"--model-repository={root}") as server:
        port = server.port("http")
        assert asked(port, "slow", 4) == 8
        leaving = []
        for _ in range(50):
            plug = connect(port)
            plug.sendall(request)
            leaving.append(plug)
        until(lambda: len(diary.read_text()) > 1, server.said)
        for plug in leaving:
            reset(plug)
        assert asked(port, "slow", 5) == 10
        assert len(diary.read_text()) < 10


@pytest.mark.parametrize("timeout", [-1, 0, 30])
def test_scaling_down_to_nothing_while_requests_wait(tmp_path: Path, timeout: int) -> None:
    """pytorch/serve#1101: workers end at once, whatever the time-out says, and requests that wait are lost."""
    folder = TorchServeFolder(tmp_path)
    folder.model(
        "slow", "import time\ndef handle(data, context):\n    time.sleep(0.3)\n    return data and ['done']\n"
    )
    with (
        torchserve(folder, "--models", "slow", "--enable-model-api") as server,
        ThreadPoolExecutor(8) as threads,
    ):
        server.serves("slow")
        answers = [threads.submit(server.predict, "slow") for _ in range(7)]
        until(lambda: any(answer.done() for answer in answers), server.said)
        query = f"min_worker=0&max_worker=0&synchronous=true&timeout={timeout}"
        scaled = server.ask("Management", "PUT", f"/models/slow?{query}")
        statuses = [answer.result(SECONDS).status for answer in answers]
    assert scaled.status == 200, scaled
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) >= 1


def test_workers_live_on_when_clients_give_up(tmp_path: Path) -> None:
    """pytorch/serve#1815 and #2814: clients with short deadlines that cancel leave workers dead, and no request is
    answered any more.
    """
    folder = TorchServeFolder(tmp_path)
    answer = "return data and [str(os.getpid())] * len(data)"
    code = f"import os, time\ndef handle(data, context):\n    time.sleep(0.1)\n    {answer}\n"
    folder.model(
        "slow", code, "batchSize: 4\nmaxBatchDelay: 20\nresponseTimeout: 5\nminWorkers: 1\nmaxWorkers: 1\n"
    )
    with torchserve(folder, "--models", "slow") as server:
        server.serves("slow")
        first = server.predict("slow").body
        port = server.port("Inference")
        for _ in range(100):
            plug = connect(port)
            plug.sendall(post("/predictions/slow", b"x"))
            time.sleep(0.01)
            reset(plug)
        begun = time.monotonic()
        assert server.predict("slow").body == first
        assert time.monotonic() - begun < SECONDS
