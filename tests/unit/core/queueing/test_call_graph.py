"""Which upward calls could never be served: by tables, and against a simulation of who waits for whom."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.core.queueing.call_graph import CallGraph, PendingCall, is_held
from trivium.types.errors import Code, ServeError
from trivium.types.operations import CallRef


class Model:
    """Instances by the items that they hold; `queue` by number."""

    def __init__(self, name, *instances, grows=False):
        self.name, self.instances, self.can_grow = name, [set(items) for items in instances], grows

    def holders(self):
        return self.instances

    def beside(self, call):
        return next((items for items in self.instances if call in items), ())


class CallsHarness:
    """`calls` are rows of parent, number and model."""

    def __init__(self, *rows):
        self.ended = []
        self.calls = CallGraph()
        for parent, number, model in rows:
            ref = CallRef((parent,), ("p",))
            self.calls.begun(
                PendingCall(number, model.name, model, ref, lambda why, n=number: self.end(n, why))
            )

    def end(self, number, why):
        self.ended.append((number, why))
        for parent, calls in list(self.calls.waiting.items()):
            if number in calls:
                self.calls.ended(number, CallRef((parent,), ("p",)))

    def holds(self, model, *path):
        return is_held(model, frozenset(path), self.calls.waiting)


def test_a_free_instance_or_one_to_come_serves():
    assert not CallsHarness().holds(Model("a", [1], []), 1)
    assert not CallsHarness().holds(Model("a", [1], grows=True), 1)
    assert not CallsHarness().holds(Model("a"), 1), "it is given up, which others say"


def test_itself():
    assert CallsHarness().holds(Model("a", [1]), 1)
    assert CallsHarness().holds(Model("a", [1], [2]), 1, 2)
    assert CallsHarness().holds(Model("a", [1, 5]), 1), "the batch ends as one"
    assert not CallsHarness().holds(Model("a", [1], [7]), 1)


def test_round_three_corners():
    a, b = Model("a", [1]), Model("b", [2])
    scene = CallsHarness((1, 2, b))
    assert scene.holds(a, 1, 2)
    assert scene.holds(Model("c", [3]), 3) is True
    assert not scene.holds(Model("c", [9]), 1, 2)


def test_an_instance_with_many_items_in_work_waits_for_any_one_of_them():
    full = Model("a", [1], [5])  # one group per item, as a full instance has
    assert not CallsHarness().holds(full, 1), "5 comes to its end"
    assert CallsHarness().holds(full, 1, 5)
    assert CallsHarness((5, 20, full)).holds(full, 1), "5 waits for it as well"


def test_two_that_wait_for_each_other():
    a, b = Model("a", [1]), Model("b", [2])
    assert not CallsHarness().holds(b, 1)
    assert CallsHarness((1, 10, b)).holds(a, 2)
    assert not CallsHarness((1, 10, Model("b", [2], [3]))).holds(a, 2), "the other one of b comes free"


def test_a_diamond_is_none():
    d = Model("d", [30])
    scene = CallsHarness((1, 20, Model("b", [20])), (20, 30, d), (1, 21, Model("c", [21])))
    assert not scene.holds(d, 1, 21)


def test_a_call_that_runs_waits_for_its_own_instance_only():
    x, b = Model("x", [3]), Model("b", [2], [])
    scene = CallsHarness((1, 2, b), (2, 10, x))
    assert scene.holds(Model("a", [1]), 3), "the free instance of b does not help 1"


def test_many_callers_do_not_make_it_slow():
    levels = [Model(str(level), *([100 * level + i] for i in range(100))) for level in range(5)]
    rows = [
        (100 * level + i, 10_000 + 100 * level + i, levels[level + 1])
        for level in range(4)
        for i in range(100)
    ]
    assert not CallsHarness(*rows).holds(levels[0], 7)
    rows += [(400 + i, 20_000 + i, levels[0]) for i in range(99)]
    assert CallsHarness(*rows).holds(levels[0], 499)


def test_the_chain_is_named():
    scene, a = CallsHarness(), Model("a", [1])
    with pytest.raises(ServeError) as caught:
        scene.calls.check("a", a, CallRef((1, 2), ("a", "b")))
    assert caught.value.code is Code.QUEUE_FULL
    assert caught.value.message.startswith(
        "The call a -> b -> a can never be served: every instance of model 'a'"
    )
    a.instances.append(set())
    scene.calls.check("a", a, CallRef((1, 2), ("a", "b")))


def test_what_has_ended_is_forgotten():
    b = Model("b", [2])
    scene = CallsHarness((1, 10, b), (1, 11, b))
    scene.calls.ended(10, CallRef((1,), ("p",)))
    assert scene.holds(Model("a", [1]), 2)
    scene.calls.ended(11, CallRef((1,), ("p",)))
    scene.calls.ended(11, CallRef((1,), ("p",)))
    assert scene.calls.waiting == {}
    assert not scene.holds(Model("a", [1]), 2)


def test_when_an_instance_is_lost_those_who_wait_for_themselves_are_told_and_no_more_than_that():
    a, b, c = Model("a", [1], [3]), Model("b", [2], [], grows=True), Model("c", [4])
    scene = CallsHarness((1, 10, b), (2, 11, a), (3, 12, b), (4, 13, b))
    scene.calls.review()
    assert scene.ended == []
    b.instances.pop()
    b.can_grow = False
    scene.calls.review()
    ((number, error),) = scene.ended
    assert number in (10, 11, 12)
    assert error.code is Code.QUEUE_FULL
    scene.calls.review()
    assert len(scene.ended) == 1
    assert c.holders() == [{4}]


# -- against a simulation ----------------------------------------------------------------------------------


@st.composite
def worlds(draw):
    """Models with busy and idle instances; some running items are calls of others that began before them; calls that
    wait in queues; and who calls whom next.
    """
    models = [
        Model(str(m), *([] for _ in range(draw(st.integers(1, 3)))), grows=draw(st.integers(0, 9)) == 0)
        for m in range(draw(st.integers(1, 4)))
    ]
    slots = [(model, items) for model in models for items in model.instances]
    parents, rows, older = {}, [], []
    for model, items in draw(st.permutations(slots)):
        batch = []
        for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2]))):
            number = len(older) + len(batch) + 1
            batch.append(number)
            if older and draw(st.booleans()):
                parents[number] = draw(st.sampled_from(older))
                rows.append((parents[number], number, model))
        items.update(batch)
        older += batch
    waiting = (
        draw(st.lists(st.tuples(st.sampled_from(older), st.sampled_from(models)), max_size=4))
        if older
        else []
    )
    rows += [(parent, 100 + i, model) for i, (parent, model) in enumerate(waiting)]
    caller = draw(st.sampled_from(older)) if older else 0
    return models, rows, parents, caller, draw(st.sampled_from(models))


def simulate(models, rows, caller, target):
    """Is a further call from `caller` to `target` ever begun, if everybody who can end does?"""
    instances = {model.name: [set(items) for items in model.instances] for model in models}
    running = {item for items in instances.values() for held in items for item in held}
    open_calls = [(parent, number, model) for parent, number, model in rows] + [(caller, 999, target)]
    while True:
        before = len(running), len(open_calls)
        for model in models:
            for held in instances[model.name]:
                busy = {parent for parent, _, _ in open_calls}
                if held and not held & busy:
                    running -= held
                    open_calls = [row for row in open_calls if row[1] not in held]
                    held.clear()
            if model.can_grow or not all(instances[model.name]):
                open_calls = [row for row in open_calls if row[2] is not model or row[1] in running]
        if not any(number == 999 for _, number, _ in open_calls):
            return True
        if before == (len(running), len(open_calls)):
            return False


@settings(max_examples=examples(1500))
@given(worlds())
def test_it_is_held_just_where_a_simulation_never_begins_it(world):
    models, rows, parents, caller, target = world
    path = [caller]
    while path[0] in parents:
        path.insert(0, parents[path[0]])
    assert CallsHarness(*rows).holds(target, *path) == (not simulate(models, rows, caller, target))
