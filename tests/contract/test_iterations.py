"""Requests that a Python model wants back: run after run until it answers them."""

import asyncio

import pytest
from tests.harness.python_models import ask, out, place, scene

from trivium.types.errors import Code, ServeError
from trivium.types.operations import SequenceRef

MODEL = """
    def initialize(self, args):
        self.runs = {}
    def execute(self, requests):
        return [self.one(r) for r in requests]
    def one(self, r):
        wanted, key = of(r, "IN").item(), r.correlation_id()
        if not key:
            return answer(OUT=of(r, "IN"))  # a row without a request
        assert r.flags() & 1 == (key not in self.runs), (r.flags(), key)
        assert of(r, "START").item() == (key not in self.runs)
        done = self.runs[key] = self.runs.get(key, 0) + 1
        if done < wanted:
            r.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            if wanted == 66:
                os._exit(1)
            return None
        return answer(OUT=0 * of(r, "IN") + self.runs.pop(key))
"""
START = 'control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }'
KINDS = {
    "direct": f"sequence_batching {{ iterative_sequence: true {START} }}",
    "oldest": f"sequence_batching {{ iterative_sequence: true {START} oldest {{ max_candidate_sequences: 3 }} }}",
}


@pytest.mark.parametrize("kind", KINDS)
def test_many_requests_are_each_run_as_often_as_the_model_wants(tmp_path, kind):
    place(tmp_path, "m", MODEL, KINDS[kind])
    wanted = [1, 5, 2, 9, 3, 3, 1, 7, 4, 2]

    async def play(server):
        parts = await asyncio.gather(*(server.execute(ask("m", times)) for times in wanted))
        assert list(map(out, parts)) == wanted
        report = server.statistics("m")
        assert (report.success.count, report.fail.count, report.rows) == (len(wanted), 0, len(wanted))
        assert sum(batch.rows * batch.compute_infer.count for batch in report.batches) == sum(wanted)
        assert report.executions == sum(batch.compute_infer.count for batch in report.batches)
        assert report.queue.ns + report.compute_infer.ns <= report.success.ns

    scene(play, tmp_path)


def test_a_clients_sequence_goes_on_after_a_request_that_took_several_runs(tmp_path):
    place(tmp_path, "m", MODEL, KINDS["oldest"])

    async def play(server):
        ref = SequenceRef
        calls = [ask("m", 3, sequence=ref(7, True)), ask("m", 2, sequence=ref(8, True, True))]
        assert list(map(out, await asyncio.gather(*map(server.execute, calls)))) == [3, 2]
        with pytest.raises(ServeError, match="has not begun"):
            await server.execute(ask("m", 1, sequence=ref(8)))

    scene(play, tmp_path)


def test_one_that_is_given_back_can_be_cancelled_and_its_worker_may_die(tmp_path):
    place(tmp_path, "m", MODEL, KINDS["oldest"])

    async def play(server):
        with pytest.raises(ServeError) as caught:
            await server.execute(ask("m", 10**9, deadline=0.3))
        assert caught.value.code is Code.EXPIRED
        with pytest.raises(ServeError) as caught:
            await server.execute(ask("m", 66))
        assert caught.value.code is Code.WORKER_DIED
        assert out(await server.execute(ask("m", 3))) == 3

    scene(play, tmp_path)


PARTS = """
    def initialize(self, args):
        self.runs = {}
    def execute(self, requests):
        for r in requests:
            key, wanted = r.correlation_id(), of(r, "IN").item()
            done = self.runs[key] = self.runs.get(key, 0) + 1
            if done < wanted:
                r.get_response_sender().send(answer(OUT=0 * of(r, "IN") + done))
                r.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            else:
                r.get_response_sender().send(answer(OUT=0 * of(r, "IN") + done), flags=1)
"""


def test_a_decoupled_model_sends_one_part_a_run(tmp_path):
    config = KINDS["oldest"].replace(START, "") + " model_transaction_policy { decoupled: true }"
    place(tmp_path, "m", PARTS, config)

    async def play(server):
        parts, done = [], asyncio.get_running_loop().create_future()
        server.submit(ask("m", 40), lambda part: (parts.append(part), part.final and done.set_result(None)))
        await done
        assert [out(part) for part in parts if part.payload] == list(range(1, 41))
        while (report := server.statistics("m")).executions < 40:  # the last one ends behind its last part
            await asyncio.sleep(0.01)
        assert (report.executions, report.success.count, report.rows) == (40, 1, 1)

    scene(play, tmp_path)


UNASKED = """
    def execute(self, requests):
        requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        return [None]
"""


def test_a_model_that_is_not_configured_so_fails_the_request(tmp_path):
    place(tmp_path, "m", UNASKED, "")

    async def play(server):
        with pytest.raises(ServeError, match="while the model is not configured to handle such a flag"):
            await server.execute(ask("m", 2))

    scene(play, tmp_path)
