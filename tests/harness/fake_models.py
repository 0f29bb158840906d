"""A format and an engine that do as they are told, and a server over them, for tests of life cycles."""

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.harness.virtual_models import make_infer, make_spec

from trivium.core.server import Server
from trivium.core.services import CoreServices
from trivium.translators.engine import engine_finder
from trivium.types.core_config import CoreConfig
from trivium.types.datatype import DataType
from trivium.types.payload import PayloadKind, Tensor, Tensors
from trivium.types.running import Ran
from trivium.types.spec import InstanceGroup, Isolation, Latest, ModelFacts, ReadResult

PATH = Path("anywhere")


def spec(name="m", version="1", policy=Latest(), isolation=Isolation.THREAD, **fields):  # noqa: B008
    """One version; its engine's answers tell the `stamp`."""
    parameters = {"stamp": fields.pop("stamp", version)}
    group = InstanceGroup(name, isolation=isolation)
    made = make_spec(groups=(group,), version_policy=policy, parameters=parameters, **fields)
    return replace(made, name=name, version=version, engine="made-up")


class FakeFormat:
    """Reads what `specs` and `broken` hold at the time."""

    name = "made-up"
    expects = "any path"

    def __init__(self, *specs):
        self.specs, self.broken = specs, ()
        self.finish = lambda spec, facts: spec

    def claims(self, path):
        return path == PATH

    def read(self, path, defaults):
        return ReadResult(tuple(self.specs), tuple(self.broken))


class FakeEngine:
    """Opens a runner that answers the stamp of its spec. `faults` and `gates` hold by stamp."""

    name = "made-up"
    takes = frozenset({PayloadKind.TENSORS})
    isolation = (Isolation.THREAD, Isolation.INLINE)
    has_facts = False

    def __init__(self):
        self.faults, self.gates, self.closed = {}, {}, []
        self.ended = threading.Event()

    def facts(self, spec):
        return ModelFacts((), (), True)

    def open(self, spec, placement):
        stamp = spec.parameters["stamp"]
        if gate := self.gates.get(("open", stamp)):
            gate.enter()
        if fault := self.faults.get(stamp):
            raise fault
        return FakeRunner(self, stamp)


class FakeRunner:
    """Answers each item with the stamp, once the gate of ("run", stamp) is open."""

    def __init__(self, engine, stamp):
        self.engine, self.stamp = engine, stamp

    def run(self, batch):
        if gate := self.engine.gates.get(("run", self.stamp)):
            gate.enter()
        answer = Tensors((Tensor("x", DataType.FP32, (1,), np.array([float(self.stamp)], "<f4")),))
        return Ran([answer] * len(batch.items))

    def close(self):
        self.engine.closed.append(self.stamp)
        self.engine.ended.set()


class Gate:
    """Where a thread of the engine waits until the test lets it on."""

    def __init__(self):
        self._entered, self._opened = threading.Event(), threading.Event()

    def enter(self):
        self._entered.set()
        assert self._opened.wait(60), "the test left its gate shut"

    async def reached(self):
        """Wait until a thread stands before it."""
        assert await asyncio.get_running_loop().run_in_executor(None, self._entered.wait, 60)

    def open(self):
        self._opened.set()


async def no_facts(spec):
    return ModelFacts((), (), True)


class ServerHarness:
    """A server over one made-up path."""

    def __init__(self, *specs, facts=no_facts, config=None, form=None):
        self.form, self.engine, self.progress = form or FakeFormat(*specs), FakeEngine(), []
        self.server = Server(
            [self.form],
            engine_finder({"made-up": self.engine}, {}),
            CoreServices(facts),
            config or CoreConfig(),
        )

    async def start(self):
        self.server.add(PATH)
        return await self.server.start(self._note)

    def _note(self, status):
        self.progress.append((status.model, status.version, status.state.value))

    async def stamp(self, model="m", version=""):
        """What the model that serves now answers."""
        infer = replace_model(make_infer(), model, version)
        part = await self.server.execute(infer)
        return int(part.payload["x"][0])

    def later(self, model="m", version=""):
        """An inference that goes on by itself."""
        return asyncio.ensure_future(self.stamp(model, version))

    def gate(self, what, stamp):
        self.engine.gates[what, stamp] = gate = Gate()
        return gate

    def states(self, model=""):
        rows = self.server.list().versions
        return {(row.model, row.version): row.state.value for row in rows if model in ("", row.model)}

    async def until(self, claim):
        """Wait until `claim()` holds."""
        async with asyncio.timeout(60):
            while not claim():
                await asyncio.sleep(0)


def replace_model(infer, model, version):
    return type(infer)(model=model, version=version, payload=infer.payload)


@asynccontextmanager
async def serving(*specs, **options):
    scene = ServerHarness(*specs, **options)
    async with scene.server:
        await scene.start()
        yield scene
