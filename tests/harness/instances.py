"""Drives one model in front of each kind of instance, and checks at the end that nothing is left."""

import asyncio
import os
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from tests.harness.model_parts import kept_parts
from tests.harness.virtual_models import make_spec

from trivium.core.clock import LoopClock
from trivium.core.instances.inline import InlineInstance
from trivium.core.instances.mailbox import Mailbox
from trivium.core.instances.thread import ThreadInstance
from trivium.core.models.model_context import ModelContext
from trivium.core.models.served_model import ServedModel
from trivium.core.workers.arena import Arena
from trivium.core.workers.process_launcher import ProcessLauncher, WorkerServices
from trivium.load.simulate import VirtualClock, VirtualInstance
from trivium.types.buffers import Lease
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, ResponsePart
from trivium.types.payload import PayloadKind, Tensor, Tensors
from trivium.types.running import Ran, WorkerCommand
from trivium.types.spec import Batching, InstanceGroup, Isolation
from trivium.types.state import ItemState

RUNNERS = ("inline", "thread", "process")
HELD_UP = ("thread", "process")
"""Kinds whose items can be held up in the middle."""

WORKER = (sys.executable, str(Path(__file__).parents[1] / "fixtures" / "scripted_worker.py"))
KINDS = (*RUNNERS, "virtual")
MERGED = Batching(True, 8, merge=True)
LEFT = ServeError(Code.CANCELLED, "by the test")
BAD = ServeError(Code.INVALID, "this item is bad")


class WatchedLease(Lease):
    """Counts what the core does with it. The test, as front end, keeps its own hold until the check."""

    __slots__ = ("back", "holds", "releases")

    def __init__(self):
        super().__init__(memoryview(bytearray(8)), lambda lease: self.back.append(lease.view))
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
        assert self.gate.wait(60), "the test left the gate shut"
        ids = [operation.id for operation in batch.operations]
        if "raise" in ids:
            raise RuntimeError("as told")
        outcomes = [BAD if operation.id == "bad" else operation.payload for operation in batch.operations]
        return Ran(outcomes[1:] if "short" in ids else outcomes)

    def close(self):
        self.closes.append(threading.current_thread().name)


class NoCore:
    """Whom workers call where nobody is."""

    def submit(self, operation, sink):
        sink(ResponsePart(error=ServeError(Code.NOT_FOUND, "nobody is there")))


class WorkerHarness:
    """Scripted worker processes of one model, and the folder through which the test holds them up."""

    def __init__(self, spec, submits=None):
        self.spec, self.arena = spec, Arena(spec.name)
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self._temporary.name)
        self.around = WorkerServices(submits or NoCore(), lambda model, step: None, None)
        self._threads = ThreadPoolExecutor(1)
        self.instances, self.ports = [], []

    async def launch(self, placement, port):
        setup = {
            "dialect": "scripted", "model": self.spec.name, "version": "1", "instance": placement.name,
            "device": "cpu", "device_id": 0, "root": "", "entry": "", "function": "", "max_rows": 8, "path": [],
            "settings": {"folder": str(self.folder)}, "parameters": dict(self.spec.parameters),
        }  # fmt: skip
        program = WorkerCommand(WORKER, self.folder, dict(os.environ), setup)
        launcher = ProcessLauncher(self.spec, self._threads, self.around, self.arena)
        instance = await launcher.launch(program, placement, port)
        self.instances.append(instance)
        self.ports.append(port)
        return instance

    def shut(self):
        (self.folder / "ran").unlink(missing_ok=True)
        (self.folder / "shut").touch()

    def open(self):
        (self.folder / "shut").unlink(missing_ok=True)

    def ran(self):
        ran = self.folder / "ran"
        return ran.read_text().split() if ran.exists() else []

    def closed(self):
        return [int(path.name.removeprefix("closed-")) for path in self.folder.glob("closed-*")]

    async def close(self):
        """All end, and nothing is lent any more."""
        await self.around.close(10)
        assert not [worker for worker in self.instances if not worker.gone.done()]
        assert self.arena.lent == 0
        self._threads.shutdown()
        self._temporary.cleanup()


