"""DJL's rolling batch in this process: what each step shows, what its items become, and the base class of handlers."""

import json
import sys

import pytest
from tests.harness.djl_child import SHIMS, DjlChildHarness, forget, raw, text

from trivium_worker.wire.values import END, Failure

COUNTS = """
import json
from djl_python import Output
LEFT, SEEN, RESETS = [], [], []
def handle(inputs):
    if inputs.is_empty():
        return None
    batch = inputs.get_batches()
    RESETS.append(inputs.get_property("reset_rollingbatch"))
    if inputs.contains_key("reset_rollingbatch") or RESETS[-1]:
        LEFT.clear()
    SEEN.append([one.get_as_string() for one in batch])
    for one in batch[len(LEFT):]:
        LEFT.append(int(one.get_as_string()))
    outputs = Output()
    for index, left in enumerate(LEFT):
        LEFT[index] = left = left - 1
        assert left >= -5, "less than nothing"
        item = {"data": "%d " % left if left % 2 == 0 else "", "last": left == 0}
        if left == -2:
            item = {"code": 429, "error": "enough", "last": True, "data": ""}
        outputs.add(Output.binary_encode(item), key="data", batch_index=index)
        outputs.add_property("batch_%d_X-Left" % index, left)
        outputs.add_property("batch_%d_Content-Type" % index, "text/plain")
    LEFT[:] = [left for left in LEFT if left not in (0, -2)]
    return outputs
"""


@pytest.fixture
def stage(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SHIMS))
    forget()
    yield DjlChildHarness(tmp_path)
    forget()


def rolling(stage, code=COUNTS, slots=3):
    return stage.adapter(code, settings={"properties": {}, "slots": slots})


def add(stage, adapter, body):
    item = stage.item(raw(str(body).encode()))
    item.number = id(item)
    adapter.add(item)
    return item


def told(stage, item):
    return [(outcome, final) for one, outcome, final in stage.sent if one is item]


def texts(stage, item):
    return [outcome if outcome is END else text(outcome) for outcome, _ in told(stage, item)]


def test_requests_join_and_leave_between_steps(stage):
    adapter = rolling(stage)
    assert (adapter.slots, adapter.step()) == (3, None)
    first = add(stage, adapter, 3)
    assert adapter.step().rows == 1
    second = add(stage, adapter, 1)
    assert adapter.step().rows == 2
    assert adapter.step().share == 0
    assert adapter.step() is None
    assert texts(stage, first) == ["2 ", "0 "]
    assert texts(stage, second) == ["0 "]
    assert [final for _, final in told(stage, first)] == [False, True]
    assert sys.modules["model"].SEEN == [["3"], ["", "1"], [""]]


def test_the_first_piece_has_the_headers(stage):
    adapter = rolling(stage)
    item = add(stage, adapter, 3)
    for _ in range(3):
        adapter.step()
    (first, _), (last, _) = told(stage, item)
    assert (first.properties["X-Left"], first.parts[0].content_type, first.status) == ("2", "text/plain", 200)
    assert not last.properties


def test_an_item_that_fails_ends_alone(stage):
    adapter = rolling(stage)
    good, bad = add(stage, adapter, 2), add(stage, adapter, -1)
    adapter.step()
    adapter.step()
    ((failure, final),) = told(stage, bad)
    assert (failure.status, failure.message, final) == (429, "enough", True)
    assert texts(stage, good) == ["0 "]


def test_what_is_raised_ends_all_and_the_handler_begins_anew(stage):
    adapter = rolling(stage)
    begun, bad = add(stage, adapter, 9), add(stage, adapter, -5)
    adapter.step()
    ((failure, _),) = told(stage, bad)
    assert (failure.status, "less than nothing" in failure.message) == (424, True)
    assert told(stage, begun)[-1][1]
    good = add(stage, adapter, 1)
    adapter.step()
    assert texts(stage, good) == ["0 "]
    assert sys.modules["model"].RESETS[-1] == "true"


