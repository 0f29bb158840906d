"""What user code asks of the server: other models above all, in chains that end, in circles that are refused."""

import asyncio
import json
import logging

import pytest
from tests.harness.instances import LEFT
from tests.harness.model_calls import call, scene

from trivium.types.errors import Code
from trivium.types.operations import Load, Ready, Unload


def code_of(part):
    return part.error and part.error.code


async def codes(*futures):
    """How they ended, within ten seconds."""
    async with asyncio.timeout(60):
        return [code_of(part) for part in await asyncio.gather(*futures)]


def test_a_call_is_answered_with_what_the_other_model_made():
    async def play(troupe):
        part = await troupe.ask("a", call("b", call("c")))
        assert part.error is None
        assert part.payload["x"].tolist() == [[1, 2]]
        assert [troupe.models[name].report().success.count for name in "abc"] == [1, 1, 1]
        bad = await troupe.ask("a", call("b", id="bad"))
        assert (bad.error.code, "this item is bad" in bad.error.message) == (Code.INVALID, True)
        nobody = await troupe.ask("a", call("nobody"))
        assert (nobody.error.code, nobody.error.message) == (Code.NOT_FOUND, "There is no model 'nobody'.")

    scene(play, a=1, b=1, c=1)


def test_calls_without_a_request_have_no_parent():
    async def play(troupe):
        assert await codes(troupe.ask("a", call("b", orphan=True))) == [None]

    scene(play, a=1, b=1)


# -- circles -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "chain"),
    [
        ([call("a")], "a -> a"),
        ([call("b", call("a"))], "a -> b -> a"),
        ([call("b", call("c", call("a")))], "a -> b -> c -> a"),
        ([call("b", call("b"))], "a -> b -> b"),
    ],
)
def test_a_circle_fails_at_once_and_names_its_chain(plan, chain):
    async def play(troupe):
        async with asyncio.timeout(60):  # it would wait for ever
            part = await troupe.ask("a", *plan)
        assert part.error.code is Code.QUEUE_FULL
        assert f"The call {chain} can never be served" in part.error.message
        assert await codes(troupe.ask("a"), troupe.ask("b")) == [None, None]

    scene(play, a=1, b=1, c=1)


def test_a_model_may_call_itself_as_deep_as_it_has_instances():
    async def play(troupe):
        assert await codes(troupe.ask("a", call("a"))) == [None]
        assert await codes(troupe.ask("a", call("a", call("a")))) == [Code.QUEUE_FULL]

    scene(play, a=2)


@pytest.mark.parametrize("times", range(3))
def test_two_that_call_each_other_at_once_all_end(times):
    async def play(troupe):
        go, marks = troupe.folder / "go", [troupe.folder / name for name in "ab"]
        first = troupe.ask("a", {"note": str(marks[0])}, {"until": str(go)}, call("b"))
        second = troupe.ask("b", {"note": str(marks[1])}, {"until": str(go)}, call("a"))
        await troupe.until(lambda: all(mark.exists() for mark in marks))
        go.touch()
        found = await codes(first, second)
        assert Code.QUEUE_FULL in found
        assert set(found) <= {None, Code.QUEUE_FULL}
        assert await codes(troupe.ask("a"), troupe.ask("b")) == [None, None]

    scene(play, a=1, b=1)


def test_many_that_call_each_other_at_once_all_end():
    async def play(troupe):
        asked = [troupe.ask(one, call(other), call(other)) for _ in range(20) for one, other in ("ab", "ba")]
        found = await codes(*asked)
        assert set(found) <= {None, Code.QUEUE_FULL}
        assert None in found

    scene(play, a=2, b=1)


