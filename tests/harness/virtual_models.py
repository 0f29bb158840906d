"""A model of the core on a virtual clock, for tests without threads, sockets or sleep."""

import asyncio
from pathlib import Path

import numpy as np

from trivium.core.models.model_context import ModelContext
from trivium.load.simulate import VirtualClock, load_virtually
from trivium.types.datatype import DataType
from trivium.types.operations import Infer, ResponsePart
from trivium.types.payload import Tensor, Tensors
from trivium.types.spec import Batching, Dynamic, InstanceGroup, ModelSpec, TensorSpec

X = TensorSpec("x", DataType.FP32, (2,))


def make_spec(batching=None, scheduling=None, **fields) -> ModelSpec:
    fields.setdefault("inputs", (X,))
    fields.setdefault("outputs", (X,))
    fields.setdefault("groups", (InstanceGroup("m", 1, 1),))
    return ModelSpec(
        "m",
        "1",
        Path("/nowhere"),
        "identity",
        "",
        batching=batching or Batching(),
        scheduling=scheduling or Dynamic(),
        **fields,
    )


def make_infer(rows=None, value=0.0, **fields) -> Infer:
    shape = (2,) if rows is None else (rows, 2)
    tensor = Tensor("x", DataType.FP32, shape, np.full(shape, value, "<f4"))
    return Infer(model="m", payload=Tensors((tensor,)), **fields)


class VirtualModelHarness:
    """Submits, runs the virtual clock, and keeps every part of every answer."""

    def __init__(self, spec, service=lambda rows: 1.0, run=asyncio.run, tracing=None, in_flight=0):
        """`tracing` makes one of the time."""
        self.clock = VirtualClock()
        context = ModelContext() if tracing is None else ModelContext(tracing=tracing(self.clock.now))
        self.model = load_virtually(spec, self.clock, service, run, context, in_flight)
        self.parts: dict[int, list[ResponsePart]] = {}
        self.ended: list[int] = []

    def submit(self, infer=None, number=None):
        number = number or len(self.parts) + 1
        self.parts[number] = []
        return self.model.submit(number, infer or make_infer(), lambda part: self._take(number, part))

    def _take(self, number, part):
        self.parts[number].append(part)
        if part.final:
            self.ended.append(number)

    def error(self, number):
        return self.parts[number][-1].error
