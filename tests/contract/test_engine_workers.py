"""One of our own engines in a worker process: the same answers, faults and refusals as in a thread."""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.harness.virtual_models import X, make_infer, make_spec

from trivium.core.clock import LoopClock
from trivium.core.instances.mailbox import Mailbox
from trivium.core.models.model_context import ModelContext
from trivium.core.models.served_model import ServedModel
from trivium.core.workers import host
from trivium.core.workers.arena import Arena
from trivium.core.workers.process_launcher import ProcessLauncher, WorkerServices
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Placement
from trivium.types.spec import (
    All,
    Batching,
    Dynamic,
    InstanceGroup,
    Isolation,
    Latest,
    QueuePolicy,
    Specific,
    TensorSpec,
)
from trivium.types.warmups import SyntheticFill, Warmup, WarmupInput

COMMAND = (sys.executable, "-m", "trivium.cli.worker")
ROWS = Batching(True, 8, merge=True)
GROUP = InstanceGroup("m", 1, 1, isolation=Isolation.PROCESS)


def serving(spec, play):
    """Play with a model of that spec, whose engine runs in a worker process."""

    async def main(threads):
        arena = Arena("m")
        around = WorkerServices(None, lambda model, step: None, None)
        launcher = ProcessLauncher(spec, threads, around, arena)

        async def launch(placement, port):
            return await launcher.launch(host.program(COMMAND, os.environ, spec, placement), placement, port)

        loop = asyncio.get_running_loop()
        mailbox = Mailbox(loop.call_soon_threadsafe)
        model = ServedModel(
            spec, Isolation.PROCESS, launch, mailbox, LoopClock(loop), ModelContext(arena=arena)
        )
        try:
            await model.open()
            await play(model)
        finally:
            await model.close()
            await around.close(10)
        assert arena.lent == 0

    with ThreadPoolExecutor(1) as threads:
        asyncio.run(main(threads))


async def answer(model, number, infer):
    done = asyncio.get_running_loop().create_future()
    model.submit(number, infer, done.set_result)
    return await asyncio.wait_for(done, 60)


def identity(**fields):
    fields = {"batching": ROWS, "groups": (GROUP,), **fields}
    return make_spec(**fields)


def test_its_answers_are_those_of_a_thread():
    both = (X, TensorSpec("b", DataType.BYTES, (-1,)))

    async def play(model):
        text = np.array([[b"a", b"bc"]], dtype=object)
        items = (*make_infer(1, 7.5).payload.items, Tensor("b", DataType.BYTES, (1, 2), text))
        part = await answer(model, 1, Infer(model="m", payload=Tensors(items)))
        assert part.payload["x"].tolist() == [[7.5, 7.5]]
        assert part.payload["b"].tolist() == [[b"a", b"bc"]]

    serving(identity(inputs=both, outputs=both), play)


@pytest.mark.parametrize("policy", [Latest(2), All(), Specific(frozenset({"1", "3"}))])
def test_the_whole_spec_gets_there(policy):
    warmup = Warmup("w", 1, 1, (WarmupInput("x", DataType.FP32, (2,), SyntheticFill.ZERO),))
    spec = identity(
        version_policy=policy,
        warmups=(warmup,),
        scheduling=Dynamic(levels=2, level_policies={2: QueuePolicy(timeout=1.0)}),
        parameters={"execute_delay_ms": "1"},
    )

    async def play(model):
        parts = await asyncio.gather(*(answer(model, n, make_infer(2, n)) for n in range(1, 9)))
        assert [part.payload["x"][0, 0] for part in parts] == list(range(1, 9))

    serving(spec, play)


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"parameters": {"execute_delay_ms": "soon"}}, "execute_delay_ms"), ({"engine": "onnx"}, "nowhere")],
)
def test_a_model_that_does_not_open_is_refused_in_the_engines_words(fields, words):
    async def play(model):
        raise AssertionError("it opened")

    with pytest.raises(ServeError) as caught:
        serving(replace(identity(), **fields), play)
    assert caught.value.code is Code.LOAD_FAILED
    assert words in caught.value.message
    assert "Traceback" not in caught.value.message


def test_it_is_our_own_interpreter_with_the_servers_environment():
    made = host.program(COMMAND, {"A": "1"}, identity(), Placement("m_0", Isolation.PROCESS))
    assert (made.command, made.directory) == (COMMAND, Path.cwd())
    assert dict(made.environment).items() >= {"A": "1", "TQDM_DISABLE": "1"}.items(), (
        "bars of progress are switched off"
    )