def test_a_call_is_not_handed_over_in_advance_behind_the_one_that_waits_for_it():
    async def play(troupe):
        model, go = troupe.models["a"], troupe.folder / "go"
        caller_may, other = troupe.folder / "may", troupe.folder / "other"
        caller = troupe.ask("a", {"until": str(caller_may)}, call("a"))
        await troupe.until(lambda: troupe.is_held("a", 1))
        busy = troupe.ask("a", {"note": str(other)}, {"until": str(go)})
        await troupe.until(other.exists)
        troupe.pieces[
            "a"
        ].counters.mean_run = 1e-5  # as if runs were short: work would be handed over in advance
        model.freed()
        assert model.debug_state().lead == 1
        caller_may.touch()
        await troupe.until(lambda: model.debug_state().queued == 1)
        await asyncio.sleep(0.02)
        assert model.debug_state().queued == 1
        go.touch()
        assert await codes(caller, busy) == [None, None]

    scene(play, a=2)


def test_a_diamond_works_under_load():
    async def play(troupe):
        one_after_the_other = call("b", call("d")), call("c", call("d"))
        both = ({"both": [call("b", call("d")), call("c", call("d"))]},)
        asked = [troupe.ask("a", *(both if n % 2 else one_after_the_other)) for n in range(100)]
        assert await codes(*asked) == [None] * 100
        assert troupe.models["d"].report().success.count == 200

    scene(play, a=3, b=1, c=1, d=1)


# -- ends --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["cancel", "deadline", "death"])
def test_the_end_of_a_request_ends_what_it_called(end):
    async def play(troupe):
        waiting = call("b", call("c", id="wait"))
        asked = troupe.ask("a", waiting, deadline=1 if end == "deadline" else None)
        await troupe.until(lambda: troupe.is_held("c"))
        queued = troupe.ask("d", waiting)  # its call to b waits in b's queue
        await troupe.until(lambda: troupe.models["b"].debug_state().queued == 1)
        if end == "cancel":
            asked.item.cancel(LEFT)
        elif end == "death":
            troupe.kill("a")
        expected = {"cancel": Code.CANCELLED, "deadline": Code.EXPIRED, "death": Code.WORKER_DIED}[end]
        assert await codes(asked) == [expected]
        await troupe.until(lambda: troupe.was_cancelled("c"))
        (troupe.workers["c"].folder / "cancelled").unlink()
        await troupe.until(lambda: troupe.is_held("c", 2))
        queued.item.cancel(LEFT)
        assert await codes(queued) == [Code.CANCELLED]
        await troupe.until(lambda: troupe.was_cancelled("c"))

    scene(play, a=1, b=1, c=1, d=1)


def test_a_call_in_a_queue_leaves_it_with_its_caller():
    async def play(troupe):
        go = troupe.folder / "go"
        busy = troupe.ask("b", {"until": str(go)})
        await troupe.until(lambda: troupe.is_held("b"))
        asked = troupe.ask("a", call("b"))
        await troupe.until(lambda: troupe.models["b"].debug_state().queued == 1)
        asked.item.cancel(LEFT)
        assert troupe.models["b"].debug_state().queued == 0
        go.touch()
        assert await codes(asked, busy) == [Code.CANCELLED, None]
        assert troupe.models["b"].report().failures == {"cancelled": 1}

    scene(play, a=1, b=1)


def test_a_calls_own_timeout_is_its_own():
    async def play(troupe):
        part = await troupe.ask("a", call("b", id="wait", timeout=0.05))
        assert (part.error.code, "its deadline of 0.05 s" in part.error.message) == (Code.EXPIRED, True)
        await troupe.until(lambda: troupe.was_cancelled("b"))

    scene(play, a=1, b=1)


def test_the_death_of_the_called_is_told_to_the_caller():
    async def play(troupe):
        part = await troupe.ask("a", call("b", id="exit"))
        assert part.error.code is Code.WORKER_DIED
        assert "An instance of model 'b' died" in part.error.message
        assert "I leave" in part.error.message
        assert await codes(troupe.ask("a", call("b"))) == [None]

    scene(play, a=1, b=1)


