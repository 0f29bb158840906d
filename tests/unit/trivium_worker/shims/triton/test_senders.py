"""Response senders: of decoupled models, of others, in coroutines, and left without their last response."""

import sys
import threading
from typing import Any

import pytest
from tests.harness.triton_child import HEAD, PREFIX, TritonChildHarness, failures, model, rows, stage

from trivium_worker.wire.values import END, Failure

__all__ = ["stage"]

DECOUPLED = {"model_transaction_policy": {"decoupled": True}}
RESPONSE = "pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.full((1, 2), {n}, 'f4'))])"
FINAL = "pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL"


def shown(parts: list[tuple[Any, bool, Any]]) -> list[Any]:
    """Values for tensors, the message of a failure, "end" for an end."""
    found: list[Any] = []
    for outcome, _, _ in parts:
        if outcome is END:
            found.append("end")
        elif isinstance(outcome, Failure):
            found.append(outcome.message)
        else:
            found.append([value for row in rows(outcome) for value in row])
    return found


# -- decoupled ---------------------------------------------------------------------------------------------


def test_any_number_of_responses_from_another_thread(stage: TritonChildHarness) -> None:
    body = (
        "import threading\n"
        "def send(sender, count):\n"
        "    for n in range(count):\n"
        f"        sender.send({RESPONSE.format(n='n')})\n"
        f"    sender.send(flags={FINAL})\n"
        "for count, request in enumerate(requests):\n"
        "    threading.Thread(target=send, args=(request.get_response_sender(), count)).start()\n"
    )
    assert stage.load(model(body), DECOUPLED).run([stage.item(n) for n in range(3)]) == [None] * 3
    assert shown(stage.sent.ended(0)) == ["end"]
    assert shown(stage.sent.ended(1)) == [[0, 0], "end"]
    assert shown(stage.sent.ended(2)) == [[0, 0], [1, 1], "end"]


def test_a_last_response_with_the_mark_and_parameters(stage: TritonChildHarness) -> None:
    body = (
        f"requests[0].get_response_sender().send(pb_utils.InferenceResponse([], None, {{'k': 1}}), {FINAL})"
    )
    stage.load(model(body), DECOUPLED).run([stage.item()])
    assert stage.sent.parts[1] == [([], True, {"k": 1})]


def test_an_error_ends_the_answer_and_nothing_is_refused_after_it(stage: TritonChildHarness) -> None:
    body = (
        "sender = requests[0].get_response_sender()\n"
        f"sender.send({RESPONSE.format(n=1)})\n"
        "sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError('no more')))\n"
        f"sender.send({RESPONSE.format(n=2)})\n"
        f"sender.send(flags={FINAL})\n"
    )
    assert stage.load(model(body), DECOUPLED).run([stage.item()]) == [None]
    assert shown(stage.sent.parts[1]) == [[1, 1], "no more"]


def test_a_decoupled_model_returns_nothing(stage: TritonChildHarness) -> None:
    body = f"return [{RESPONSE.format(n=1)} for _ in requests]"
    (said,) = failures(stage.load(model(body), DECOUPLED).run([stage.item()]))
    assert said == (
        f"{PREFIX}Python model 'm_0_0' is using the decoupled mode and the execute function must return None."
    )


def test_what_is_raised_fails_those_that_are_unfinished(stage: TritonChildHarness) -> None:
    body = (
        "first, second, third = [request.get_response_sender() for request in requests[:3]]\n"
        f"first.send({RESPONSE.format(n=1)}, {FINAL})\n"
        f"second.send({RESPONSE.format(n=2)})\n"
        "raise ValueError('boom')\n"
    )
    outcomes = stage.load(model(body), DECOUPLED).run([stage.item(n) for n in range(4)])
    assert outcomes[0] is None
    assert [said.partition("\n")[0] for said in failures(outcomes[1:])] == [f"{PREFIX}ValueError: boom"] * 3
    assert shown(stage.sent.parts[0]) == [[1, 1]]
    assert shown(stage.sent.parts[1]) == [[2, 2]]


