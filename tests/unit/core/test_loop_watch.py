"""The watch of an event loop: what it counts and says, on clocks moved by hand."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from trivium.core.clock import LoopWatch


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
        ([(0.1, 0.0), (1.1, 0.7), (0.1, 0.1), (0.4, 0.4)], 2, 0.7, ["WARNING", "WARNING"]),
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
    watch = scene.watch = LoopWatch(scene, has_thread=False)
    for seconds, computed in turns:
        scene.turn(seconds, computed)
    assert (watch.use().stalls, round(watch.use().longest, 6)) == (stalls, longest)
    assert [record.levelname for record in caplog.records] == levels
    assert all("test_loop_watch.py" in record.getMessage() for record in caplog.records)
    watch.close()
    assert scene.beat is None