def test_behind_the_first_piece_a_failure_is_the_last_one(stage):
    adapter = rolling(stage)
    item = add(stage, adapter, 5)
    adapter.step()
    add(stage, adapter, -5)
    adapter.step()
    last = json.loads(texts(stage, item)[-1])
    assert (last["code"], "less than nothing" in last["error"]) == (424, True)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ("None", 424, "returned None"),
        ("Output(500, 'no')", 500, "Batch inference failed: no"),
        ("Output()", 424, "expected: 1, actual: 0"),
        ("Output().add(b'garbage')", 424, "Output.binary_encode"),
        ("Output().error('why')", 424, "Batch inference failed"),
        ("7", 424, "Invalid output type"),
    ],
)
def test_answers_that_are_none(stage, answer, status, words):
    code = (
        "from djl_python import Output\ndef handle(inputs):\n    return None if inputs.is_empty() else %s\n"
    )
    adapter = rolling(stage, code % answer)
    item = add(stage, adapter, 1)
    adapter.step()
    ((failure, final),) = told(stage, item)
    assert isinstance(failure, Failure)
    assert (failure.status, final) == (status, True)
    assert words in failure.message
    assert adapter.step() is None


def test_an_aborted_request_is_in_no_further_step(stage):
    adapter = rolling(stage)
    item = add(stage, adapter, 100)
    adapter.step()
    assert (adapter.abort(item), adapter.abort(item)) == (1, 0)
    assert adapter.step() is None


BASE = """
from djl_python import Output
from djl_python.request import Request
from djl_python.request_io import TextInput, Token
from djl_python.rolling_batch.rolling_batch import RollingBatch, stop_on_any_exception

class Echo(RollingBatch):
    def preprocess_requests(self, requests):
        return requests

    @stop_on_any_exception
    def inference(self, requests):
        for request in self.get_new_requests(requests):
            request.words = request.input_text.split()
        for request in self.active_requests:
            word = request.words.pop(0)
            if word == "raise":
                raise ValueError("as told")
            done = not request.words
            why = "eos_token" if done else None
            request.set_next_token(Token(len(word), word + " ", -0.5), last_token=done, finish_reason=why)
        return self.postprocess_results()

batch, parameters = Echo(), %s

def handle(inputs):
    if inputs.is_empty():
        return None
    if inputs.get_property("reset_rollingbatch"):
        batch.reset()
    requests = [
        Request(TextInput(index, None, dict(parameters), input_text=one.get_as_string()))
        for index, one in enumerate(inputs.get_batches())
    ]
    outputs = Output()
    for index, result in enumerate(batch.inference(requests)):
        kind = result.pop("content_type")
        outputs.add(Output.binary_encode(result), key="data", batch_index=index)
        outputs.add_property("batch_%%d_Content-Type" %% index, kind)
    return outputs
"""


def played(stage, parameters, *prompts):
    adapter = rolling(stage, BASE % (parameters,))
    items = [add(stage, adapter, prompt) for prompt in prompts]
    while adapter.step():
        pass
    return [answer_of(stage, item) for item in items]


def answer_of(stage, item):
    last = told(stage, item)[-1][0]
    return last if isinstance(last, Failure) else "".join(texts(stage, item))


def test_the_base_class_answers_whole(stage):
    answers = played(stage, {"details": True}, "one two three", "four")
    whole = [json.loads(answer) for answer in answers]
    assert [one["generated_text"] for one in whole] == ["one two three ", "four "]
    assert whole[0]["details"]["finish_reason"] == "eos_token"
    assert whole[0]["details"]["tokens"][1] == {"id": 3, "text": "two ", "log_prob": -0.5}


def test_the_base_class_answers_in_lines(stage):
    (answer,) = played(stage, {"stream": True}, "one two")
    lines = [json.loads(line) for line in answer.splitlines()]
    assert lines == [
        {"token": {"id": 3, "text": "one ", "log_prob": -0.5}},
        {"token": {"id": 3, "text": "two ", "log_prob": -0.5}, "generated_text": "one two "},
    ]


def test_what_the_base_class_guards_is_an_error_of_its_requests(stage):
    good, bad = played(stage, {}, "one two", "raise")
    assert (bad.status, bad.message) == (424, "as told")
    assert good.status == 424


def test_the_older_form_of_the_base_class(stage):
    texts_of = "self.get_new_requests(requests, [{}] * len(requests), len(requests))"
    code = BASE.replace("self.get_new_requests(requests)", texts_of)
    made = "Request(TextInput(index, None, dict(parameters), input_text=one.get_as_string()))"
    code = code.replace(made, "one.get_as_string()")
    adapter = rolling(stage, code % {})
    item = add(stage, adapter, "one two")
    while adapter.step():
        pass
    assert json.loads("".join(texts(stage, item))) == {"generated_text": "one two "}
