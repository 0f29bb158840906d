"""Runs that hang in a thread: what can be interrupted is, what cannot is given up, and who waits is served."""

import asyncio
import threading

import numpy as np
import pytest
from tests.harness.instances import InstanceHarness, Script
from tests.harness.onnx_models import HERE, looping, run

from trivium.core.instances import run_watch
from trivium.engines.onnx.engine import ENGINE
from trivium.types.errors import Code, ServeError
from trivium.types.spec import Limits

ENDLESS = 2**62


class Interruptible(Script):
    """Ends a run that stands at the gate when it is interrupted."""

    def interrupt(self):
        self.gate.set()


def played(stage_of, play):
    async def scene():
        async with stage_of() as stage:
            await play(stage)

    asyncio.run(scene())


def threads():
    return len([thread for thread in threading.enumerate() if thread.name == "m_0"])


def hanging(script=None, seconds=0.05):
    stage = InstanceHarness("thread", limits=Limits(run_deadline=seconds))
    stage.script = script or stage.script
    return stage


def test_a_runner_that_can_be_interrupted_is_and_its_thread_goes_on():
    async def play(stage):
        stage.shut()
        stage.submit()
        stage.submit()
        await stage.until(lambda: stage.ended)
        assert stage.parts[1][0].error.code is Code.EXPIRED
        await stage.settle()
        assert stage.codes() == [Code.EXPIRED, None]
        assert not stage.model.deaths

    played(lambda: hanging(Interruptible()), play)


def test_a_thread_that_stays_is_given_up_and_its_late_outcome_reaches_nobody(monkeypatch):
    monkeypatch.setattr(run_watch, "GRACE", 0.05)

    async def play(stage):
        stage.shut()
        stage.submit()
        await stage.until(lambda: stage.model.deaths)
        assert "Instance m_0 was given up" in stage.model.deaths[0]
        await stage.until(lambda: threads() == 2)  # the lost one and its successor
        stage.script.gate.set()
        stage.submit()
        await stage.settle()
        assert stage.codes() == [Code.EXPIRED, None]
        await stage.until(
            lambda: len(stage.script.closes) == 1
        )  # the lost one frees its model when it returns
        await stage.until(lambda: threads() == 1)
        stage.script.closes.clear()

    played(hanging, play)


def test_an_onnx_session_terminates_its_run_and_runs_the_next(tmp_path):
    spec = looping(tmp_path)
    runner = ENGINE.open(spec, HERE)
    assert run(spec, {"x": np.array([3])}, runner=runner)[0].items[0].array.tolist() == [3]
    timer = threading.Timer(0.3, runner.interrupt)
    timer.start()
    with pytest.raises(ServeError, match=r"[Tt]erminat"):
        run(spec, {"x": np.array([ENDLESS])}, runner=runner)
    timer.join()
    assert run(spec, {"x": np.array([4])}, runner=runner)[0].items[0].array.tolist() == [4]
    runner.close()
