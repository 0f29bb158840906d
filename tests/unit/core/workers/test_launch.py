"""One instance opened, warm, in the worker asked for; and everything that can go wrong on the way."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from tests.harness.virtual_models import make_spec

from trivium.core.instances.inline import InlineInstance
from trivium.core.instances.thread import ThreadInstance
from trivium.core.models.launcher import Launcher, default_isolation
from trivium.core.workers.process_launcher import WorkerServices
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensors
from trivium.types.running import Placement, Ran
from trivium.types.spec import Isolation, Limits
from trivium.types.warmups import SyntheticFill, Warmup, WarmupInput

WARMUPS = tuple(
    Warmup(name, 0, 2, (WarmupInput("x", DataType.FP32, (2,), SyntheticFill.ZERO),)) for name in "ab"
)
NOTHING_AROUND = WorkerServices(None, None, None)
REFUSED = ServeError(Code.INVALID, "it does not like it.")


class Engine:
    """Is its own runner. `opening` and `running` say what happens."""

    name = "made-up"
    isolation = (Isolation.THREAD, Isolation.INLINE)

    def __init__(self, opening=lambda: None, running=lambda batch: Tensors(())):
        self.opening, self.running = opening, running
        self.ran, self.closed = [], Event()

    def open(self, spec, placement):
        self.opening()
        return self

    def run(self, batch):
        self.ran.append(batch.operations[0].id)
        return Ran([self.running(batch)])

    def close(self):
        self.closed.set()


def launch(engine, isolation=Isolation.INLINE, finish=lambda: None, **fields):
    """Launches and closes an instance; returns what it was."""

    async def main(executor):
        launcher = Launcher(engine, make_spec(**fields), executor, NOTHING_AROUND)
        try:
            instance = await launcher.launch(Placement("m_0", isolation), None)
        finally:
            finish()
        instance.close()
        return type(instance)

    with ThreadPoolExecutor(1) as executor:
        return asyncio.run(main(executor))


def refusal(engine, **fields):
    with pytest.raises(ServeError) as caught:
        launch(engine, **fields)
    return caught.value


def fails(error):
    def fail(*args):
        raise error

    return fail


def test_an_engine_may_choose_the_isolation_by_the_model():
    chooser = Engine()
    chooser.default_isolation = lambda spec: Isolation.INLINE if spec.name == "m" else Isolation.THREAD
    assert default_isolation(chooser, make_spec()) is Isolation.INLINE
    assert default_isolation(Engine(), make_spec()) is Isolation.THREAD


@pytest.mark.parametrize(
    ("isolation", "kind"), [(Isolation.INLINE, InlineInstance), (Isolation.THREAD, ThreadInstance)]
)
def test_it_is_warm_and_of_the_kind_asked_for(isolation, kind):
    engine = Engine()
    assert launch(engine, isolation, warmups=WARMUPS) is kind
    assert engine.ran == ["a", "a", "b", "b"]
    assert engine.closed.wait(5)


def test_a_kind_that_the_engine_has_not():
    error = refusal(Engine(), isolation=Isolation.PROCESS)
    assert error.code is Code.UNSUPPORTED
    assert error.message == (
        "Model 'm': engine 'made-up' cannot run in isolation 'process'; it can in: thread, inline."
    )
    only_thread = Engine()
    only_thread.isolation = (Isolation.THREAD,)
    assert refusal(only_thread, isolation=Isolation.INLINE).message.endswith("it can in: thread.")


def test_an_error_of_the_engine_is_passed_on():
    error = ServeError(Code.UNSUPPORTED, "pip install it")
    assert refusal(Engine(fails(error))) is error


def test_anything_else_names_file_and_model():
    error = refusal(Engine(fails(ValueError("odd"))))
    assert error.code is Code.LOAD_FAILED
    assert error.message.endswith("could not open /nowhere for model 'm': ValueError: odd")
    assert isinstance(error.__cause__, ValueError)


@pytest.mark.parametrize(
    ("running", "said"),
    [
        (fails(ValueError("odd")), "Warm-up 'a' failed: The model raised ValueError: odd"),
        (lambda batch: REFUSED, "Warm-up 'a' failed: it does not like it."),
    ],
)
def test_a_warm_up_that_fails_closes_what_was_opened(running, said):
    engine = Engine(running=running)
    error = refusal(engine, warmups=WARMUPS)
    assert (error.code, error.message) == (Code.LOAD_FAILED, said)
    assert engine.closed.is_set()


def test_what_opens_too_late_is_refused_and_closed():
    gate = Event()
    engine = Engine(lambda: gate.wait(5))
    error = refusal(engine, finish=gate.set, limits=Limits(startup_deadline=0.01))
    assert error.code is Code.LOAD_FAILED
    assert "m_0 of model 'm' was not open after 0.01 s" in error.message
    assert engine.closed.wait(5)


def test_what_is_opened_for_nobody_is_closed():
    gate, begun = Event(), Event()

    def opening():
        begun.set()
        gate.wait(5)

    engine = Engine(opening)

    async def main(executor):
        launcher = Launcher(engine, make_spec(), executor, NOTHING_AROUND)
        task = asyncio.ensure_future(launcher.launch(Placement("m_0", Isolation.INLINE), None))
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(main(executor))
    assert engine.closed.wait(5)
