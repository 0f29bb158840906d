"""Models with sequences on the virtual clock, whose instances add up what each of their sequences was sent."""

import asyncio
from unittest.mock import patch

import numpy as np
from tests.harness.virtual_models import VirtualModelHarness, make_spec

from trivium.core.instances.mailbox import Mailbox
from trivium.core.instances.scaler import Scaler
from trivium.core.models import served_model
from trivium.core.models.served_model import ServedModel
from trivium.load.simulate import VirtualClock
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, SequenceRef
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Begun, Credit, Dead, Executed, Placement
from trivium.types.schedules import Control, Sequence, Signal
from trivium.types.spec import Batching, InstanceGroup, Isolation, Limits

CONTROLS = (
    Control("start", Signal.START, DataType.INT32),
    Control("end", Signal.END, DataType.BOOL, False, True),
    Control("ready", Signal.READY, DataType.FP32),
    Control("id", Signal.ID, DataType.UINT64),
)
LEFT = ServeError(Code.CANCELLED, "by the test")


def spec(rows=4, instances=1, scheduling=None, limits=Limits(), **fields):  # noqa: B008
    batching = Batching(True, rows, merge=True) if rows else Batching()
    scheduling = scheduling or Sequence(controls=CONTROLS, **fields)
    return make_spec(batching, scheduling, groups=(InstanceGroup("m", instances, instances),), limits=limits)


def infer(sequence, value=1.0, *, starts=False, ends=False, rows=1, **fields):
    ref = None if sequence is None else SequenceRef(sequence, starts, ends)
    array = np.full((rows, 2) if rows else (2,), value, "<f4")
    payload = Tensors((Tensor("x", DataType.FP32, array.shape, array),))
    return Infer(model="m", payload=payload, sequence=ref, **fields)


class Adder:
    """Adds up by the id that its control inputs tell; answers the sum. Knows nothing of how it is scheduled."""

    running_since = None
    in_flight = 0

    def __init__(self, bench, port):
        self.bench, self.port = bench, port
        self.sums, self.batches, self.is_dead, self.free_at = {}, [], False, 0.0
        self.begun = set()

    def start(self, batch):
        clock = self.bench.clock
        began = max(clock.now(), self.free_at)
        self.free_at = began + self.bench.service(len(batch.items))

        def run():
            if self.is_dead:
                return
            outcomes = [self.add(operation) for operation in batch.operations]
            self.batches.append([self.of(operation)["id"] for operation in batch.operations])
            times = (began, began, clock.now(), clock.now())
            self.port.push((Executed(batch.items, outcomes, *times), Credit(1)))

        clock.call_at(began, lambda: None if self.is_dead else self.begin(batch))
        clock.call_at(self.free_at, run)

    def begin(self, batch):
        self.begun.update(operation.sequence.id for operation in batch.operations if operation.sequence)
        self.port.push((Begun(tuple(batch.items)),))

    @staticmethod
    def of(operation):
        return {tensor.name: tensor.array.ravel()[0].item() for tensor in operation.payload.items}

    def add(self, operation):
        told = self.of(operation)
        key = told["id"]
        if not told["ready"]:
            assert (key, told["start"], told["end"], told["x"]) == (0, 0, False, 0.0)
            return operation.payload
        if told["start"]:
            self.sums[key] = 0.0
        assert key in self.sums, f"sequence {key} goes on where it has not begun"
        self.sums[key] += told["x"]
        array = np.full((1, 2), self.sums.pop(key) if told["end"] else self.sums[key], "<f4")
        return Tensors((Tensor("x", DataType.FP32, array.shape, array),))

    def cancel(self, item):
        """It runs to its end."""

    def close(self):
        pass

    def die(self):
        self.is_dead = True
        self.port.push((Dead("It was killed, by the test."),))


class PromptScaler(Scaler):
    """Opens as many instances as have died, at once: the scaler itself needs a loop for that."""

    def __init__(self, pool, groups, launch, clock, model, limits):
        super().__init__(pool, groups, launch, clock, model, limits)
        self.pool, self.launch, self.wanted = pool, launch, 0

    async def start(self):
        await super().start()
        self.wanted = self.pool.size

    def review(self):
        while self.pool.size < self.wanted:
            placement = Placement("m", Isolation.INLINE)
            number, slot, port = self.pool.reserve(placement)
            try:
                self.launch(placement, port).send(None)
            except StopIteration as opened:
                self.pool.admit(number, slot, opened.value)


class SequenceHarness(VirtualModelHarness):
    """A bench over adders, or what else `make` makes; an instance that died is replaced."""

    make = Adder

    def __init__(self, spec, service=lambda rows: 0.01, run=asyncio.run):
        self.clock, self.service, self.adders = VirtualClock(), service, []
        self.parts, self.ended, self.tickets = {}, [], {}

        async def launch(placement, port):
            self.adders.append(self.make(self, port))
            return self.adders[-1]

        def scaler(*args):
            self.scaler = PromptScaler(*args)
            return self.scaler

        with patch.object(served_model, "Scaler", scaler):
            mailbox = Mailbox(self.clock.call_soon)
            self.model = ServedModel(spec, Isolation.INLINE, launch, mailbox, self.clock)
        run(self.model.open())

    def send(self, sequence, value=1.0, **fields):
        """Its number."""
        number = len(self.parts) + 1
        self.tickets[number] = self.submit(infer(sequence, value, **fields), number)
        return number

    def sum(self, number):
        (part,) = self.parts[number]
        return part.payload["x"][0, 0].item() if part.error is None else part.error.code

    def sums(self):
        return [self.sum(number) for number in self.parts]
