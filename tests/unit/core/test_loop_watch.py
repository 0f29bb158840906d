"""The watch of an event loop: what it counts and says, on clocks moved by hand."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from trivium.core.clock import LoopWatch
from trivium.machine.loop_counters import ThreadWaits


class Scene(asyncio.AbstractEventLoop):
    """A loop that calls when the test says so, and the clocks of the process."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = self.computed = 0.0
        self.beat: Callable[[], None] | None = None
        self.watch: LoopWatch | None = None
        patch.setattr(time, "monotonic", lambda: self.now)
        patch.setattr(time, "process_time", lambda: self.computed)
        patch.setattr(time, "thread_time", lambda: self.computed)

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Any, *args: object, context: Any = None) -> Any:
        self.beat = callback
        return self

    def cancel(self) -> None:
        self.beat = None

    def turn(self, seconds: float, computed: float) -> None:
        """The beat comes after so many seconds."""
        self.now += seconds
        self.computed += computed
        assert self.watch is not None
        self.watch.look()
        assert self.beat is not None
        self.beat()


@pytest.mark.parametrize(
    ("turns", "stalls", "longest", "levels"),
    [
        ([(0.1, 0.1)] * 5, 0, 0.0, []),
        ([(0.3, 0.3)], 0, 0.0, []),
        ([(0.6, 0.6)], 1, 0.5, ["WARNING"]),
        ([(0.6, 0.01)], 0, 0.01, ["INFO"]),  # the machine had much else to do
        ([(0.1, 0.0), (1.1, 0.7), (0.1, 0.1), (0.4, 0.4)], 2, 0.7, ["WARNING"]),  # one line a minute
        ([(0.6, 0.6), (0.6, 0.6), (60.0, 0.0), (0.6, 0.6)], 3, 0.5, ["WARNING", "INFO"]),
    ],
)
def test_what_holds_the_loop_up_is_counted_and_told(
    turns: list[tuple[float, float]],
    stalls: int,
    longest: float,
    levels: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    scene = Scene(monkeypatch)
    watch = scene.watch = LoopWatch(scene, has_thread=False, waits=lambda: ThreadWaits(0.0, 0))
    for seconds, computed in turns:
        scene.turn(seconds, computed)
    assert (watch.use().stalls, round(watch.use().longest, 6)) == (stalls, longest)
    assert [record.levelname for record in caplog.records] == levels
    assert not [text for text in caplog.messages if "\n" in text]
    watch.close()
    assert scene.beat is None


def test_stacks_are_said_at_debug_level_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    scene = Scene(monkeypatch)
    scene.watch = LoopWatch(scene, has_thread=False, waits=lambda: ThreadWaits(0.0, 0))
    scene.turn(0.6, 0.6)
    line, stacks = caplog.messages
    assert (
        line
        == "no request was answered for 0.50 s: the server was computing; the log level debug shows where"
    )
    assert "test_loop_watch.py" in stacks


def test_nothing_is_said_while_models_load_and_it_counts_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    scene, loads = Scene(monkeypatch), iter([True, False, False, False, False])
    watch = scene.watch = LoopWatch(
        scene, has_thread=False, is_loading=lambda: next(loads), waits=lambda: ThreadWaits(0.0, 0)
    )
    scene.turn(0.6, 0.6)  # the load has ended meanwhile
    assert watch.use().stalls == 1
    assert caplog.messages == []
    scene.turn(0.6, 0.6)
    assert len(caplog.messages) == 1


def test_what_was_not_said_is_counted_in_the_next_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    scene = Scene(monkeypatch)
    scene.watch = LoopWatch(scene, has_thread=False, waits=lambda: ThreadWaits(0.0, 0))
    for _ in range(4):
        scene.turn(0.6, 0.6)
    scene.turn(61.0, 61.0)
    assert "(3 times more since the last such line)" in caplog.messages[-1]
    assert len(caplog.messages) == 2
