"""The order of loading, circles, and which steps a request needs: tables, and graphs made by chance."""

import random
from dataclasses import replace

import pytest
from tests.harness.virtual_models import X, make_spec

from trivium.core.graph.policy import (
    behind,
    can_lack,
    circle,
    examined,
    faults,
    joined,
    members,
    needed,
    waves,
)
from trivium.types.schedules import Graph, Step
from trivium.types.spec import Origin


def step(model, inputs, outputs):
    return Step(model, "", {name: name for name in inputs}, {name: name for name in outputs})


WAVES = [
    ({}, [], []),
    ({"a": (), "b": ()}, [["a", "b"]], []),
    ({"e": ("a", "b"), "a": (), "b": ()}, [["a", "b"], ["e"]], []),
    ({"f": ("e",), "e": ("a",), "a": ()}, [["a"], ["e"], ["f"]], []),
    ({"e": ("elsewhere",)}, [["e"]], []),
    ({"e": ("e",), "a": ()}, [["a"]], ["e"]),
    ({"e": ("f",), "f": ("g", "a"), "g": ("e",), "a": (), "h": ("e",)}, [["a"]], ["e", "f", "g", "h"]),
]


@pytest.mark.parametrize(("needs", "order", "stuck"), WAVES)
def test_waves(needs, order, stuck):
    assert waves(needs) == (order, stuck)


def test_a_circle_is_told_with_its_way():
    needs = WAVES[-1][0]
    assert circle("e", needs) == ("e", "f", "g", "e")
    assert circle("h", needs) == ()  # it needs a circle and is none
    assert circle("a", needs) == ()


@pytest.mark.parametrize("seed", range(50))
def test_every_model_is_loaded_after_all_that_it_needs_or_needs_a_circle(seed):
    dice = random.Random(seed)
    names = [f"m{i}" for i in range(10)]
    needs = {name: set(dice.sample(names, dice.choice([0, 0, 1, 2]))) for name in names}
    order, stuck = waves(needs)
    loaded = set()
    for wave in order:
        for name in wave:
            assert needs[name] <= loaded
        loaded |= set(wave)
    assert loaded | set(stuck) == set(names)
    for name in stuck:
        assert needs[name] & set(stuck)
    assert all(circle(name, needs) == () for name in loaded)
    assert not stuck or any(circle(name, needs) for name in stuck)


STEPS = [step("a", ["in"], ["x", "y"]), step("b", ["x"], ["out"]), step("c", ["y"], ["other"])]


@pytest.mark.parametrize(
    ("wanted", "steps", "tensors"),
    [
        (["out"], {0, 1}, {"in", "x", "out"}),
        (["other"], {0, 2}, {"in", "y", "other"}),
        (["out", "other"], {0, 1, 2}, {"in", "x", "y", "out", "other"}),
        (["in"], set(), {"in"}),
    ],
)
def test_only_the_steps_that_are_needed(wanted, steps, tensors):
    assert needed(STEPS, wanted) == (steps, tensors)


@pytest.mark.parametrize(("number", "following"), [(0, {1, 2}), (1, set()), (2, set())])
def test_the_steps_behind_a_step(number, following):
    assert behind(STEPS, number) == following
    chain = [step("c", ["y"], ["z"]), step("b", ["x"], ["y"]), step("a", ["in"], ["x"]), STEPS[2]]
    assert behind(chain, 2) == {0, 1, 3}


def graph(*steps, **fields):
    made = make_spec(**fields)
    return replace(made, name="g", scheduling=Graph(steps))


def test_members_once_each_in_order():
    spec = graph(step("b", ["x"], ["y"]), step("a", ["y"], ["z"]), step("b", ["z"], ["x2"]))
    assert members(spec) == ("b", "a")
    assert members(make_spec()) == ()


