"""Requests through graphs whose members answer in several parts: order, bounds, holding back, cancelling."""

import random
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.virtual_models import X, make_spec

from trivium.core.graph.instance import GraphInstance
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, ResponsePart
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Batch, Credit, Executed, Part
from trivium.types.schedules import Graph, Step

BAD = ServeError(Code.MODEL_FAILED, "as told")


def tensor(name, value):
    return Tensor(name, DataType.FP32, (2,), np.full(2, value, "<f4"))


def step(model, sources, results):
    return Step(model, "", {name: name for name in sources}, {name: name for name in results})


class Call:
    """What one step was asked, and its ticket; the test answers."""

    def __init__(self, operation, sink):
        self.model, self.operation, self.sink = operation.model, operation, sink
        self.inputs = {t.name: t.array[0] for t in operation.payload.items}
        self.is_held, self.is_over, self.why = False, False, None

    def cancel(self, why):
        if not self.is_over:
            self.is_over, self.why = True, why

    def hold(self):
        assert not self.is_over, "an operation that has ended is held"
        self.is_held = True

    def resume(self):
        self.is_held = False

    def give(self, final=True, **values):
        assert not self.is_over
        self.is_over = final
        payload = Tensors(tuple(tensor(name, value) for name, value in values.items())) if values else None
        self.sink(ResponsePart(payload, final=final))

    def end(self):
        self.give()

    def fail(self):
        self.is_over = True
        self.sink(ResponsePart(error=BAD))


class Play:
    """One graph over members that the test plays; `said` is what came of the one request."""

    def __init__(self, *steps, inputs=("in",), outputs=("out",), most=2, wanted=()):
        spec = replace(
            make_spec(inputs=tuple(replace(X, name=n) for n in inputs)),
            name="g",
            outputs=tuple(replace(X, name=n) for n in outputs),
            scheduling=Graph(steps, most),
        )
        self.calls, self.events = [], []
        self.graph = GraphInstance(spec, self, self, lambda: 0.0)
        payload = Tensors(tuple(tensor(name, 100.0) for name in inputs))
        self.graph.start(Batch([1], [Infer(model="g", payload=payload)], [1]))

    def submit(self, operation, sink):
        call = Call(operation, sink)
        self.calls.append(call)
        return call

    def push(self, events):
        self.events += events

    def call(self, model, number=0):
        """That call of a member."""
        return [call for call in self.calls if call.model == model][number]

    def count(self, model):
        return sum(call.model == model for call in self.calls)

    @property
    def said(self):
        """Values of each answer, "end" for its end without one, errors; nothing twice, nothing after the end."""
        told = []
        for event in self.events:
            if isinstance(event, Executed):
                told += [_values(event.outcomes[0]), "once"]
            elif isinstance(event, Part):
                told += [event.error or _values(event.payload)] if event.payload or event.error else []
                told += ["end"] if event.final else []
        ends = [word for word in told if word in ("once", "end")]
        assert ends == [] or (len(ends) == 1 and told[-1] == ends[0])
        assert sum(isinstance(event, Credit) for event in self.events) == len(ends)
        return told


def _values(payload):
    values = tuple(float(t.array[0]) for t in payload.items)
    return values[0] if len(values) == 1 else values


LINE = (step("many", ["in"], ["x"]), step("next", ["x"], ["out"]))


def test_steps_behind_run_once_for_each_part_and_the_end_comes_last():
    play = Play(*LINE)
    play.call("many").give(False, x=1)
    play.call("many").give(False, x=2)
    assert [call.inputs for call in play.calls[1:]] == [{"x": 1}, {"x": 2}]
    play.call("next", 0).give(out=10)
    play.call("next", 1).give(out=20)
    assert play.said == [10, 20]
    play.call("many").end()
    assert play.said == [10, 20, "end"]


