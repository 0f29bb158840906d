"""What user code asks of the server, without one: frames out, parts of answers in, and every way that a call ends."""

import gc
import json
from types import SimpleNamespace

import pytest

from trivium_worker.runtime.adapter import Call
from trivium_worker.runtime.upward import RECEIPT, WireHost
from trivium_worker.wire import frames
from trivium_worker.wire.frames import AnswerTexts, Texts
from trivium_worker.wire.values import END, Failure, Part, Raw, Tensor

X = [Tensor("x", "UINT8", (2,), b"ab")]


class Desk:
    """A host whose frames are kept. `replies` are what comes when somebody waits for it."""

    def __init__(self):
        self.sent, self.replies = [], []
        self.host = WireHost(self, Texts(), self.needed, self.needed)

    def send(self, *pieces):
        data = b"".join(map(bytes, pieces))
        ((kind, at, end),), _ = frames.frames(data)
        self.sent.append((kind, data[at:end]))

    def needed(self):
        if self.replies:
            self.replies.pop(0)()

    def call(self, number=5, **fields):
        parent = SimpleNamespace(number=number, is_cancelled=False) if number else None
        return self.host.call(parent, Call("m", "", X, **fields))

    def reply(self, number, outcome, flags=frames.FINAL, parameters=None):
        pieces = []
        AnswerTexts().write(pieces, number, outcome, flags, parameters)
        self.host.replied(memoryview(b"".join(map(bytes, pieces))))

    def kinds(self):
        return [kind for kind, _ in self.sent]


@pytest.fixture
def desk():
    return Desk()


def read_call(body):
    number, rows, id_size, text_size, place, _, size = frames.ITEM.unpack_from(body, 0)
    at = frames.ITEM.size
    name, text = body[at : at + id_size], body[at + id_size : at + id_size + text_size]
    assert (rows, place, len(body)) == (1, frames.INLINE, at + id_size + text_size + size)
    return number, name.decode(), json.loads(text), body[at + id_size + text_size :]


def test_a_call_leaves_at_once_and_says_everything(desk):
    answers = desk.call(outputs=["y"], parameters={"a": 1}, request_id="é", timeout=2.5)
    ((kind, body),) = desk.sent
    number, name, told, data = read_call(body)
    assert (kind, name, data) == (frames.CALL, "é", b"ab")
    assert told == {
        "model": "m", "version": "", "outputs": ["y"], "parameters": {"a": 1}, "timeout": 2.5, "parent": 5,
        "tensors": [["x", "UINT8", [2], 2]],
    }  # fmt: skip
    desk.reply(number, X, parameters={"p": 1})
    (answer,) = answers
    assert (bytes(answer.payload[0].data), answer.final, answer.parameters) == (b"ab", True, {"p": 1})
    assert desk.kinds() == [frames.CALL]


def test_raw_bodies_and_callers_without_a_request(desk):
    desk.host.call(None, Call("m", "2", Raw([Part(b"body", "text/plain")])))
    _, _, told, data = read_call(desk.sent[0][1])
    assert (told["parent"], told["version"], data) == (0, "2", b"body")
    assert told["raw"]["parts"] == [["", "text/plain", "", 4]]


def test_parts_come_one_by_one(desk):
    answers = desk.call()
    for flags, outcome in ((0, X), (0, X), (frames.FINAL, END)):
        desk.replies.append(lambda flags=flags, outcome=outcome: desk.reply(1, outcome, flags))
    came = list(answers)
    assert [answer.final for answer in came] == [False, False, True]
    assert [answer.payload is None for answer in came] == [False, False, True]
    assert desk.host.open_calls() == []
    assert list(answers) == []
    assert desk.kinds() == [frames.CALL]


