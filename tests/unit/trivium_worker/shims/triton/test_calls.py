"""Calls to other models from inside one, and what a model asks of the server about them."""

import sys
from typing import Any

import pytest
from tests.harness.triton_child import HEAD, TritonChildHarness, fp32, model, rows, stage

from trivium_worker.runtime.adapter import Answer
from trivium_worker.wire.values import Failure, Item, Part, Raw

__all__ = ["stage"]

MAKE = (
    "request = pb_utils.InferenceRequest(model_name='other', requested_output_names=['OUT'],\n"
    "    inputs=[pb_utils.Tensor('X', np.ones((1, 2), 'f4'))])\n"
)
DECOUPLED = {"model_transaction_policy": {"decoupled": True}}


def answer(*values: float, final: bool = True) -> Answer:
    return Answer([fp32("OUT", list(values))], final, {})


def say(expression: str) -> str:
    """User code that tells the test what it sees."""
    return f"pb_utils.Logger.log_info(repr({expression}))\n"


def said(stage: TritonChildHarness) -> list[Any]:
    return [eval(line.partition("] ")[2]) for _, line in stage.host.lines]  # noqa: S307 - our own text


DONE = "return [pb_utils.InferenceResponse() for _ in requests]\n"


def test_a_call_passes_everything_on(stage: TritonChildHarness) -> None:
    body = (
        "request = pb_utils.InferenceRequest('q', 0, [pb_utils.Tensor('X', np.ones((1, 2), 'f4'))], ['A', 'B', 'A'],\n"
        "    'other', 3, 0, 2500, pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0),\n"
        "    pb_utils.InferenceTrace(), {'k': True})\n"
        "response = request.exec()\n"
        "out = pb_utils.get_output_tensor_by_name(response, 'OUT')\n"
        + say(
            "[response.has_error(), response.error(), response.parameters(), out.as_numpy().tolist(), out.is_cpu()]"
        )
        + say(
            "[request.request_id(), request.timeout(), request.parameters(), sorted(request.requested_output_names()), "
            "request.is_cancelled(), request.flags(), request.correlation_id(), request.trace().get_context()]"
        )
        + DONE
    )
    stage.host.answers["other"] = [Answer([fp32("OUT", [3.0, 4.0])], True, {"p": 1})]
    item = stage.item()
    stage.load(model(body)).run([item])
    assert said(stage) == [
        [False, None, '{"p": 1}', [[3.0, 4.0]], True],
        ["q", 2500, '{"k": true}', ["A", "B"], False, 0, 0, None],
    ]
    (call,) = stage.host.calls
    (tensor,) = call.pop("payload")
    assert (tensor.name, tensor.array().tolist()) == ("X", [[1.0, 1.0]])
    assert call == {
        "parent": item,
        "model": "other",
        "version": "3",
        "outputs": ["A", "B"],
        "parameters": {"k": True},
        "request_id": "q",
        "timeout": 0.0025,
        "sequence": None,
        "trace": 0,
        "one": True,
        "form": False,
    }
    assert stage.host.closed == 1


@pytest.mark.parametrize(
    ("answers", "code", "text"),
    [
        (Failure("no such model", "not found"), "NOT_FOUND", "no such model"),
        (Failure("held by its own ancestors", "queue full"), "UNAVAILABLE", "held by its own ancestors"),
        (Failure("it raised"), "INTERNAL", "it raised"),
        ([], "INTERNAL", "Model 'other' ended its answer without a response."),
        ([Answer(None, True, {})], "INTERNAL", "Model 'other' ended its answer without a response."),
        ([answer(1, 1, final=False), answer(2, 2)], "INTERNAL", "Call it with decoupled=True"),
    ],
)
def test_what_goes_wrong_is_in_the_response(
    stage: TritonChildHarness, answers: Any, code: str, text: str
) -> None:
    body = (
        MAKE
        + "error = request.exec().error()\n"
        + say(
            "[error.message(), error.code().name, error.code() == "
            "getattr(pb_utils.TritonError, error.code().name)]"
        )
        + DONE
    )
    stage.host.answers["other"] = answers
    stage.load(model(body)).run([stage.item()])
    ((message, name, is_constant),) = said(stage)
    assert (name, is_constant) == (code, True)
    assert text in message
    assert stage.host.closed == 1


def test_one_response_and_an_end_is_an_answer(stage: TritonChildHarness) -> None:
    stage.host.answers["other"] = [answer(1, 2, final=False), Answer(None, True, {})]
    stage.load(model(MAKE + say("request.exec().has_error()") + DONE)).run([stage.item()])
    assert said(stage) == [False]