def test_answers_leave_in_the_order_of_the_parts():
    play = Play(*LINE)
    play.call("many").give(False, x=1)
    play.call("many").give(True, x=2)
    play.call("next", 1).give(out=20)
    assert play.said == []
    play.call("next", 0).give(out=10)
    assert play.said == [10, 20, "end"]
    last = [event for event in play.events if isinstance(event, Part)][-1]
    assert last.final, "the last answer is known to be it, and says so"
    assert last.payload is not None


def test_a_member_that_gives_no_part_gives_no_answer():
    play = Play(*LINE)
    play.call("many").end()
    assert play.said == ["end"]
    assert play.count("next") == 0


def test_one_part_that_is_the_last_is_an_execution_like_any_other():
    play = Play(*LINE)
    play.call("many").give(x=1)
    play.call("next").give(out=10)
    assert play.said == [10, "once"]


def test_no_more_parts_are_in_work_than_may_be_and_the_member_is_held():
    play = Play(*LINE, most=2)
    many = play.call("many")
    many.give(False, x=1)
    assert not many.is_held
    many.give(False, x=2)
    assert many.is_held
    many.give(False, x=3)  # it was on its way
    assert play.count("next") == 2
    play.call("next", 1).give(out=20)  # of those in work the first is not done: it keeps its place
    assert (play.count("next"), many.is_held, play.said) == (2, True, [])
    play.call("next", 0).give(out=10)
    assert (play.count("next"), many.is_held, play.said) == (3, False, [10, 20])


def test_a_member_that_runs_ahead_of_a_step_beside_it_is_held():
    play = Play(step("many", ["in"], ["x"]), step("once", ["in"], ["y"]), step("next", ["x", "y"], ["out"]))
    for value in (1, 2, 3):
        play.call("many").give(False, x=value)
    assert play.call("many").is_held
    assert play.count("next") == 0
    play.call("once").give(y=7)
    assert [call.inputs for call in play.calls if call.model == "next"] == [
        {"x": 1, "y": 7},
        {"x": 2, "y": 7},
    ]


def test_an_output_of_a_step_beside_it_is_in_every_answer():
    play = Play(
        step("many", ["in"], ["x"]),
        step("once", ["in"], ["y"]),
        step("next", ["x"], ["out"]),
        outputs=("out", "y"),
    )
    play.call("many").give(False, x=1)
    play.call("next").give(out=10)
    assert play.said == []
    play.call("once").give(y=7)
    assert play.said == [(10, 7)]


def test_parts_of_parts():
    play = Play(*LINE, step("last", ["out"], ["end"]), outputs=("end",))
    play.call("many").give(False, x=1)
    play.call("many").give(True, x=2)
    play.call("next", 1).give(False, out=21)
    play.call("next", 1).give(True, out=22)
    play.call("next", 0).give(False, out=11)
    for call in [call for call in play.calls if call.model == "last"]:
        call.give(end=call.inputs["out"])
    assert play.said == [11]
    play.call("next", 0).end()
    assert play.said == [11, 21, 22, "end"]


def test_an_error_behind_one_part_ends_it_all():
    play = Play(*LINE)
    play.call("many").give(False, x=1)
    play.call("many").give(False, x=2)
    play.call("next", 1).fail()
    (told, end) = play.said
    assert (told.code, end) == (Code.MODEL_FAILED, "end")
    assert told.message == "In model 'g', step 'next': as told"
    assert play.call("many").why is not None
    assert play.call("next", 0).why is not None


@pytest.mark.parametrize("final", [False, True])
def test_a_part_that_lacks_an_output_fails(final):
    play = Play(*LINE)
    play.call("many").give(final, other=1)
    assert "step 'many': It answered without x." in play.said[0].message


@pytest.mark.parametrize("parts", [1, 2])
def test_what_a_step_leaves_out_is_absent_where_that_may_be(parts):
    taker = replace(step("next", ["x", "y"], ["out"]), may_lack=("y",))
    play = Play(step("many", ["in"], ["x", "y"]), taker)
    for part in range(parts):
        play.call("many").give(part == parts - 1, x=1)
        assert set(play.call("next", part).inputs) == {"x"}
        play.call("next", part).give(out=part)
    assert play.said[:parts] == list(range(parts))


