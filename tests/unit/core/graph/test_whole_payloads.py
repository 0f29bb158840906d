"""Graphs through which payloads pass as a whole: what each step gets, functions of the graph, lists, what fails."""

import json
from dataclasses import replace

import pytest
from tests.harness.virtual_models import make_spec

from trivium.core.graph.instance import GraphInstance, takes
from trivium.core.graph.policy import faults
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, ResponsePart
from trivium.types.payload import Listed, PayloadKind, Raw, RawPart
from trivium.types.running import Batch, Executed, Part
from trivium.types.schedules import Graph, Step


def body(text, status=0, **properties):
    return Raw((RawPart(text.encode(), "text/plain"),), properties, status=status)


def model(name, source, result, **fields):
    return Step(name, "", takes=(source,), gives=result, **fields)


def function(name, sources, result):
    return Step("", "", takes=tuple(sources), gives=result, function=name)


def text(payload):
    if isinstance(payload, Listed):
        return [text(one) for one in payload.payloads]
    return bytes(payload.parts[0].data).decode()


class Play:
    """A graph whose members answer as `members` says: by a function of what they get, or by an error."""

    def __init__(self, *steps, output="out", **members):
        self.spec = replace(
            make_spec(inputs=(), outputs=()), name="g", scheduling=Graph(steps, input="in", output=output)
        )
        self.members, self.asked, self.events = members, [], []
        self.graph = GraphInstance(self.spec, self, self, lambda: 0.0)

    def submit(self, operation, sink):
        self.asked.append(operation)
        made = self.members[operation.model](operation.payload)
        sink(ResponsePart(error=made) if isinstance(made, ServeError) else ResponsePart(made))
        return self

    def cancel(self, why):
        """It has ended already."""

    def push(self, events):
        self.events += events

    def answer(self, payload):
        """What the graph makes of a request: its answer, or its error."""
        self.graph.start(Batch([1], [Infer(model="g", payload=payload)], [1]))
        ends = [event for event in self.events if isinstance(event, Executed | Part)]
        (end,) = ends
        return end.outcomes[0] if isinstance(end, Executed) else end.error


def add(letter):
    return lambda payload: body(text(payload) + letter)


def test_what_a_step_answers_is_what_the_next_one_gets():
    play = Play(model("a", "in", "x"), model("b", "x", "out"), a=add("a"), b=add("b"))
    assert text(play.answer(body("-"))) == "-ab"


def test_a_request_arrives_whole_and_an_answer_leaves_whole():
    play = Play(model("a", "in", "out"), a=lambda payload: body("made", 418, Kind="tea"))
    asked = Raw((RawPart(b"x", "a/b", "field", "f.txt"),), {"h": "1"}, (("q", "1"), ("q", "2")))
    answer = play.answer(asked)
    assert (answer.status, answer.properties) == (418, {"Kind": "tea"})
    (operation,) = play.asked
    assert (operation.payload.parts, operation.payload.query) == (asked.parts, asked.query)
    assert operation.wants is None


def test_a_status_does_not_stop_the_next_step_and_is_not_passed_on_to_it():
    play = Play(
        model("a", "in", "x"), model("b", "x", "out"), a=lambda _: body("bad", 500, code="7"), b=add("!")
    )
    assert (text(play.answer(body("-"))), play.asked[1].payload.status) == ("bad!", 0)
    assert play.asked[1].payload.properties == {"code": "7"}


def test_functions_of_the_graph_run_within_it():
    steps = (
        model("a", "in", "x"),
        model("b", "in", "y"),
        function("list", ["x", "y"], "both"),
        function("average", ["both"], "mean"),
        function("same", ["mean"], "out"),
    )

    def classes(**probabilities):
        rows = [{"className": name, "probability": value} for name, value in probabilities.items()]
        return lambda payload: body(json.dumps(rows))

    play = Play(*steps, a=classes(cat=0.75, dog=0.25), b=classes(cat=0.25, dog=0.75))
    rows = json.loads(text(play.answer(body("-"))))
    assert {row["className"]: row["probability"] for row in rows} == {"cat": 0.5, "dog": 0.5}


def test_a_member_may_take_a_list():
    steps = (
        model("a", "in", "x"),
        Step("f", "", takes=("in", "x"), gives="out", is_listed=True),
    )
    play = Play(*steps, a=add("a"), f=lambda payload: body("+".join(text(payload))))
    assert text(play.answer(body("-"))) == "-+-a"


def test_what_nobody_needs_does_not_run():
    play = Play(model("a", "in", "x"), model("b", "in", "out"), a=add("a"), b=add("b"))
    assert text(play.answer(body("-"))) == "-b"
    assert [one.model for one in play.asked] == ["b"]


def test_an_error_names_its_step():
    error = ServeError(Code.WORKER_DIED, "it died", status=503)
    play = Play(model("a", "in", "x"), model("b", "x", "out"), a=lambda _: error, b=add("b"))
    found = play.answer(body("-"))
    assert (found.code, found.status) == (Code.WORKER_DIED, 503)
    assert found.message == "In model 'g', step 'a': it died"
    assert [one.model for one in play.asked] == ["a"]


def test_a_function_that_cannot_names_itself():
    play = Play(function("average", ["in"], "out"))
    found = play.answer(body("no classes"))
    assert found.code is Code.MODEL_FAILED
    assert "step 'average': Only classifications are averaged" in found.message


def test_a_list_is_no_answer():
    found = Play(function("list", ["in", "in"], "out")).answer(body("-"))
    assert (found.code, "is a list of 2" in found.message) == (Code.MODEL_FAILED, True)


def test_a_step_names_the_standing_call_that_it_needs():
    play = Play(model("a", "in", "out", adapter="lora"), a=add("a"))
    play.answer(body("-"))
    assert play.asked[0].adapter == "lora"


def test_bodies_and_tensors_go_in():
    assert takes(Graph((), input="in", output="out")) == {PayloadKind.RAW, PayloadKind.TENSORS}
    assert takes(Graph(())) == {PayloadKind.TENSORS}


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((model("a", "nothing", "out"),), "a never runs: nothing gives nothing"),
        (
            (model("a", "x", "y"), model("b", "y", "x"), model("c", "in", "out")),
            "it waits for its own results",
        ),
        ((model("a", "in", "x"),), "the output out, which no step gives"),
        ((model("a", "in", "out"), model("b", "in", "out")), "each value from one place"),
    ],
)
def test_graphs_that_cannot_run(steps, words):
    spec = Play(*steps).spec
    found = [str(one) for one in faults(spec, {0: make_spec()})]
    assert any(words in one for one in found), found