def test_a_sender_that_is_dropped_fails_its_request(stage: TritonChildHarness) -> None:
    body = f"requests[0].get_response_sender().send({RESPONSE.format(n=1)})"
    stage.load(model(body), DECOUPLED).run([stage.item(0), stage.item(1)])
    assert shown(stage.sent.ended(0))[0] == [1, 1]
    for number in (0, 1):
        said = stage.sent.ended(number)[-1][0].message
        assert said.startswith(f"{PREFIX}the request was left without its last response")


def test_a_request_that_is_kept_may_be_answered_later(stage: TritonChildHarness) -> None:
    adapter = stage.load(model("KEPT.append(requests[0])", "KEPT = []\n"), DECOUPLED)
    item = stage.item()
    assert adapter.run([item]) == [None]
    kept = sys.modules["1.model"].KEPT
    assert not kept[0].is_cancelled()
    item.is_cancelled = True
    assert kept[0].is_cancelled()
    assert kept[0].get_response_sender().is_cancelled()
    kept[0].get_response_sender().send(flags=1)
    assert shown(stage.sent.parts[1]) == ["end"]


# -- what may not be sent ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "calls", "said"),
    [
        (DECOUPLED, "s.send(flags=4)", "Unable to send response. Unsupported flag provided."),
        (
            DECOUPLED,
            "s.send()",
            "Inference Response object must be provided when the response flags is set to zero.",
        ),
        (
            DECOUPLED,
            f"s.send(flags={FINAL})\ns.send(R)",
            "Unable to send response. Response sender has been closed.",
        ),
        (
            {},
            "s.send(R)\ns.send(R)",
            "Unable to send response. Non-decoupled model cannot send more than one response.",
        ),
        (
            {},
            f"s.send(flags={FINAL})",
            "Unable to send response. Non-decoupled model cannot send complete final before sending a response.",
        ),
        ({}, "s.send('text')", "send: response is a str; expected an InferenceResponse"),
        (
            {},
            "pb_utils.InferenceRequest(inputs=[], requested_output_names=[], model_name='x')"
            ".get_response_sender().send(R)",
            "Unable to send response. The request was made in this model: it has nobody to answer to.",
        ),
    ],
)
def test_refusals(stage: TritonChildHarness, config: dict[str, Any], calls: str, said: str) -> None:
    text = "try:\n" + "".join(f"    {line}\n" for line in calls.splitlines())
    text += "except Exception as error:\n    pb_utils.Logger.log_error(str(error))\n"
    body = f"R = {RESPONSE.format(n=1)}\ns = requests[0].get_response_sender()\n{text}"
    stage.load(model(body), config).run([stage.item()])
    assert [line.partition("] ")[2] for _, line in stage.host.lines] == [said]


# -- models that answer once -------------------------------------------------------------------------------


def test_a_sender_instead_of_a_returned_response(stage: TritonChildHarness) -> None:
    body = (
        "for request in requests:\n"
        "    sender = request.get_response_sender()\n"
        f"    sender.send({RESPONSE.format(n=5)})\n"
        f"    sender.send(flags={FINAL})\n"
    )
    assert stage.load(model(body)).run([stage.item(1), stage.item(2)]) == [None, None]
    assert stage.sent.parts[1][0][1], "the only response was not final"
    assert shown(stage.sent.parts[2]) == [[5, 5]]


def test_a_sent_and_a_returned_response(stage: TritonChildHarness) -> None:
    body = (
        f"requests[0].get_response_sender().send({RESPONSE.format(n=1)}, {FINAL})\n"
        f"return [{RESPONSE.format(n=2)} for _ in requests]\n"
    )
    first, second = stage.load(model(body)).run([stage.item(1), stage.item(2)])
    assert (first, shown(stage.sent.parts[1])) == (None, [[1, 1]])
    assert isinstance(second, Failure)
    assert "Non-decoupled model cannot send more than one response." in second.message


