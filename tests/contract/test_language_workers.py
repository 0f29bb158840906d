"""A language model in a worker process: many requests at once, streamed and not, and what is refused."""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.harness.language_models import Steps, spec, text, write

from trivium.core.clock import LoopClock
from trivium.core.instances.mailbox import Mailbox
from trivium.core.models.model_context import ModelContext
from trivium.core.models.served_model import ServedModel
from trivium.core.workers import host
from trivium.core.workers.arena import Arena
from trivium.core.workers.process_launcher import ProcessLauncher, WorkerServices
from trivium.engines.hf.engine import ENGINE
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generate, Generated, Sampling, joined
from trivium.types.operations import Infer
from trivium.types.payload import PayloadKind
from trivium.types.spec import InstanceGroup, Isolation

pytest.importorskip("torch")
pytest.importorskip("transformers")

COMMAND = (sys.executable, "-m", "trivium.cli.worker")


async def parts_of(model, number, generate):
    """Submit a request, and return all parts of its answer; raises its error."""
    loop = asyncio.get_running_loop()
    done, found = loop.create_future(), []

    def sink(part):
        if part.error is not None:
            done.set_exception(part.error)
            return
        if part.payload is not None:
            found.append(part.payload)
        if part.final:
            done.set_result(None)

    model.submit(number, Infer("m", generate, wants=PayloadKind.GENERATE), sink)
    async with asyncio.timeout(60):
        await done
    return found


def serving(described, play):
    """Play with a model whose engine runs in a worker process."""

    async def main(threads):
        arena = Arena("m")
        around = WorkerServices(None, lambda model, step: None, None)
        launcher = ProcessLauncher(described, threads, around, arena)

        async def launch(placement, port):
            return await launcher.launch(
                host.program(COMMAND, os.environ, described, placement), placement, port
            )

        loop = asyncio.get_running_loop()
        context = ModelContext(takes=ENGINE.takes, arena=arena)
        mailbox = Mailbox(loop.call_soon_threadsafe)
        model = ServedModel(described, Isolation.PROCESS, launch, mailbox, LoopClock(loop), context)
        try:
            await model.open()
            await play(model)
        finally:
            await model.close()
            await around.close(10)

    with ThreadPoolExecutor(1) as threads:
        asyncio.run(main(threads))


def test_requests_are_answered_by_a_worker_as_they_are_here(tmp_path):
    folder = write(tmp_path, "llama")
    group = InstanceGroup("m", 1, 1, isolation=Isolation.PROCESS)
    described = replace(spec(folder, slots=4), groups=(group,), streams=True)
    told = [
        Generate(prompts=(text(i, 50 + 20 * i),), sampling=Sampling(max_tokens=5 + i), streams=bool(i % 2))
        for i in range(12)
    ]
    with Steps(folder, slots=4) as steps:
        expected = steps.answers({"prompts": one.prompts, "sampling": one.sampling} for one in told)

    async def play(model):
        found = await asyncio.gather(*(parts_of(model, number, one) for number, one in enumerate(told)))
        for one, parts, own in zip(told, found, expected, strict=True):
            assert all(isinstance(part, Generated) for part in parts)
            assert joined(parts).choices == own.choices
            assert (len(parts) > 1) == one.streams
            assert parts[-1].usage.new_tokens == own.usage.new_tokens
        with pytest.raises(ServeError, match="top_p") as caught:
            await parts_of(model, 100, Generate(prompts=("x",), sampling=Sampling(top_p=5.0)))
        assert caught.value.code is Code.INVALID
        with pytest.raises(ServeError, match="'prompt' has"):
            await parts_of(model, 101, Generate(prompts=("x " * 5000,)))

    serving(described, play)
