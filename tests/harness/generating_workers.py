"""A model that generates, served by an engine in a worker process, as tests play with it."""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from trivium.core.clock import LoopClock
from trivium.core.instances.mailbox import Mailbox
from trivium.core.models.model_context import ModelContext
from trivium.core.models.served_model import ServedModel
from trivium.core.workers import host
from trivium.core.workers.arena import Arena
from trivium.core.workers.process_launcher import ProcessLauncher, WorkerServices
from trivium.types.operations import Infer
from trivium.types.payload import PayloadKind
from trivium.types.spec import Isolation

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
        context = ModelContext(takes=frozenset({PayloadKind.GENERATE}), arena=arena)
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