def test_whoever_has_heard_enough_hangs_up():
    async def play(troupe):
        assert await codes(troupe.ask("a", {"first": call("b", id="endless")})) == [None]
        await troupe.until((troupe.workers["b"].folder / "stopped").exists)
        assert await codes(troupe.ask("a", call("b", id="parts"))) == [None]

    scene(play, a=1, b=1)


# -- other questions ---------------------------------------------------------------------------------------


def test_questions_are_answered():
    async def play(troupe):
        asked = troupe.workers["a"].folder / "asked"
        for model, ready in (("a", True), ("b", False)):
            await troupe.ask("a", {"ask": "ready", "model": model, "version": "2"})
            assert json.loads(asked.read_text()) == {"ready": ready, "reason": "by the test"}
            assert troupe.asked.pop() == Ready(model, "2")
        assert await codes(troupe.ask("a", {"ask": "load", "model": "b"})) == [None]
        assert troupe.asked.pop() == Load("b")
        sent = {"ask": "load", "model": "b", "config": "{}", "files": {"1/model.py": "AP8="}}
        assert await codes(troupe.ask("a", sent)) == [None]
        assert troupe.asked.pop() == Load("b", "{}", {"1/model.py": b"\0\xff"})
        assert await codes(troupe.ask("a", {"ask": "unload", "model": "b"})) == [Code.NOT_READY]
        assert troupe.asked.pop() == Unload("b")
        sent = {"ask": "unload", "model": "b", "with_dependents": True}
        assert await codes(troupe.ask("a", sent)) == [Code.NOT_READY]
        assert troupe.asked.pop() == Unload("b", with_dependents=True)
        part = await troupe.ask("a", {"ask": "dance", "model": "b"})
        assert part.error.code is Code.UNSUPPORTED
        assert part.error.message == "A worker asked for 'dance'; it can ask for: ready, load, unload."

    scene(play, a=1)


def test_lines_reach_the_log_under_the_models_name(caplog):
    async def play(troupe):
        steps = [
            {"log": level, "line": f"a {level}"} for level in ("debug", "info", "warning", "error", "odd")
        ]
        assert await codes(troupe.ask("a", *steps)) == [None]
        found = [(r.levelname, r.message) for r in caplog.records if r.name == "trivium.worker.a"]
        expected = ["DEBUG", "INFO", "WARNING", "ERROR", "INFO"]
        assert [row for row in found if row[1].startswith("a ")] == [
            (level, step["line"]) for level, step in zip(expected, steps, strict=True)
        ]

    with caplog.at_level(logging.DEBUG):
        scene(play, a=1)


def test_metrics_are_sums_of_all_instances(caplog):
    async def play(troupe):
        count = {"measure": {"kind": "counter", "name": "n", "add": 2, "labels": {"a": "b"}}}
        assert await codes(*[troupe.ask("a", count) for _ in range(10)]) == [None] * 10
        wrong = [{"measure": {"kind": "gauge", "name": "n", "set": 1}}, {"measure": {}}]
        huge = {"measure": {"kind": "counter", "name": "n", "add": 10**400}}
        assert await codes(troupe.ask("a", *wrong, huge)) == [None]
        assert troupe.metrics.families["n"].series[(("a", "b"),)].value == 20
        assert caplog.text.count("a custom metric was not taken") == 3

    scene(play, a=2)


@pytest.mark.parametrize(
    "fields", [{"timeout": float("inf")}, {"timeout": float("nan")}, {"timeout": "soon"}, {"id": "\ud800"}]
)
def test_what_no_call_can_say_is_no_trouble_for_others(fields):
    async def play(troupe):
        part = await troupe.ask("a", call("b", **fields))
        assert part.error.code in (Code.WORKER_DIED, Code.MODEL_FAILED)
        assert await codes(troupe.ask("a", call("b"))) == [None]

    scene(play, a=1, b=1)
