"""A failure that is handed on or kept as a value holds nothing of the request that it came from."""

import gc
import weakref
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from tests.harness.triton_child import TritonChildHarness, fp32, model, stage

from trivium_worker.runtime.faults import outcomes_of
from trivium_worker.runtime.upward import WireHost
from trivium_worker.wire import frames
from trivium_worker.wire.values import Failure, anew, frameless

__all__ = ["stage"]

RAISING = {
    "a function": "raise ValueError('no')",
    "a coroutine": "async def run():\n    raise ValueError('no')\nreturn run()",
    "no list": "return 3",
    "a coroutine that returns no list": "async def run():\n    return 3\nreturn run()",
}


class Tensors(list):
    """A payload that a weak reference can watch."""


@pytest.fixture
def uncollected() -> Iterator[None]:
    """What is in a cycle stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def is_bare(failure: Failure) -> bool:
    return failure.__traceback__ is None and failure.__cause__ is None and failure.__context__ is None


def test_one_that_is_raised_anew_says_the_same() -> None:
    class Own(Failure):
        pass

    kept = Own("m", "invalid", 409, "reason", {"a": "b"})
    with pytest.raises(Own) as caught:
        raise anew(kept)
    assert caught.value is not kept
    assert is_bare(kept)
    assert vars(caught.value) == vars(kept)


def raising() -> None:
    try:
        raise ValueError("first")
    except ValueError as first:
        raise Failure("second") from first


def test_frames_and_causes_go() -> None:
    with pytest.raises(Failure) as caught:
        raising()
    assert not is_bare(caught.value)
    assert frameless(caught.value) is caught.value
    assert is_bare(caught.value)


@pytest.mark.parametrize("how", RAISING)
@pytest.mark.usefixtures("uncollected")
def test_a_model_that_raises_keeps_no_request(stage: TritonChildHarness, how: str) -> None:
    adapter = stage.load(model(RAISING[how]))
    item = stage.item()
    item.payload = Tensors([fp32("IN", [1.0, 2.0])])
    watch = weakref.ref(item.payload)
    (outcome,) = outcomes_of(adapter, [item])
    assert isinstance(outcome, Failure)
    assert is_bare(outcome)
    del item
    assert watch() is None


@pytest.mark.parametrize("how", ["a function", "a coroutine"])
def test_what_it_raised_is_in_the_log_once_and_says_where(
    stage: TritonChildHarness, capfd: pytest.CaptureFixture[str], how: str
) -> None:
    (outcome,) = outcomes_of(stage.load(model(RAISING[how])), [stage.item()])
    assert isinstance(outcome, Failure)
    assert "ValueError: no\n\nAt:\n  " in outcome.message
    assert "concurrent" not in outcome.message
    assert capfd.readouterr().err.count("no\n") == 1


@pytest.mark.usefixtures("uncollected")
def test_what_the_server_refused_keeps_nothing_of_who_asked() -> None:
    host = WireHost(
        SimpleNamespace(send=lambda *pieces: None), frames.Texts(), reply := lambda: answer(), reply
    )

    def answer() -> None:
        pieces: list[bytes] = []
        (call,) = host.open_calls()
        frames.AnswerTexts().write(pieces, call, Failure("no", "invalid"), frames.FINAL)
        host.replied(memoryview(b"".join(map(bytes, pieces))))

    def ask(mine: Tensors) -> None:
        with pytest.raises(Failure):
            host.ask("load", model="m")

    mine = Tensors()
    watch = weakref.ref(mine)
    ask(mine)
    del mine
    assert watch() is None
