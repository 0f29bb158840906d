"""TorchServe's continuous batching in this process: what each step shows, and what becomes of its elements."""

import sys
from typing import Any

import pytest
from tests.harness.torchserve_child import TorchServeChildHarness, stage

from trivium_worker.wire.values import Failure, Item, Raw

__all__ = ["stage"]

COUNTS = """
LEFT, STEPS = {}, []
def handle(data, context):
    if data is None:
        return None
    STEPS.append([(context.get_request_id(i), row.get("body") and bytes(row["body"])) for i, row in enumerate(data)])
    for i, row in enumerate(data):
        if row:
            LEFT[context.get_request_id(i)] = int(row["body"])
    names = [context.get_request_id(i) for i in range(len(data))]
    for name in names:
        if LEFT[name] < 0:
            raise ValueError("less than nothing")
        LEFT[name] -= 1
    context.stopping_criteria = [lambda element, name=name: LEFT[name] <= 0 for name in names]
    return ["%s:%d " % (name, LEFT[name]) for name in names]
"""


def stepping(stage: TorchServeChildHarness, text: str = COUNTS, slots: int = 3) -> Any:
    return stage.load(text, slots=slots)


def told(stage: TorchServeChildHarness, item: Item) -> list[Any]:
    parts = stage.parts.get(item.number, [])
    return [bytes(p.parts[0].data).decode() if isinstance(p, Raw) else p for p in parts]


def add(adapter: Any, stage: TorchServeChildHarness, count: int, name: str) -> Item:
    item = stage.item(b"%d" % count, request_id=name)
    adapter.add(item)
    return item


def test_requests_join_and_leave_between_steps(stage: TorchServeChildHarness) -> None:
    adapter = stepping(stage)
    assert adapter.slots == 3
    assert adapter.step() is None
    first = add(adapter, stage, 3, "a")
    assert adapter.step().rows == 1
    second = add(adapter, stage, 1, "b")
    report = adapter.step()
    assert (report.rows, report.share) == (2, pytest.approx(1 / 3))
    assert adapter.step().share == 0
    assert adapter.step() is None
    assert told(stage, first) == ["a:2 ", "a:1 ", "a:0 "]
    assert told(stage, second) == ["b:0 "]
    steps = sys.modules["handler"].STEPS
    assert steps == [[("a", b"3")], [("a", None), ("b", b"1")], [("a", None)]]


def test_who_asks_what_the_handler_says_of_itself_shares_no_step(stage: TorchServeChildHarness) -> None:
    adapter = stepping(stage)
    add(adapter, stage, 2, "a")
    adapter.step()
    for name in "de":
        adapter.add(stage.item(b"1", request_id=name, method="describe"))
    gone = add(adapter, stage, 1, "g")
    add(adapter, stage, 1, "b")
    add(adapter, stage, 1, "c")
    assert adapter.abort(gone) == 0
    while adapter.step():
        pass
    names = [[name for name, _ in step] for step in sys.modules["handler"].STEPS]
    assert names == [["a"], ["a"], ["d"], ["e"], ["b", "c"]]


def test_an_aborted_request_is_in_no_further_step(stage: TorchServeChildHarness) -> None:
    adapter = stepping(stage)
    first, second = add(adapter, stage, 9, "a"), add(adapter, stage, 2, "b")
    adapter.step()
    assert adapter.abort(first) == 1
    assert adapter.abort(first) == 0
    adapter.step()
    assert sys.modules["handler"].STEPS[-1] == [("b", None)]
    assert told(stage, second) == ["b:1 ", "b:0 "]


def test_what_is_raised_ends_the_requests_of_the_step_and_the_next_are_served(
    stage: TorchServeChildHarness,
) -> None:
    adapter = stepping(stage)
    begun, bad = add(adapter, stage, 9, "a"), add(adapter, stage, -1, "b")
    adapter.step()
    for item in (begun, bad):
        (failure,) = [part for part in told(stage, item) if isinstance(part, Failure)]
        assert (failure.status, failure.message.startswith("Prediction failed")) == (503, True)
    good = add(adapter, stage, 1, "c")
    adapter.step()
    assert told(stage, good) == ["c:0 "]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("[]", "number of batch response mismatched"),
        ("None", "Invalid model predict output"),
        ("(setattr(context, 'stopping_criteria', []), ['x'])[1]", None),
        ("(setattr(context, 'stopping_criteria', [bool] * 2), ['x'])[1]", "2 entries for 1 requests"),
        ("(setattr(context, 'stopping_criteria', [1]), ['x'])[1]", "not callable"),
        ("[object()]", "Unsupported model output data type"),
    ],
)
def test_what_a_step_returns(
    stage: TorchServeChildHarness, body: str, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    code = f"def handle(data, context):\n    if data is None:\n        return None\n    return {body}\n"
    adapter = stepping(stage, code)
    item = add(adapter, stage, 1, "a")
    adapter.step()
    (outcome,) = told(stage, item)
    assert outcome == "x" if text is None else text in outcome.message
    assert text is None or text == "not callable" or outcome.message in caplog.messages
    assert adapter.step() is None


def test_headers_are_those_of_each_request(stage: TorchServeChildHarness) -> None:
    code = (
        "def handle(data, context):\n    if data is None:\n        return None\n"
        "    for i in range(len(data)):\n"
        "        context.set_response_header(i, 'x-id', context.get_request_id(i))\n"
        "    return ['x'] * len(data)\n"
    )
    adapter = stepping(stage, code)
    items = [add(adapter, stage, 1, name) for name in "ab"]
    adapter.step()
    assert [stage.parts[item.number][0].properties["x-id"] for item in items] == ["a", "b"]


KINDS = """
def handle(data, context):
    if data is None:
        return None
    said = {"none": lambda _: None, "yes": lambda _: True, "no": lambda _: False}
    names = [context.get_request_id(i) for i in range(len(data))]
    context.stopping_criteria = dict(enumerate(said[name] for name in names))
    return ["%s " % name for name in names]
"""


def test_a_criterion_that_says_nothing_ends_its_request_and_criteria_may_be_a_dict(
    stage: TorchServeChildHarness,
) -> None:
    adapter = stepping(stage, KINDS)
    items = {name: add(adapter, stage, 1, name) for name in ("none", "yes", "no")}
    adapter.step()
    adapter.step()
    assert {name: told(stage, item) for name, item in items.items()} == {
        "none": ["none "],
        "yes": ["yes "],
        "no": ["no ", "no "],
    }