def test_an_output_of_the_graph_that_a_step_leaves_out_is_left_out():
    play = Play(step("one", ["in"], ["out", "side"]), outputs=("out", "side"))
    play.call("one").give(out=1)
    assert play.said == [1, "once"]


def test_two_members_beside_each_other_with_several_parts_are_refused():
    play = Play(step("a", ["in"], ["x"]), step("b", ["in"], ["y"]), step("c", ["x", "y"], ["out"]))
    play.call("a").give(False, x=1)
    play.call("b").give(False, y=1)
    assert play.said[0].code is Code.UNSUPPORTED
    assert "step 'b': It answers in several parts, and so does step 'a'" in play.said[0].message
    assert play.call("a").why is not None


def test_cancelled_it_cancels_all_that_is_in_work():
    play = Play(*LINE)
    play.call("many").give(False, x=1)
    play.call("many").give(False, x=2)
    play.graph.cancel(1)
    assert [call.why is None for call in play.calls] == [False] * 3
    assert play.said[0].code is Code.CANCELLED
    play.graph.cancel(1)
    assert len(play.said) == 2


def test_held_it_holds_all_that_is_in_work_and_what_begins():
    play = Play(*LINE, most=2)
    play.graph.hold(1)
    assert play.call("many").is_held
    play.call("many").give(False, x=1)
    assert play.call("next").is_held
    play.graph.resume(1)
    assert not play.call("many").is_held
    assert not play.call("next").is_held
    play.call("many").give(False, x=2)
    play.graph.hold(1)
    play.graph.resume(1)
    assert play.call("many").is_held, "it runs ahead all the same"
    play.graph.hold(1)
    play.call("next", 0).give(out=10)
    assert play.call("many").is_held, "there is room, but not for the answers"
    play.graph.resume(1)
    assert not play.call("many").is_held


class Prompt(Play):
    """Members answer before `submit` returns."""

    def submit(self, operation, sink):
        call = super().submit(operation, sink)
        if call.model == "many":
            for value in (1, 2, 3):
                call.give(False, x=value)
            call.end()
        else:
            call.give(out=10 * call.inputs["x"])
        return call


def test_members_that_answer_at_once():
    assert Prompt(*LINE).said == [10, 20, 30, "end"]


@pytest.mark.parametrize("seed", range(100))
def test_whatever_the_order_answers_are_in_the_order_of_parts_and_bounded(seed):
    """A chain of three, each of which may give several parts; what happens when is left to chance."""
    dice = random.Random(seed)
    most = dice.choice([1, 2, 5])
    steps = [step("a", ["in"], ["x"]), step("b", ["x"], ["y"]), step("c", ["y"], ["z"])]
    play = Play(*steps, outputs=("z",), most=most)
    left = {}
    result = {"a": "x", "b": "y", "c": "z"}
    expected = []
    while not (play.said and play.said[-1] in ("end", "once")):
        ready = [
            call for call in play.calls if not call.is_over and not (call.is_held and dice.random() < 0.9)
        ]
        if not ready:
            assert any(not call.is_over for call in play.calls), "nothing goes on, and nothing has ended"
            continue
        call = dice.choice(ready)
        key = id(call)
        if key not in left:
            left[key] = dice.randint(0, 4)
        if left[key] == 0:
            call.end()
            continue
        left[key] -= 1
        base = call.inputs.get("x", call.inputs.get("y", 0))
        call.number = getattr(call, "number", 0) + 1
        call.give(left[key] == 0 and dice.random() < 0.5, **{result[call.model]: base * 10 + call.number})
        running = [call for call in play.calls if call.model == "b" and not call.is_over]
        assert len(running) <= most
    expected = [word for word in play.said if not isinstance(word, str)]
    assert expected == sorted(expected), "answers out of order"
    assert len(set(expected)) == len(expected)
    given = sum(getattr(call, "number", 0) for call in play.calls if call.model == "c")
    assert len(expected) == given, "an answer is lost"
    assert all(call.is_over for call in play.calls)
