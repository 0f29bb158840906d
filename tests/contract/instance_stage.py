"""One model in front of each kind of instance, and what must hold when the curtain falls."""

import asyncio
import threading

import numpy as np
from tests.unit.core.virtual import make_spec

from trivium.core.clock import LoopClock
from trivium.core.loaded_model import LoadedModel
from trivium.core.workers.inline import InlineInstance
from trivium.core.workers.mailbox import Mailbox
from trivium.core.workers.thread import ThreadInstance
from trivium.load.simulate import VirtualClock, VirtualInstance
from trivium.types.buffers import Lease
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Ran
from trivium.types.spec import Batching, InstanceGroup, Isolation
from trivium.types.state import ItemState

RUNNERS = ("inline", "thread")
KINDS = (*RUNNERS, "virtual")
MERGED = Batching(True, 8, merge=True)
LEFT = ServeError(Code.CANCELLED, "by the test")
BAD = ServeError(Code.INVALID, "this item is bad")


class WatchedLease(Lease):
    """Counts what the core does with it. The test, as front end, keeps its own hold until the check."""

    __slots__ = ("back", "holds", "releases")

    def __init__(self):
        super().__init__(memoryview(bytearray(8)), lambda view: self.back.append(view))
        self.holds = self.releases = 0
        self.back = []

    def hold(self):
        self.holds += 1
        super().hold()

    def release(self):
        self.releases += 1
        super().release()

    def check(self):
        assert (self.holds, self.releases, self.back) == (1, 1, [])
        super().release()
        assert len(self.back) == 1


class Script:
    """A runner that does what the ids of its items say, and stops at `gate` while that is shut."""

    def __init__(self):
        self.ran, self.closes = [], []
        self.gate, self.entered = threading.Event(), threading.Event()
        self.gate.set()

    def run(self, batch):
        self.ran += batch.items
        self.entered.set()
        assert self.gate.wait(10), "the test left the gate shut"
        ids = [operation.id for operation in batch.operations]
        if "raise" in ids:
            raise RuntimeError("as told")
        outcomes = [BAD if operation.id == "bad" else operation.payload for operation in batch.operations]
        return Ran(outcomes[1:] if "short" in ids else outcomes)

    def close(self):
        self.closes.append(threading.current_thread().name)


class Stage:
    """A `LoadedModel` over instances of one kind. Every virtual run takes `seconds`."""

    def __init__(self, kind, batching=None, instances=1, seconds=1.0, **fields):
        loop = asyncio.get_running_loop()
        self.kind, self.seconds, self.script = kind, seconds, Script()
        self.clock = VirtualClock() if kind == "virtual" else LoopClock(loop)
        signal = self.clock.call_soon if kind == "virtual" else loop.call_soon_threadsafe
        batching = batching or Batching(batch_axis=True)
        spec = make_spec(batching, groups=(InstanceGroup("m", instances, instances),), **fields)
        self.model = LoadedModel(spec, Isolation.THREAD, self._launch, Mailbox(signal), self.clock)
        self.parts, self.leases, self.ended = {}, [], []

    async def _launch(self, placement, port):
        if self.kind == "virtual":
            return VirtualInstance(self.clock, port, lambda rows: self.seconds)
        if self.kind == "inline":
            return InlineInstance(self.script, port)
        return ThreadInstance(self.script, port, placement.name, asyncio.get_running_loop().call_soon)

    async def __aenter__(self):
        await self.model.open()
        return self

    async def __aexit__(self, kind, *exc):
        self.script.gate.set()
        if kind is None:
            await self.settle()
            self.check()
        opened = len(self.model._pool.slots())
        await self.model.close()
        if self.kind != "virtual":
            await self.until(lambda: len(self.script.closes) == opened)

    def submit(self, id="", then=None, **fields):
        """Submit one row; `then` is called with the final part."""
        number = len(self.parts) + 1
        lease, parts = WatchedLease(), []
        self.parts[number] = parts
        self.leases.append(lease)

        def sink(part):
            parts.append(part)
            if part.final:
                self.ended.append(number)
                if then is not None:
                    then(part)

        array = np.frombuffer(lease.view, "<f4").reshape(1, 2)
        payload = Tensors((Tensor("x", DataType.FP32, (1, 2), array),), lease)
        return self.model.submit(number, Infer(model="m", payload=payload, id=id, **fields), sink)

    def shut(self):
        """What begins in a thread from now on does not end before `settle`."""
        if self.kind == "thread":
            self.script.entered.clear()
            self.script.gate.clear()

    async def begun(self, item):
        """Wait until the item is with an instance, and make sure that it has not ended there."""
        if self.kind == "thread":
            assert await asyncio.get_running_loop().run_in_executor(None, self.script.entered.wait, 10)
        elif self.kind == "virtual":
            self.clock.run(self.clock.now() + self.seconds / 2)
        await self.until(lambda: item.state is not ItemState.QUEUED)
        assert item.state is not ItemState.ENDED

    async def until(self, claim):
        async with asyncio.timeout(10):
            while not claim():
                await asyncio.sleep(0)

    async def settle(self):
        """Wait until nothing waits or runs."""
        self.script.gate.set()
        if self.kind == "virtual":
            self.clock.run()
        async with asyncio.timeout(10):
            await self.model.idle()
        await asyncio.sleep(0)

    def codes(self):
        """How each item ended, in the order of submission: a code, or None for well."""
        return [parts[-1].error and parts[-1].error.code for parts in self.parts.values()]

    def check(self):
        """One end each, every credit back, every lease released once; and the books."""
        for number, parts in self.parts.items():
            assert [part.final for part in parts] == [True], f"item {number} got {parts}"
        for lease in self.leases:
            lease.check()
        for slot in self.model._pool.slots().values():
            assert (slot.credits, slot.held) == (1, {})
        self.check_books()

    def check_books(self):
        report = self.model.report()
        assert report.success.count == self.codes().count(None)
        assert report.success.count + report.fail.count == len(self.parts)
        assert report.queued_items == 0
