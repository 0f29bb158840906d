"""The bound of an ensemble on the calls of a step, which all its requests share."""

import random
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.virtual_models import X, make_spec

from trivium.core.graph.instance import GraphInstance
from trivium.core.graph.slots import StepSlots
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, ResponsePart
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Batch, Executed, Part
from trivium.types.schedules import Graph, Step

BAD = ServeError(Code.MODEL_FAILED, "as told")


def step(model, source, result):
    return Step(model, "", {source: source}, {result: result})


LINE = (step("a", "in", "x"), step("b", "x", "out"))


class Call:
    """What a member was asked by a request; a cancelled one ends at once, as the core's do."""

    def __init__(self, operation, sink):
        self.model, self.id, self.sink, self.is_over = operation.model, operation.id, sink, False

    def cancel(self, why):
        if not self.is_over:
            self.is_over = True
            self.sink(ResponsePart(error=why))

    def hold(self):
        """It makes no more than the test wants."""

    resume = hold

    def give(self, name, final=True):
        self.is_over = final
        value = Tensor(name, DataType.FP32, (1,), np.zeros(1, "<f4"))
        self.sink(ResponsePart(Tensors((value,)), final=final))

    def end(self):
        self.is_over = True
        self.sink(ResponsePart())

    def fail(self):
        self.is_over = True
        self.sink(ResponsePart(error=BAD))


class Play:
    """One ensemble with its bound; its members are played by the test, or answer at once."""

    def __init__(self, most, is_prompt=False, steps=LINE):
        spec = replace(
            make_spec(inputs=(replace(X, name="in"),)),
            name="g",
            outputs=(replace(X, name="out"),),
            scheduling=Graph(steps, 2, step_calls=most),
        )
        self.gives = {each.model: next(iter(each.outputs)) for each in steps}
        self.calls, self.ended, self.is_prompt, self.most = [], [], is_prompt, most
        self.graph = GraphInstance(spec, self, self, lambda: 0.0)

    def ask(self, *items):
        value = Tensors((Tensor("in", DataType.FP32, (1,), np.zeros(1, "<f4")),))
        operations = [Infer(model="g", payload=value, id=str(item)) for item in items]
        self.graph.start(Batch(list(items), operations, [1] * len(items)))

    def submit(self, operation, sink):
        call = Call(operation, sink)
        self.calls.append(call)
        for model in self.gives:
            assert len(self.at(model)) <= self.most, f"{model} has more in work than it may"
        if self.is_prompt:
            call.give(self.gives[call.model])
        return call

    def push(self, events):
        for event in events:
            if isinstance(event, Executed):
                self.ended += event.items
            elif isinstance(event, Part) and event.final:
                self.ended.append(event.item)

    def at(self, model):
        return [call for call in self.calls if call.model == model and not call.is_over]


def test_a_step_has_so_many_calls_in_work_over_all_requests_and_takes_them_in_order():
    play = Play(2)
    play.ask(1, 2, 3, 4)
    assert [call.id for call in play.at("a")] == ["1", "2"]
    play.at("a")[0].give("x")
    assert [call.id for call in play.at("a")] == ["2", "3"], "who waited longest is next"
    assert [call.id for call in play.at("b")] == ["1"], "each step has slots of its own"
    while play.at("a") or play.at("b"):
        for model in "ab":
            for call in play.at(model):
                call.give(play.gives[model])
    assert sorted(play.ended) == [1, 2, 3, 4]


@pytest.mark.parametrize("how", ["fail", "cancel"])
def test_one_that_fails_or_whose_client_has_gone_gives_its_slots_back(how):
    play = Play(1)
    play.ask(1, 2, 3)
    if how == "fail":
        play.at("a")[0].fail()
    else:
        play.graph.cancel(1)
    assert [call.id for call in play.at("a")] == ["2"]
    play.graph.cancel(3)  # it waited for a slot
    play.at("a")[0].give("x")
    assert not play.at("a"), "nobody takes a slot for a request that has gone"
    play.at("b")[0].give("out")
    assert sorted(play.ended) == [1, 2, 3]


def test_members_that_answer_at_once_do_not_make_the_stack_deep():
    play = Play(1, is_prompt=True)
    play.ask(*range(3000))
    assert sorted(play.ended) == list(range(3000))
    waiting = Play(1)
    waiting.ask(*range(3000))
    waiting.is_prompt = True
    waiting.at("a")[0].give("x")
    assert sorted(waiting.ended) == list(range(3000))


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_no_step_has_more_and_nobody_waits_for_ever(seed):
    dice = random.Random(seed)
    steps = (step("a", "in", "x"), step("b", "x", "y"), step("c", "y", "out"))
    play = Play(dice.choice([1, 2, 3]), steps=steps)
    items = list(range(12))
    for item in items:
        play.ask(item)
        if dice.random() < 0.2:
            play.graph.cancel(dice.choice(items[: item + 1]))
    for _ in range(2000):
        open_calls = [call for model in play.gives for call in play.at(model)]
        if not open_calls:
            break
        call, chance = dice.choice(open_calls), dice.random()
        if chance < 0.1:
            call.fail()
        elif chance < 0.2:
            play.graph.cancel(int(call.id))
        elif call.model == "a" and chance < 0.6:
            call.give("x", final=False)  # one of several parts
        elif chance < 0.7:
            call.end()
        else:
            call.give(play.gives[call.model])
    assert sorted(set(play.ended)) == items


def test_a_slot_that_nobody_wants_any_more_goes_to_the_next():
    slots, told = StepSlots(1), []

    class Waiter:
        def __init__(self, takes):
            self.takes = takes

        def proceed(self):
            told.append(self)
            if self.takes:
                slots.take(0, self)

    first, second = Waiter(False), Waiter(True)
    assert slots.take(0, first)
    assert not slots.take(0, first)
    assert not slots.take(0, second)
    slots.free(0)
    assert told == [first, second]
    assert not slots.take(0, first)
