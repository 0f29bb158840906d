"""Whoever reads slowly stops the model that answers: real workers, a receiver that is the test."""

import asyncio

import numpy as np
import pytest
from tests.harness.triton_server import serving

from trivium.core.workers import watch
from trivium.core.workers.watch_policy import Verdict
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium_worker.wire.frames import WINDOW
from trivium_worker.wire.window import BYTES

LEFT = ServeError(Code.CANCELLED, "by the test")
MANY = """
import json, threading, numpy as np, triton_python_backend_utils as pb_utils
from pathlib import Path
class TritonPythonModel:
    '''Sends the numbers from 0 on, as many as told, each so many times; notes how many it has sent.'''
    def initialize(self, args):
        self.notes = Path(args["model_repository"]) / "sent"
    def execute(self, requests):
        for request in requests:
            work = threading.Thread(target=self.send, args=(request, request.get_response_sender()))
            work.start()
            if not json.loads(request.parameters()).get("aside"):
                work.join()
    def send(self, request, sender):
        told = json.loads(request.parameters())
        sent = 0
        for i in range(told["parts"]):
            if request.is_cancelled() and not told.get("deaf"):
                break
            tensor = pb_utils.Tensor("x", np.full([1, told.get("size", 1)], i, np.float32))
            sender.send(pb_utils.InferenceResponse([tensor]))
            sent += 1
            self.note(request, sent)
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        self.note(request, "%d and done" % sent)
    def note(self, request, what):
        note = Path("%s.%s" % (self.notes, request.request_id()))
        new = Path("%s.new" % note)  # whoever looks sees one note or the other, whole
        new.write_text(str(what))
        new.replace(note)
"""
RELAY = """
import json, numpy as np, triton_python_backend_utils as pb_utils
class TritonPythonModel:
    '''Passes on what the other model answers, one by one.'''
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            call = pb_utils.InferenceRequest(
                model_name="many", request_id="relayed", requested_output_names=["x"],
                inputs=[pb_utils.get_input_tensor_by_name(request, "n")], parameters=json.loads(request.parameters()))
            for answer in call.exec(decoupled=True):
                if answer.has_error():
                    break
                if answer.output_tensors():
                    sender.send(answer)
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
ADD = """
import json, numpy as np, time, triton_python_backend_utils as pb_utils
class TritonPythonModel:
    '''Adds a thousand; takes longer for even numbers.'''
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            if x.flat[0] % 2 == 0:
                time.sleep(0.002)
            if x.flat[0] == json.loads(request.parameters()).get("fail"):
                answers.append(pb_utils.InferenceResponse([], pb_utils.TritonError("sixty-six")))
            else:
                answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x + 1000)]))
        return answers
