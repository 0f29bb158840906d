"""preserve_ordering over real workers: answers leave as their requests came, whichever instance is done first."""

import asyncio

import pytest
from tests.harness.python_models import ask, place, scene

from trivium.types.errors import Code, ServeError
from trivium.types.operations import SequenceRef

SLEEPS = """
    def execute(self, requests):
        out = []
        for r in requests:
            x = of(r, "IN")
            time.sleep(x.item() / 1000)
            out.append(pb_utils.InferenceResponse(error=pb_utils.TritonError("odd")) if x.item() % 2 else answer(OUT=x))
        return out
"""
TWO = "instance_group { kind: KIND_CPU count: 2 }"
KINDS = {
    "dynamic": f"dynamic_batching {{ preserve_ordering: %s preferred_batch_size: 1 }} {TWO}",
    "oldest": f"sequence_batching {{ oldest {{ max_candidate_sequences: 4 preserve_ordering: %s }} }} {TWO}",
}


def run(root, kind, in_order):
    place(root, "m", SLEEPS, KINDS[kind] % in_order)
    came = []

    async def play(server):
        done = asyncio.get_running_loop().create_future()

        def take(number, part):
            came.append(number)
            if len(came) == 6:
                done.set_result(None)

        tickets = []
        for number, millis in enumerate((200, 1, 0, 2, 3, 0)):
            ref = SequenceRef(number + 1, True, True) if kind == "oldest" else None
            call = ask("m", millis, sequence=ref)
            tickets.append(server.submit(call, lambda part, number=number: take(number, part)))
            await asyncio.sleep(0.002)
        tickets[2].cancel(ServeError(Code.CANCELLED, "gone"))
        await done
        report = server.statistics("m")
        assert report.success.count + report.fail.count == 6

    scene(play, root)
    return came


@pytest.mark.parametrize("kind", KINDS)
def test_answers_leave_in_order_errors_too_and_the_cancelled_hold_up_nobody(tmp_path, kind):
    came = run(tmp_path, kind, "true")
    assert sorted(came) == list(range(6))
    assert [number for number in came if number != 2] == [0, 1, 3, 4, 5]


def test_without_it_they_do_not(tmp_path):
    assert run(tmp_path, "dynamic", "false")[-1] == 0