class InstanceHarness:
    """A `ServedModel` over instances of one kind. Every virtual run takes `seconds`; virtual instances and worker
    processes may have many items in work.
    """

    def __init__(self, kind, batching=None, instances=1, seconds=1.0, in_flight=0, **fields):
        loop = asyncio.get_running_loop()
        self.kind, self.seconds, self.script, self.in_flight = kind, seconds, Script(), in_flight
        if in_flight and kind == "process":
            fields["parameters"] = {"in_flight": str(in_flight)}
        self.clock = VirtualClock() if kind == "virtual" else LoopClock(loop)
        signal = self.clock.call_soon if kind == "virtual" else loop.call_soon_threadsafe
        batching = batching or Batching(batch_axis=True)
        spec = make_spec(batching, groups=(InstanceGroup("m", instances, instances),), **fields)
        self.workers = WorkerHarness(spec) if kind == "process" else None
        isolation = Isolation.PROCESS if self.workers else Isolation.THREAD
        self.submits, self.metrics = NoCore(), []
        means = (
            ModelContext(frozenset(PayloadKind) - {PayloadKind.GENERATE}, self.workers.arena)
            if self.workers
            else ModelContext()
        )
        with kept_parts() as self.pieces:
            self.model = ServedModel(spec, isolation, self.launch, Mailbox(signal), self.clock, means)
        self.parts, self.leases, self.ended = {}, [], []

    async def launch(self, placement, port):
        if self.kind == "virtual":
            return VirtualInstance(self.clock, port, lambda rows: self.seconds, self.in_flight)
        if self.workers:
            return await self.workers.launch(placement, port)
        if self.kind == "inline":
            return InlineInstance(self.script, port)
        return ThreadInstance(self.script, port, placement.name, asyncio.get_running_loop().call_soon)

    async def __aenter__(self):
        await self.model.open()
        return self

    async def __aexit__(self, kind, *exc):
        self.script.gate.set()
        try:
            if kind is None:
                await self.settle()
                await self.until(self.has_all_back)  # an item may end before the batch that it was in
                self.check()
        finally:
            opened = len(self.model.debug_state().instances)
            await self.model.close()
            if self.workers:
                await self.workers.close()
            elif self.kind != "virtual":
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
        if self.workers:
            self.workers.shut()
        elif self.kind == "thread":
            self.script.entered.clear()
            self.script.gate.clear()

    async def begun(self, item):
        """Wait until the item is with an instance, and make sure that it has not ended there."""
        if self.kind == "thread":
            assert await asyncio.get_running_loop().run_in_executor(None, self.script.entered.wait, 60)
        elif self.kind == "virtual":
            self.clock.run(self.clock.now() + self.seconds / 2)
        elif self.workers:
            await self.until(lambda: str(item.item) in self.workers.ran())
        await self.until(lambda: item.state is not ItemState.QUEUED)
        assert item.state is not ItemState.ENDED

    def runs(self):
        """How many items have begun with an instance."""
        if self.kind == "virtual":
            return len(self.parts)
        return len(self.workers.ran() if self.workers else self.script.ran)

    async def until(self, claim):
        async with asyncio.timeout(60):
            while not claim():
                await asyncio.sleep(0.001 if self.workers else 0)

    async def settle(self):
        """Wait until nothing waits or runs."""
        self.script.gate.set()
        if self.workers:
            self.workers.open()
        if self.kind == "virtual":
            self.clock.run()
        async with asyncio.timeout(60):
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
        assert self.has_all_back()
        self.check_books()

    def has_all_back(self):
        """Is every credit back, and no item with an instance?"""
        return all(each.is_at_rest for each in self.model.debug_state().instances.values())

    def check_books(self):
        report = self.model.report()
        assert report.success.count == self.codes().count(None)
        assert report.success.count + report.fail.count == len(self.parts)
        assert report.queued_items == 0


class Recorder:
    """A port that keeps what is pushed."""

    def __init__(self):
        self.events = []

    def push(self, events):
        self.events += events

    deliver = push


def scene(play, **fields):
    """Play it with a model in worker processes, and see that nothing is left."""

    async def run():
        async with InstanceHarness("process", **fields) as stage:
            await play(stage)

    asyncio.run(run())