"""
CONFIG = """
backend: "python" max_batch_size: 8
input { name: "n" data_type: TYPE_FP32 dims: 1 } output { name: "x" data_type: TYPE_FP32 dims: -1 }
model_transaction_policy { decoupled: true } instance_group { kind: KIND_CPU }
"""
ADD_CONFIG = """
backend: "python" max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: -1 } output { name: "y" data_type: TYPE_FP32 dims: -1 }
instance_group { kind: KIND_CPU count: 3 }
"""
GRAPH = """
platform: "ensemble" max_batch_size: 8
input { name: "n" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: -1 }
ensemble_scheduling {
  max_inflight_requests: 3
  step { model_name: "many" model_version: -1
    input_map { key: "n" value: "n" } output_map { key: "x" value: "each" } }
  step { model_name: "add" model_version: -1
    input_map { key: "x" value: "each" } output_map { key: "y" value: "y" } }
}
"""
MODELS = {
    "many": (CONFIG, MANY),
    "relay": (CONFIG, RELAY),
    "add": (ADD_CONFIG, ADD),
    "graph": (GRAPH, None),
}
SETTLED = 0.1
"""Seconds after which a model that has not gone on is taken to wait. A slow machine makes the tests weaker, not red."""


class Reader:
    """Asks a model, and keeps what it answers."""

    def __init__(self, server, root, model, name="one", **told):
        self.root, self.name, self.parts = root, name, []
        payload = Tensors.of({"n": np.zeros((1, 1), "<f4")})
        self.ticket = server.submit(
            Infer(model=model, payload=payload, id=name, parameters=told), self.parts.append
        )

    def sent(self, model="many", name=None):
        """What the model has noted: parts sent, and whether it is done."""
        note = self.root / model / f"sent.{name or self.name}"
        return note.read_text() if note.exists() else "0"

    @property
    def values(self):
        return [int(part.payload.items[0].array.flat[0]) for part in self.parts if part.payload is not None]

    @property
    def is_over(self):
        return bool(self.parts) and self.parts[-1].final

    async def stands(self, model="many", name=None):
        """Wait until the model sends no more, and return how many parts it has sent."""
        count = "0"
        while count != self.sent(model, name) or count == "0":
            count = self.sent(model, name)
            await asyncio.sleep(SETTLED)
        return int(count.split()[0])

    async def fills(self, count):
        """Wait until the model has sent so many parts to a reader that is full, and sends no more."""
        assert await self.stands() == count
        assert not self.parts, "who is full gets nothing"

    async def until(self, holds):
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.002)


def scene(play, root, *names):
    for name in names:
        config, code = MODELS[name]
        (root / name / "1").mkdir(parents=True)
        (root / name / "config.pbtxt").write_text(config)
        if code is not None:
            (root / name / "1" / "model.py").write_text(code)

    async def run():
        async with serving(root) as server:
            await play(server, lambda *words, **told: Reader(server, root, *words, **told))

    asyncio.run(run())


def test_a_model_whose_reader_is_full_sends_no_more_than_its_window(tmp_path):
    async def play(server, ask):
        one = ask("many", parts=200)
        one.ticket.hold()
        await one.fills(WINDOW)
        await one.until(lambda: one.sent() == str(WINDOW))
        one.ticket.resume()
        await one.until(lambda: len(one.parts) > WINDOW)
        one.ticket.hold()
        held = len(one.parts)
        assert await one.stands() <= held + 2 * WINDOW
        assert len(one.parts) == held
        one.ticket.resume()
        await one.until(lambda: one.is_over)
        assert one.values == list(range(200))
        await one.until(lambda: one.sent() == "200 and done")

    scene(play, tmp_path, "many")


def test_the_run_deadline_does_not_count_while_a_reader_is_full(tmp_path, monkeypatch):
    looks = []

    def judge(view, limits, now):
        looks.append(view.busy_since)
        return Verdict.NOTHING, ""

    async def play(server, ask):
        one = ask("many", parts=50)
        one.ticket.hold()
        await one.fills(WINDOW)
        looks.clear()
        await one.until(lambda: len(looks) >= 3)
        assert set(looks) == {None}
        looks.clear()
        resumed = asyncio.get_running_loop().time()
        one.ticket.resume()
        await one.until(lambda: one.is_over)
        assert all(since is None or since >= resumed for since in looks)
        assert one.values == list(range(50))

    monkeypatch.setattr(watch, "judge", judge)
    monkeypatch.setattr(watch, "SECONDS", 0.01)
    scene(play, tmp_path, "many")


def test_held_while_it_waits_in_the_queue(tmp_path):
    async def play(server, ask):
        first, second = ask("many", "first", parts=100), ask("many", "second", parts=100)
        first.ticket.hold()
        second.ticket.hold()
        await first.stands()
        assert second.parts == []
        first.ticket.resume()
        await second.fills(WINDOW)
        assert first.is_over
        second.ticket.resume()
        await second.until(lambda: second.is_over)
        assert second.values == list(range(100))

    scene(play, tmp_path, "many")


def test_a_reader_that_is_full_holds_no_other_request_of_the_same_worker(tmp_path):
    async def play(server, ask):
        slow, quick = (
            ask("many", "slow", parts=100, aside=True),
            ask("many", "quick", parts=100, aside=True),
        )
        slow.ticket.hold()
        await quick.until(lambda: quick.is_over)
        await slow.stands()
        assert not slow.parts
        slow.ticket.resume()
        await slow.until(lambda: slow.is_over)
        assert slow.values == quick.values == list(range(100))

    scene(play, tmp_path, "many")


def test_of_large_parts_fewer_are_on_their_way(tmp_path):
    async def play(server, ask):
        one = ask("many", parts=20, size=BYTES // 4)
        one.ticket.hold()
        await one.fills(1)
        one.ticket.resume()
        await one.until(lambda: one.is_over)
        assert one.values == list(range(20))

    scene(play, tmp_path, "many")


@pytest.mark.parametrize("deaf", [False, True])
def test_a_model_that_waits_for_its_reader_hears_that_it_has_left(tmp_path, deaf):
    async def play(server, ask):
        one = ask("many", parts=100, deaf=deaf)
        one.ticket.hold()
        await one.fills(WINDOW)
        one.ticket.cancel(LEFT)
        assert one.parts[-1].error is LEFT
        # The part that waited is the last: nobody wants it. A model that does not ask goes on, and reaches nobody.
        await one.until(lambda: one.sent().endswith("done"))
        assert one.sent() == ("100 and done" if deaf else f"{WINDOW + 1} and done")
        assert len(one.parts) == 1
        other = ask("many", "other", parts=3)
        await other.until(lambda: other.is_over)
        assert other.values == [0, 1, 2]
        assert server.statistics("many").failures == {"cancelled": 1}

    scene(play, tmp_path, "many")


def test_a_model_that_calls_another_is_no_place_to_pile_up_answers(tmp_path):
    async def play(server, ask):
        one = ask("relay", parts=500)
        one.ticket.hold()
        ahead = await one.stands("many", "relayed")
        # The relay's own, one that it tries to send, those that it has been sent, and those on their way to it.
        assert WINDOW < ahead <= 4 * WINDOW
        one.ticket.resume()
        await one.until(lambda: one.is_over)
        assert one.values == list(range(500))

    scene(play, tmp_path, "many", "relay")


def test_the_answers_of_an_ensemble_are_those_of_its_members_parts_in_order(tmp_path):
    async def play(server, ask):
        one = ask("graph", parts=60)
        await one.until(lambda: one.is_over)
        assert one.values == list(range(1000, 1060))
        report = server.statistics("graph")
        assert (report.success.count, report.fail.count) == (1, 0)
        assert server.statistics("add").success.count == 60

    scene(play, tmp_path, "many", "add", "graph")


def test_an_ensemble_whose_reader_is_full_stands_still(tmp_path):
    async def play(server, ask):
        one = ask("graph", parts=500)
        one.ticket.hold()
        await one.until(lambda: int(one.sent()) >= WINDOW)
        await one.stands()
        assert int(one.sent()) <= 2 * WINDOW  # it was asked to stand still with its first answer
        assert len(one.parts) <= 2 * WINDOW
        one.ticket.resume()
        await one.until(lambda: one.is_over)
        assert one.values == list(range(1000, 1500))

    scene(play, tmp_path, "many", "add", "graph")


def test_an_error_behind_a_part_ends_the_ensemble_and_its_members(tmp_path):
    async def play(server, ask):
        one = ask("graph", parts=100_000, fail=66)
        await one.until(lambda: one.is_over)
        assert one.parts[-1].error.message == "In model 'graph', step 'add': sixty-six"
        assert one.values == list(range(1000, 1000 + len(one.values)))
        await one.until(lambda: one.sent().endswith("done"))
        assert int(one.sent().split()[0]) < 1000

    scene(play, tmp_path, "many", "add", "graph")


def test_a_cancelled_ensemble_stops_its_members(tmp_path):
    async def play(server, ask):
        one = ask("graph", parts=50)
        one.ticket.hold()
        await one.stands()
        one.ticket.cancel(LEFT)
        await one.until(lambda: one.sent().endswith("done"))
        # Two windows stand full; what the cancellation takes out of one may be sent anew until the sender hears of it.
        assert int(one.sent().split()[0]) <= 3 * WINDOW
        assert server.statistics("many").failures == {"cancelled": 1}
        assert server.statistics("graph").failures == {"cancelled": 1}

    scene(play, tmp_path, "many", "add", "graph")
