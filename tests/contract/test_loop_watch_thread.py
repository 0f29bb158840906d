"""The thread that watches an event loop: it sees what holds that up, and ends with it."""

import asyncio
import logging
import threading
import time

import pytest

from trivium.core.clock import LoopWatch


def test_its_thread_looks_while_others_compute_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def hold() -> None:
        watch = LoopWatch(asyncio.get_running_loop())
        until = time.monotonic() + 60
        while "held_here" not in watch.stacks and time.monotonic() < until:
            held_here()
        assert "held_here" in watch.stacks
        watch.close()

    def held_here() -> None:
        sum(range(10_000))

    before = threading.active_count()
    asyncio.run(hold())
    for thread in threading.enumerate():
        if thread.name == "trivium-loop-watch":
            thread.join(60)
    assert threading.active_count() == before