def test_a_body_becomes_one_tensor(stage: TritonChildHarness) -> None:
    stage.host.answers["other"] = [Answer(Raw([Part(b"text")]), True, {})]
    body = MAKE + "(t,) = request.exec().output_tensors()\n" + say("[t.name(), t.as_numpy().tolist()]") + DONE
    stage.load(model(body)).run([stage.item()])
    assert said(stage) == [["output", [b"text"]]]


def test_the_responses_of_a_decoupled_model(stage: TritonChildHarness) -> None:
    body = (
        MAKE
        + "responses = request.exec(decoupled=True)\n"
        + "for _ in range(2):\n"
        + "    seen = [[t.as_numpy().tolist() for t in r.output_tensors()] for r in responses]\n    "
        + say("seen")
        + DONE
    )
    stage.host.answers["other"] = [
        answer(1, 1, final=False),
        answer(2, 2, final=False),
        Answer(None, True, {}),
    ]
    stage.load(model(body)).run([stage.item()])
    once = [[[[1.0, 1.0]]], [[[2.0, 2.0]]], []]
    assert said(stage) == [once, once]


def test_a_decoupled_call_that_fails(stage: TritonChildHarness) -> None:
    body = MAKE + say("[r.error().message() for r in request.exec(decoupled=True)]") + DONE
    stage.host.answers["other"] = Failure("gone", "worker died")
    stage.load(model(body)).run([stage.item()])
    assert said(stage) == [["gone"]]


def test_a_decoupled_call_that_is_cancelled(stage: TritonChildHarness) -> None:
    body = (
        MAKE
        + "responses = request.exec(decoupled=True)\nfirst = next(responses)\nresponses.cancel()\n"
        + say("[(r.has_error(), r.error().code().name) for r in responses]")
        + DONE
    )
    stage.host.answers["other"] = [answer(1, 1, final=False)] * 5
    stage.load(model(body)).run([stage.item()])
    assert said(stage) == [[(True, "CANCELLED")]]
    assert stage.host.closed == 1


def test_async_calls_run_beside_one_another(stage: TritonChildHarness) -> None:
    body = (
        MAKE
        + "responses = await asyncio.gather(request.async_exec(), request.async_exec())\n"
        + say("[r.has_error() for r in responses]")
        + "many = await request.async_exec(decoupled=True)\n"
        + say("len(list(many))")
        + DONE
    )
    stage.host.answers["other"] = [answer(1, 1)]
    item = stage.item()
    text = model(body).replace("def execute", "async def execute").replace(HEAD, HEAD + "import asyncio\n")
    stage.load(text).run([item])
    assert said(stage) == [[False, False], 1]
    assert [call["parent"] for call in stage.host.calls] == [item] * 3


@pytest.mark.parametrize("method", ["initialize(self, args)", "finalize(self)"])
def test_no_calls_while_loading_or_unloading(stage: TritonChildHarness, method: str) -> None:
    rest = f"    def {method}:\n" + "".join(
        f"        {line}\n"
        for line in (
            MAKE
            + "try:\n    request.exec()\nexcept pb_utils.TritonModelException as error:\n    "
            + say("str(error)")
        ).splitlines()
    )
    stage.load(model(DONE, rest)).close()
    stage.adapters.clear()
    assert said(stage) == ["BLS is only supported during the 'execute' function."]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("model_name='x'", "inputs is a NoneType; expected a list of Tensor"),
        ("inputs=[], requested_output_names=[]", "model_name is a NoneType; expected a str"),
        ("model_name='x', requested_output_names=[], inputs=[3]", "inputs holds a int; expected Tensor"),
        ("model_name='x', requested_output_names=[], inputs=set()", "inputs is a set; expected a list"),
        ("model_name='x', requested_output_names=[3], inputs=[]", "holds a int; expected str"),
        ("model_name='x', requested_output_names='abc', inputs=[]", "is a str; expected a list of str"),
        (
            "model_name='x', requested_output_names=[''], inputs=[]",
            "name for request with id '' and model name 'x' should not be empty.",
        ),
        *(
            (f"model_name='x', requested_output_names=[], inputs=[], {more}", text)
            for more, text in (
                ("timeout=1.5", "timeout is a float; expected an int"),
                ("timeout=-1", "timeout is -1; expected 0 to"),
                ("flags=2**32", "flags is 4294967296; expected 0 to 4294967295"),
                ("model_version='1'", "model_version is a str; expected an int"),
                ("request_id=3", "request_id is a int; expected a str"),
                ("trace=3", "trace is a int; expected InferenceTrace"),
                ("preferred_memory=3", "preferred_memory is a int; expected PreferredMemory"),
            )
        ),
        (
            "model_name='x', requested_output_names=[], inputs=[], correlation_id=1.5",
            "Correlation ID must be",
        ),
        (
            "model_name='x', requested_output_names=[], inputs=[], correlation_id=-1",
            "correlation_id is -1; expected 0 to 18446744073709551615",
        ),
        ("model_name='x', requested_output_names=[], inputs=[], parameters={1: 2}", "to have type str"),
        ("model_name='x', requested_output_names=[], inputs=[], parameters={'a': []}", "bool/int/str"),
        ("model_name='x', requested_output_names=[], inputs=[], parameters=[1]", "expected a dict"),
    ],
)
def test_requests_that_cannot_be_made(stage: TritonChildHarness, arguments: str, text: str) -> None:
    (outcome,) = stage.load(model(f"pb_utils.InferenceRequest({arguments})")).run([stage.item()])
    assert isinstance(outcome, Failure)
    assert text in outcome.message