def test_an_error_is_raised_and_ends_it(desk):
    answers = desk.call()
    desk.reply(1, Failure("it is full", "queue full", 503))
    with pytest.raises(Failure) as caught:
        next(answers)
    error = caught.value
    assert (error.message, error.code, error.status) == ("it is full", "queue full", 503)
    assert list(answers) == []
    assert (desk.kinds(), desk.host.open_calls()) == ([frames.CALL], [])


def test_the_server_is_told_of_parts_that_were_read(desk):
    answers = desk.call()
    for value in range(RECEIPT + 1):
        desk.reply(1, X, flags=0, parameters={"number": value})
    for _ in range(RECEIPT - 1):
        next(answers)
    assert frames.HEARD not in desk.kinds()
    next(answers)
    assert desk.sent[-1] == (frames.HEARD, frames.TAKEN_BODY.pack(1, RECEIPT))
    next(answers)
    assert desk.kinds().count(frames.HEARD) == 1


def test_closing_it_hangs_up_even_before_the_first_part(desk):
    for parts in (0, 1):
        answers = desk.call()
        number = read_call(desk.sent[-1][1])[0]
        for _ in range(parts):
            desk.reply(number, X, 0)
            next(answers)
        answers.close()
        answers.close()
        assert desk.sent[-1] == (frames.HANG_UP, frames.NUMBER.pack(number))
        desk.reply(number, X)  # too late
        assert list(answers) == []
    assert desk.kinds() == [frames.CALL, frames.HANG_UP] * 2
    assert desk.host.open_calls() == []


def test_letting_go_of_it_hangs_up_with_the_next_call(desk):
    desk.call()
    gc.collect()
    assert desk.host.open_calls() == []
    assert desk.kinds() == [frames.CALL], "a destructor writes nothing: it may run in the middle of a frame"
    desk.call()
    assert desk.kinds() == [frames.CALL, frames.HANG_UP, frames.CALL]
    assert desk.sent[1][1] == frames.NUMBER.pack(1)


def test_the_end_of_its_request_ends_it(desk):
    mine, others, nobodys = desk.call(5), desk.call(6), desk.call(0)
    desk.reply(1, X, 0)
    desk.host.cancel_calls(5)
    assert not next(mine).final
    cancelled = SimpleNamespace(number=5, is_cancelled=True)
    errors = []
    for attempt in (lambda: next(mine), lambda: desk.host.call(cancelled, Call("m", "", X))):
        with pytest.raises(Failure) as caught:
            attempt()
        errors.append(caught.value)
    assert [error.code for error in errors] == ["cancelled"] * 2
    assert errors[0] is not errors[1], "each keeps where it was raised"
    assert desk.kinds().count(frames.HANG_UP) == 1
    for number, answers in ((2, others), (3, nobodys)):
        desk.reply(number, END)
        assert next(answers).final


def test_what_cannot_be_written_leaves_nothing_behind(desk):
    with pytest.raises(TypeError):
        desk.call(parameters={"a": object()})
    assert (desk.sent, desk.host.open_calls()) == ([], [])


def test_questions(desk):
    desk.replies.append(lambda: desk.reply(1, END, parameters={"ready": True, "reason": ""}))
    assert desk.host.ask("ready", model="m", version="") == {"ready": True, "reason": ""}
    assert json.loads(desk.sent[0][1]) == {"call": 1, "verb": "ready", "model": "m", "version": ""}
    desk.replies.append(lambda: desk.reply(2, Failure("no such model", "not found")))
    with pytest.raises(Failure, match="no such model"):
        desk.host.ask("load", model="m")
    assert desk.host.open_calls() == []


def test_lines_and_metrics(desk):
    desk.host.log("warning", "mind the gap")
    desk.host.measure({"kind": "counter", "name": "n", "add": 1})
    (log, line), (measure, metric) = desk.sent
    assert (log, json.loads(line)) == (frames.LOG, {"level": "warning", "message": "mind the gap"})
    assert (measure, json.loads(metric)["add"]) == (frames.MEASURE, 1)