def test_none_beside_a_sent_response(stage: TritonChildHarness) -> None:
    body = (
        f"requests[0].get_response_sender().send({RESPONSE.format(n=1)}, {FINAL})\n"
        f"return [None, {RESPONSE.format(n=2)}]\n"
    )
    first, second = stage.load(model(body)).run([stage.item(1), stage.item(2)])
    assert (first, shown(stage.sent.parts[1]), rows(second)) == (None, [[1, 1]], [[2, 2]])


def test_a_sender_got_after_the_answer_is_closed(stage: TritonChildHarness) -> None:
    adapter = stage.load(model(f"KEPT.extend(requests)\nreturn [{RESPONSE.format(n=1)}]", "KEPT = []\n"))
    adapter.run([stage.item()])
    sender = sys.modules["1.model"].KEPT[0].get_response_sender()
    with pytest.raises(Exception, match="has been closed"):
        sender.send(flags=1)


# -- coroutines --------------------------------------------------------------------------------------------


def coroutine(body: str) -> str:
    return model(body).replace("def execute", "async def execute").replace(HEAD, HEAD + "import asyncio\n")


def test_a_coroutine_is_awaited(stage: TritonChildHarness) -> None:
    body = f"await asyncio.sleep(0)\nreturn [{RESPONSE.format(n=3)}]"
    (outcome,) = stage.load(coroutine(body)).run([stage.item()])
    assert rows(outcome) == [[3, 3]]


def test_what_a_coroutine_raises(stage: TritonChildHarness) -> None:
    (said,) = failures(stage.load(coroutine("raise ValueError('async boom')")).run([stage.item()]))
    assert said == f"{PREFIX}ValueError: async boom\n\nAt:\n  {stage.folder / 'model.py'}(6): execute\n"


def test_sys_exit_in_a_coroutine_passes(stage: TritonChildHarness) -> None:
    adapter = stage.load(coroutine("import sys\nsys.exit(4)"))
    with pytest.raises(SystemExit):
        adapter.run([stage.item()])


def test_a_decoupled_coroutine_goes_on_in_the_background(stage: TritonChildHarness) -> None:
    body = (
        "pb_utils.Logger.log_info('begun')\n"
        "while not GO.is_set():\n    await asyncio.sleep(0)\n"
        "for request in requests:\n"
        "    sender = request.get_response_sender()\n"
        f"    sender.send({RESPONSE.format(n=7)})\n"
        f"    sender.send(flags={FINAL})\n"
    )
    adapter = stage.load(coroutine(body) + "import threading\nGO = threading.Event()\n", DECOUPLED)
    assert adapter.run([stage.item(1), stage.item(2)]) == [None, None]
    sys.modules["1.model"].GO.set()
    assert shown(stage.sent.ended(1)) == shown(stage.sent.ended(2)) == [[7, 7], "end"]


@pytest.mark.parametrize("raised", ["ValueError('in the background')", "SystemExit(3)"])
def test_what_is_raised_in_the_background_fails_what_is_unanswered(
    stage: TritonChildHarness, raised: str
) -> None:
    body = f"requests[0].get_response_sender().send({RESPONSE.format(n=1)}, {FINAL})\nraise {raised}\n"
    stage.load(coroutine(body), DECOUPLED).run([stage.item(1), stage.item(2)])
    assert stage.sent.ended(2)[0][0].message.startswith(PREFIX + raised.partition("(")[0])
    assert shown(stage.sent.ended(1)) == [[1, 1]]


def test_a_coroutine_that_ends_without_answering(stage: TritonChildHarness) -> None:
    stage.load(coroutine("await asyncio.sleep(0)"), DECOUPLED).run([stage.item()])
    assert "left without its last response" in stage.sent.ended(1)[0][0].message


def test_what_still_runs_is_cancelled_at_the_end(stage: TritonChildHarness) -> None:
    text = coroutine("await asyncio.Event().wait()") + "    def finalize(self):\n        print('finalised')\n"
    adapter = stage.load(text, DECOUPLED)
    adapter.run([stage.item()])
    adapter.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "triton-loop"]
