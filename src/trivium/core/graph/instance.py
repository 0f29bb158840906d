"""Runs requests through a graph of models: an instance whose work is done by others.

To the core a graph is a model like any other, with a queue, limits and statistics of its own; this instance hands the
work on by the injected `submit`, so that its members keep theirs. How one request goes its way is `graph.run`. It knows
neither formats nor wires.
"""

from collections.abc import Callable, Collection

from trivium.core.graph.run import GraphContext, Run
from trivium.core.graph.slots import StepSlots
from trivium.core.instances.scaler import Launch
from trivium.core.request import CANCELLED
from trivium.types.errors import ServeError
from trivium.types.interfaces import Check, InferenceCore, Instance, Port
from trivium.types.payload import Payload, PayloadKind
from trivium.types.running import Batch, Credit, Executed, ItemId, Part, Placement
from trivium.types.schedules import Graph
from trivium.types.spec import ModelSpec

CREDIT = Credit(1)


def launcher(spec: ModelSpec, submits: InferenceCore, now: Callable[[], float]) -> Launch:
    """Return how the one instance of a graph is opened. It takes as many requests at a time as its queue may hold."""

    async def launch(placement: Placement, port: Port) -> Instance:
        port.push((Credit(spec.limits.queue_items - 1),))
        return GraphInstance(spec, submits, port, now)

    return launch


def takes(graph: Graph) -> frozenset[PayloadKind]:
    """Return what requests to a graph may bring."""
    kinds = {PayloadKind.TENSORS, PayloadKind.RAW} if graph.input else {PayloadKind.TENSORS}
    return frozenset(kinds)


class GraphInstance:
    """Used on the loop only."""

    threads: Collection[int] = ()
    in_flight = 0
    check: Check | None = None
    running_since: float | None = None  # what runs are the models of its steps

    def __init__(self, spec: ModelSpec, submits: InferenceCore, port: Port, now: Callable[[], float]) -> None:
        assert isinstance(spec.scheduling, Graph)
        inputs = frozenset(tensor.name for tensor in spec.inputs)
        graph = spec.scheduling
        self._context = GraphContext(
            spec.name,
            graph.steps,
            inputs,
            graph.in_flight,
            submits,
            now,
            graph.input,
            graph.output,
            StepSlots(graph.step_calls) if graph.step_calls else None,
        )
        self._outputs = (graph.output,) if graph.output else tuple(tensor.name for tensor in spec.outputs)
        self._port = port
        self._runs: dict[ItemId, Run] = {}

    def attach(self, port: Port) -> None:
        """See `Instance`."""
        self._port = port

    def start(self, batch: Batch) -> None:
        """Begin each request; every one costs a credit, which comes back with its end."""
        for item, operation in zip(batch.items, batch.operations, strict=True):
            asked = {output.name for output in operation.outputs}
            wanted = tuple(name for name in self._outputs if not asked or name in asked)
            run = self._runs[item] = Run(self._context, self, item, operation, wanted)
            run.proceed()

    def cancel(self, item: ItemId) -> None:
        """Cancel what its steps have in hand."""
        run = self._runs.pop(item, None)
        if run is not None:
            run.cancel(CANCELLED)
            self._port.push((Part(item, None, CANCELLED), CREDIT))

    def hold(self, item: ItemId) -> None:
        """Hold what its steps have in hand."""
        run = self._runs.get(item)
        if run is not None:
            run.hold()

    def resume(self, item: ItemId) -> None:
        """Its steps may go on."""
        run = self._runs.get(item)
        if run is not None:
            run.resume()

    def interrupt(self, why: str) -> Collection[ItemId]:
        """Each step's model keeps its own run deadline."""
        return ()

    def abandon(self, why: str) -> None:
        """It is never interrupted."""

    def close(self) -> None:
        """There is nothing to free; what was started still ends."""

    # -- called by a run -----------------------------------------------------------------------------------

    def executed(self, item: ItemId, payload: Payload, began: float) -> None:
        """A request has run, each of its steps once."""
        del self._runs[item]
        now = self._context.now()
        self._port.push((Executed([item], [payload], began, began, now, now), CREDIT))

    def answered(self, item: ItemId, payload: Payload, is_last: bool) -> None:
        """One answer of a request that gives several."""
        if is_last:
            del self._runs[item]
            self._port.push((Part(item, payload), CREDIT))
        else:
            self._port.push((Part(item, payload, final=False),))

    def ended(self, item: ItemId, error: ServeError | None) -> None:
        """It has failed, or ended without a last answer. One that failed did not execute anything of its own."""
        if self._runs.pop(item, None) is not None:
            self._port.push((Part(item, None, error), CREDIT))
