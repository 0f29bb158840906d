"""Warms an instance up before it takes work, by the instance contract, wherever it runs."""

import asyncio
from collections.abc import Sequence as Events
from concurrent.futures import Executor

import numpy as np

from trivium.codecs.synthetic import synthetic_tensor
from trivium.core.queueing.reshaping import Reshapes
from trivium.core.schedulers.sequence.controls import Controls
from trivium.core.schedulers.sequence.states import firsts
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Instance, Port
from trivium.types.operations import Infer, SequenceRef
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import (
    Batch,
    Dead,
    Event,
    Executed,
    Outcome,
    Part,
)
from trivium.types.schedules import Sequence
from trivium.types.spec import ModelSpec
from trivium.types.warmups import Warmup


class WarmUpPort:
    """Takes the events of an instance that is being warmed up, from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[Executed] = self._loop.create_future()
        self.parts: list[Outcome] = []  # errors of items that ended by parts of their own

    def push(self, events: Events[Event]) -> None:
        """See `Port`."""
        self._loop.call_soon_threadsafe(self.deliver, tuple(events))

    def deliver(self, events: Events[Event]) -> None:
        """Keep the end of the batch, or of the instance."""
        for event in events:
            if self.done.done():
                return
            if isinstance(event, Executed):
                self.done.set_result(event)
            elif isinstance(event, Part):
                self.parts.append(event.error)
            elif isinstance(event, Dead):
                self.done.set_exception(ServeError(Code.LOAD_FAILED, event.post_mortem))


async def warm(instance: Instance, spec: ModelSpec, executor: Executor, port: Port) -> None:
    """Run every warm-up of the spec on the instance; afterwards its events go to `port`. Raises LOAD_FAILED, naming the
    warm-up, where one fails or does not end within the start-up deadline.
    """
    if not spec.warmups:
        return
    for batch in await asyncio.get_running_loop().run_in_executor(executor, batches, spec):
        warming = WarmUpPort()
        instance.attach(warming)
        instance.start(batch)
        name = batch.operations[0].id
        try:
            async with asyncio.timeout(spec.limits.startup_deadline):
                run = await warming.done
        except TimeoutError as error:
            raise ServeError(Code.LOAD_FAILED, f"Warm-up '{name}' did not end in time.") from error
        for outcome in (*run.outcomes, *warming.parts):
            if isinstance(outcome, ServeError):
                raise ServeError(Code.LOAD_FAILED, f"Warm-up '{name}' failed: {outcome.message}") from outcome
    instance.attach(port)


def batches(spec: ModelSpec) -> list[Batch]:
    """One batch per run that the spec asks for, in order. LOAD_FAILED where a data file does not fit."""
    return [batch for warmup in spec.warmups for batch in [_batch(spec, warmup)] * warmup.times]


def _batch(spec: ModelSpec, warmup: Warmup) -> Batch:
    about = f"Warm-up '{warmup.name}', input"
    tensors = tuple(synthetic_tensor(item, warmup.rows, about) for item in warmup.inputs)
    tensors = Reshapes(spec).inward(Tensors(tensors)).items
    sequence = None
    if isinstance(spec.scheduling, Sequence):
        sequence = SequenceRef(1, starts=True, ends=True)
        has_axis = warmup.rows > 0
        told = Controls(spec.name, spec.scheduling.controls, has_axis).of(sequence)
        begun = firsts(spec.name, spec.scheduling.states, has_axis)
        tensors += tuple(_repeated(tensor, warmup.rows) for tensor in (*told, *begun))
    payload = Tensors(tensors)
    infer = Infer(model=spec.name, version=spec.version, payload=payload, id=warmup.name, sequence=sequence)
    return Batch([0], [infer], [max(warmup.rows, 1)])


def _repeated(tensor: Tensor, rows: int) -> Tensor:
    if rows <= 1:
        return tensor
    array = np.repeat(tensor.array, rows, axis=0)
    return Tensor(tensor.name, tensor.datatype, array.shape, array)
