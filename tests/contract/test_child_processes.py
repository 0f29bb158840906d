"""The end of a worker's process, as its post-mortem tells it: by itself, or made to end here."""

import asyncio
import logging
import os
import sys

import pytest

from trivium.core.workers.arena import Arena
from trivium.core.workers.child_process import ChildProcess, spawn
from trivium.types.observing import last_words
from trivium.types.running import WorkerCommand

DEAF = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", file=sys.stderr, flush=True)
time.sleep(600)
"""


@pytest.fixture
def arena():
    arena = Arena("m", 2**16)
    yield arena
    arena.close()


def post_mortem(code, arena, tmp_path, play):
    """Of a process that runs `code`, once `play(child, ended)` is over."""

    async def run():
        ended = asyncio.Event()
        program = WorkerCommand((sys.executable, "-c", code), tmp_path, dict(os.environ), {})
        spawned = spawn(program, arena.descriptor)
        child = ChildProcess("m", spawned, logging.getLogger("m"), ended.set)
        try:
            await play(child, ended)
        finally:
            spawned.wire.close()
            status, cause, last_lines = child.finalize()
        return status, cause + last_words(last_lines)

    with asyncio.Runner() as runner:
        return runner.run(run())


def test_one_that_ended_by_itself_just_before_it_would_be_killed_was_not_killed(arena, tmp_path):
    async def play(child, ended):
        await asyncio.wait_for(ended.wait(), 60)
        child.end_within(0.0, 0.0)  # their time comes before the process is buried
        await asyncio.sleep(0.01)
        assert not child.was_killed_here

    status, words = post_mortem("pass", arena, tmp_path, play)
    assert status == 0
    assert "told to end" not in words


def test_one_that_does_not_hear_of_its_end_is_killed_and_says_by_whom(arena, tmp_path):
    async def play(child, ended):
        async with asyncio.timeout(60):
            while not child.last_words():
                await asyncio.sleep(0.01)
        child.end_within(0.0, 0.1)
        await asyncio.wait_for(ended.wait(), 60)

    _, words = post_mortem(DEAF, arena, tmp_path, play)
    assert "told to end" in words