def test_a_client_s_request_is_not_executed_again(stage: TritonChildHarness) -> None:
    (outcome,) = stage.load(model("requests[0].exec()")).run([stage.item()])
    assert isinstance(outcome, Failure)
    assert "make an InferenceRequest" in outcome.message


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ("correlation_id=5, flags=1", (5, True, False)),
        ("correlation_id='five', flags=3", ("five", True, True)),
        ("correlation_id=5", (5, False, False)),
        ("flags=1", None),
    ],
)
def test_a_call_has_its_place_in_a_sequence(stage: TritonChildHarness, told: str, place: object) -> None:
    body = MAKE.replace("model_name", f"{told}, model_name") + "request.exec()\n" + DONE
    stage.host.answers["other"] = [answer(1, 1)]
    stage.load(model(body)).run([stage.item()])
    ((call),) = stage.host.calls
    assert call["sequence"] == place


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ("pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE", "not configured to handle such a flag"),
        ("9", "flags 9"),
    ],
)
def test_release_flags(stage: TritonChildHarness, flags: str, text: str) -> None:
    body = f"requests[0].set_release_flags(1)\nrequests[0].set_release_flags({flags})"
    (outcome,) = stage.load(model(body)).run([stage.item()])
    assert isinstance(outcome, Failure)
    assert text in outcome.message


# -- on whose behalf ---------------------------------------------------------------------------------------


def test_a_call_goes_on_where_the_first_client_leaves(stage: TritonChildHarness) -> None:
    first, second = stage.item(1), stage.item(2)

    def leaves(parent: Item) -> Any:
        if parent is first:
            first.is_cancelled = True
            return Failure("The request that made this call was cancelled.", "cancelled")
        return [answer(8, 8)]

    stage.host.answers["other"] = leaves
    body = MAKE + "response = request.exec()\nreturn [response for _ in requests]"
    outcomes = stage.load(model(body)).run([first, second])
    assert rows(outcomes[1]) == [[8.0, 8.0]]
    assert [call["parent"] for call in stage.host.calls] == [first, second]


def test_a_call_of_nobody_s_fails(stage: TritonChildHarness) -> None:
    item = stage.item()
    item.is_cancelled = True
    stage.host.answers["other"] = Failure("abandoned", "cancelled")
    stage.load(model(MAKE + say("request.exec().error().message()") + DONE)).run([item])
    assert said(stage) == ["abandoned"]


@pytest.mark.parametrize("open_ones", [1, 2])
def test_a_thread_calls_for_the_only_open_request(stage: TritonChildHarness, open_ones: int) -> None:
    body = (
        "KEPT.extend(request.get_response_sender() for request in requests)\n"
        "def call():\n" + "".join(f"    {line}\n" for line in MAKE.splitlines()) + "    request.exec()\n"
        "THREADS.append(threading.Thread(target=call))\n"
    )
    adapter = stage.load(model(body, "import threading\nKEPT, THREADS = [], []\n"), DECOUPLED)
    stage.host.answers["other"] = [answer(1, 1)]
    items = [stage.item(number) for number in range(open_ones)]
    adapter.run(items)
    thread = sys.modules["1.model"].THREADS[0]
    thread.start()
    thread.join()
    assert [call["parent"] for call in stage.host.calls] == [items[0] if open_ones == 1 else None]
    for sender in sys.modules["1.model"].KEPT:
        sender.send(flags=1)


def test_names_may_be_the_bytes_that_a_tensor_holds(stage: TritonChildHarness) -> None:
    body = (
        "request = pb_utils.InferenceRequest(\n"
        "    request_id=b'q', inputs=[pb_utils.Tensor(b'X', np.ones((1, 2), 'f4'))],\n"
        "    requested_output_names=[b'OUT', 'OUT'], model_name='\u00f6ther'.encode())\n"
        "request.exec()\n" + say("[request.request_id(), request.inputs()[0].name()]") + DONE
    )
    stage.host.answers["\u00f6ther"] = [Answer([fp32("OUT", [3.0, 4.0])], True, {})]
    stage.load(model(body)).run([stage.item()])
    assert said(stage) == [["q", "X"]]
    (call,) = stage.host.calls
    assert (call["model"], call["outputs"]) == ("\u00f6ther", ["OUT"])