def test_a_fault_is_told_at_the_place_that_the_format_named():
    spec = replace(
        graph(step("m", ["x"], ["x2"])),
        origin={"scheduling": Origin("config.pbtxt", "", 7), "outputs": Origin("", "output")},
    )
    (finding,) = faults(replace(spec, outputs=(X, replace(X, name="lost"))), {})
    assert (finding.file, finding.line, finding.key) == ("config.pbtxt", 7, "output")
    assert "the output lost, which no step gives" in finding.found


def test_a_member_that_declares_nothing_takes_and_gives_anything():
    spec = replace(graph(step("m", ["x"], ["y"])), outputs=(replace(X, name="y"),))
    assert faults(spec, {0: make_spec(inputs=(), outputs=())}) == ()


def test_of_models_examined_together_a_graph_needs_its_members():
    member = replace(make_spec(), name="m", version="2")
    old = replace(member, version="1", inputs=(replace(X, name="other"),))
    good = graph(step("m", ["x"], ["y"]), outputs=(replace(X, name="y"),))
    good = replace(good, scheduling=Graph((Step("m", "", {"x": "x"}, {"x": "y"}),)))
    lost = replace(good, name="lost", scheduling=Graph((Step("nobody", "", {"x": "x"}, {"x": "y"}),)))
    late = replace(good, name="late", scheduling=Graph((Step("m", "3", {"x": "x"}, {"x": "y"}),)))
    above = replace(good, name="above", scheduling=Graph((Step("lost", "", {"x": "x"}, {"y": "y"}),)))
    served, broken = examined([above, old, member, good, lost, late])
    assert served == [old, member, good]
    told = {each.name: [finding.found for finding in each.findings] for each in broken}
    assert told == {
        "lost": ["the model nobody, which cannot be served"],
        "late": ["the model m version 3, which cannot be served"],
        "above": ["the model lost, which cannot be served"],
    }


def test_an_output_without_labels_has_those_of_the_member_that_makes_it():
    named, own = ("cat", "dog"), ("yes", "no")
    y, z = replace(X, name="y"), replace(X, name="z", labels=own)
    member = make_spec(outputs=(replace(X, labels=named), replace(X, name="unused", labels=named)))
    steps = Graph((Step("m", "", {"x": "x"}, {"x": "y"}), Step("m", "", {"x": "y"}, {"x": "z"})))
    whole = replace(make_spec(outputs=(X, y, z)), scheduling=steps)
    found = joined(whole, steps, {0: member, 1: replace(member, streams=True)})
    assert [output.labels for output in found.outputs] == [(), named, own]
    assert found.streams
    assert not joined(whole, steps, {0: member, 1: member}).streams


def test_a_step_can_do_without_what_its_member_takes_as_optional():
    maybe = replace(X, name="maybe", optional=True)
    member = make_spec(inputs=(X, maybe), outputs=(X,))
    steps = Graph(
        (Step("m", "", {"x": "a", "maybe": "b"}, {"x": "c"}), Step("m", "", {"x": "c", "maybe": "c"}))
    )
    whole = replace(make_spec(outputs=(replace(X, name="c"),)), scheduling=steps)
    found = joined(whole, steps, {0: member, 1: member}).scheduling.steps
    assert [step.may_lack for step in found] == [("b",), ()]
    assert [can_lack(found, name) for name in "abc"] == [False, True, False]


def test_a_graph_that_says_so_answers_in_several_parts():
    steps = Graph((Step("m", "", {"x": "x"}, {"x": "y"}),))
    assert joined(replace(make_spec(), streams=True, scheduling=steps), steps, {0: make_spec()}).streams


def test_the_hint_about_a_model_that_is_not_there_fits():
    steps = Graph((Step("m", "7", {"x": "x"}, {"x": "y"}), Step("n", "", {"x": "y"}, {"x": "z"})))
    whole = replace(make_spec(inputs=(X,)), name="whole", scheduling=steps)
    _, (broken,) = examined([whole, replace(make_spec(), name="m", version="2")])
    hints = {finding.found: finding.hint for finding in broken.findings}
    assert hints["the model m version 7, which cannot be served"] == "Name version 2, or the latest."
    assert "the folder that holds both" in hints["the model n, which cannot be served"]
