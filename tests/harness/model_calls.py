"""Several models over real worker processes, which call one another."""

import asyncio
import itertools
import json
import logging
import os
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.harness.instances import WorkerHarness
from tests.harness.model_parts import kept_parts
from tests.harness.virtual_models import make_spec

from trivium.core.clock import LoopClock
from trivium.core.instances.mailbox import Mailbox
from trivium.core.models.model_context import ModelContext
from trivium.core.models.served_model import ServedModel
from trivium.core.observability.custom_metrics import CustomMetrics
from trivium.core.queueing.call_graph import CallGraph
from trivium.core.workers.process_launcher import WorkerServices
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, Load, Readiness, Ready, ResponsePart
from trivium.types.payload import PayloadKind, Tensor, Tensors
from trivium.types.spec import Batching, InstanceGroup, Isolation

PAYLOAD = Tensors((Tensor("x", DataType.FP32, (1, 2), np.array([[1, 2]], "<f4")),))


class ModelCallHarness:
    """Models by name with so many instances each; itself the core that their workers call."""

    def __init__(self, **instances):
        loop = asyncio.get_running_loop()
        self.numbers, self.calls, self.metrics = itertools.count(1), CallGraph(), CustomMetrics()
        self.workers, self.models, self.pieces, self.asked = {}, {}, {}, []
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self._temporary.name)
        mailbox, clock = Mailbox(loop.call_soon_threadsafe), LoopClock(loop)
        for name, count in instances.items():
            spec = make_spec(Batching(batch_axis=True), groups=(InstanceGroup(name, count, count),))
            workers = self.workers[name] = WorkerHarness(replace(spec, name=name))
            workers.around = WorkerServices(self, self.metrics.take, None)
            means = ModelContext(frozenset(PayloadKind) - {PayloadKind.GENERATE}, workers.arena, self.calls)
            with kept_parts() as self.pieces[name]:
                self.models[name] = ServedModel(
                    workers.spec, Isolation.PROCESS, workers.launch, mailbox, clock, means
                )

    async def __aenter__(self):
        await asyncio.gather(*(model.open() for model in self.models.values()))
        return self

    async def __aexit__(self, kind, *exc):
        try:
            if kind is None:
                async with asyncio.timeout(60):
                    await asyncio.gather(*(model.idle() for model in self.models.values()))
                    while not self.has_all_back():  # an item may end before the batch that it was in
                        await asyncio.sleep(0.001)
                self.check()
        finally:
            for model in self.models.values():
                await model.close()
            await asyncio.gather(*(workers.close() for workers in self.workers.values()))
            self._temporary.cleanup()

    def has_all_back(self):
        """Is every credit back, and no item with an instance?"""
        states = [model.debug_state() for model in self.models.values()]
        return all(each.is_at_rest for state in states for each in state.instances.values())

    def check(self):
        """Nobody waits for anybody, and every credit is back."""
        assert self.has_all_back()
        assert self.calls.waiting == {}
        for name, model in self.models.items():
            assert model.debug_state().calls == 0
            for worker in self.workers[name].instances:
                assert worker.debug_state().open_calls == ()

    def submit(self, operation, sink):
        """As the server does."""
        if isinstance(operation, Infer):
            model = self.models.get(operation.model)
            if model is None:
                sink(
                    ResponsePart(error=ServeError(Code.NOT_FOUND, f"There is no model '{operation.model}'."))
                )
                return None
            return model.submit(next(self.numbers), operation, sink)
        self.asked.append(operation)
        if isinstance(operation, Ready):
            sink(ResponsePart(answer=Readiness(operation.model in self.models, "by the test")))
        elif isinstance(operation, Load):
            asyncio.get_running_loop().call_soon(sink, ResponsePart())
        else:
            sink(ResponsePart(error=ServeError(Code.NOT_READY, "not now")))
        return None

    def ask(self, model, *plan, **fields):
        """A request whose handler does these steps; a future of its final part, with the ticket as `item`."""
        done = asyncio.get_running_loop().create_future()
        parameters = {"plan": json.dumps(plan)} if plan else {}
        infer = Infer(
            model=model, payload=PAYLOAD, id="plan" if plan else "", parameters=parameters, **fields
        )
        done.item = self.submit(infer, lambda part: done.set_result(part) if part.final else None)
        return done

    async def until(self, claim):
        async with asyncio.timeout(60):
            while not claim():
                await asyncio.sleep(0.002)

    def is_held(self, name, count=1):
        """Do the instances of that model hold so many items, which user code has?"""
        return len(self.workers[name].ran()) >= count

    def was_cancelled(self, name):
        return (self.workers[name].folder / "cancelled").exists()

    def kill(self, name, index=0):
        os.killpg(self.workers[name].instances[index].pid, signal.SIGKILL)


def call(model, *plan, **fields):
    """The step of calling a model, whose handler then does these steps."""
    return {"model": model, **({"plan": plan} if plan else {}), **fields}


def scene(play, **instances):
    """Play it, and see that nothing is left."""
    logging.getLogger("trivium").setLevel(logging.DEBUG)

    async def run():
        async with ModelCallHarness(**instances) as troupe:
            await play(troupe)

    asyncio.run(run())
