"""Workers that die before they serve, or cannot be started; and that nothing is left of any."""

import asyncio
import os
import signal
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.harness.instances import WORKER, InstanceHarness, scene
from tests.harness.virtual_models import make_spec

from trivium.core.workers import child_process, process_launcher
from trivium.core.workers.arena import Arena
from trivium.core.workers.process_launcher import ProcessLauncher, WorkerServices, kill_late
from trivium.types.errors import Code, ServeError
from trivium.types.running import WorkerCommand


def test_one_that_has_died_takes_no_port():
    async def play(stage):
        (worker,) = stage.workers.instances
        os.kill(worker.pid, signal.SIGKILL)
        await asyncio.wait_for(worker.gone, 60)
        with pytest.raises(ServeError) as caught:
            worker.attach(None)
        assert caught.value.code is Code.LOAD_FAILED
        assert "SIGKILL" in caught.value.message

    scene(play)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def program(**fields):
    fields = {"command": (sys.executable, "-c", "pass"), "directory": Path("/"), "environment": {}, **fields}
    return WorkerCommand(setup={}, **fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": ("/no/python",)}, "The interpreter /no/python could not be started in /: No such file"),
        ({"directory": Path("/no/folder")}, "could not be started in /no/folder: No such file"),
        ({"environment": {"A": "\0"}}, "embedded null byte"),
        ({"command": (str(Path(__file__)),)}, "Permission denied"),
    ],
)
def test_what_cannot_be_started_says_why_and_leaves_nothing(fields, words):
    arena = Arena("m")
    before = descriptors()
    with pytest.raises(ServeError) as caught:
        child_process.spawn(program(**fields), arena.descriptor)
    assert caught.value.code is Code.LOAD_FAILED
    assert words in caught.value.message
    assert descriptors() == before
    arena.close()


@pytest.mark.parametrize("last", ["memfd_create", "ftruncate", "pipe"])
def test_where_descriptors_are_lacking_nothing_is_left(monkeypatch, last):
    def fail(*args):
        raise OSError(24, "Too many open files")

    arena = Arena("m")
    before = descriptors()
    monkeypatch.setattr(child_process.os, last, fail)
    with pytest.raises(ServeError, match="Too many open files"):
        child_process.spawn(program(), arena.descriptor)
    monkeypatch.undo()
    assert descriptors() == before
    arena.close()


def test_one_that_was_started_for_nobody_is_ended():
    async def run():
        arena = Arena("m")
        before = descriptors()
        spawned = child_process.spawn(program(command=("sleep", "60")), arena.descriptor)
        future = Future()
        future.set_result(spawned)
        kill_late(future)
        assert spawned.process.returncode == -signal.SIGKILL
        assert descriptors() == before
        arena.close()

    asyncio.run(run())


def test_one_that_is_spawned_when_the_loop_is_over_is_ended(monkeypatch):
    gate, spawned, arena = threading.Event(), [], Arena("m")

    def late(*given):
        assert gate.wait(60)
        spawned.append(child_process.spawn(*given))
        return spawned[0]

    async def run():
        around = WorkerServices(None, None, None)
        launcher = ProcessLauncher(make_spec(), executor, around, arena)
        launching = asyncio.create_task(launcher.launch(program(command=("sleep", "60")), None, None))
        await asyncio.sleep(0)
        launching.cancel()
        await asyncio.wait([launching])

    monkeypatch.setattr(process_launcher, "spawn", late)
    with ThreadPoolExecutor(1) as executor:
        asyncio.run(run())
        gate.set()
    assert spawned[0].process.returncode == -signal.SIGKILL
    arena.close()


def test_starting_and_ending_many_leaves_nothing(tmp_path):
    async def run():
        before = None
        for _ in range(3):
            async with InstanceHarness("process", instances=2) as stage:
                stage.submit("kill")
                stage.submit("leave child")
                await stage.settle()
            if before is None:
                before = descriptors()
        assert descriptors() == before

    asyncio.run(run())


def test_a_server_that_goes_away_takes_its_workers_along():
    """Also one that has not been told its setup yet."""
    arena = Arena("m")
    made = program(command=WORKER, environment=dict(os.environ))
    with ThreadPoolExecutor(1) as threads:
        spawned = threads.submit(child_process.spawn, made, arena.descriptor).result()
    spawned.wire.close()
    assert spawned.process.wait(60) == 70
    for output in spawned.outputs:
        os.close(output)
    arena.close()
