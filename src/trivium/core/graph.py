"""Runs requests through a graph of models: an instance whose work is done by others.

To the core a graph is a model like any other, with a queue, limits and statistics of its own; this instance hands the
work on by the injected `submit`, so that its members keep theirs. A step runs as soon as its inputs exist, and only
if what it gives is wanted. It knows neither formats nor wires.
"""

from collections.abc import Callable, Mapping
from functools import partial

from trivium.core.graph_policy import needed
from trivium.core.item import CANCELLED
from trivium.core.workers.scaler import Launch
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Instance, Port, Submits, Ticket
from trivium.types.operations import CallRef, Infer, ResponsePart, WantedOutput
from trivium.types.payload import PayloadKind, Tensor, Tensors
from trivium.types.running import Batch, Credit, Executed, ItemId, Outcome, Part, Placement
from trivium.types.schedules import Graph, Step
from trivium.types.spec import ModelSpec

LEAST_SECONDS = 0.001
TENSORS = PayloadKind.TENSORS
CREDIT = Credit(1)


def launcher(spec: ModelSpec, submits: Submits, now: Callable[[], float]) -> Launch:
    """How the one instance of a graph is opened. It takes as many requests at a time as its queue may hold."""

    async def launch(placement: Placement, port: Port) -> Instance:
        port.push((Credit(spec.limits.queue_items - 1),))
        return GraphInstance(spec, submits, port, now)

    return launch


class GraphInstance:
    """Used on the loop only."""

    def __init__(self, spec: ModelSpec, submits: Submits, port: Port, now: Callable[[], float]) -> None:
        assert isinstance(spec.scheduling, Graph)
        self.name = spec.name
        self.steps = spec.scheduling.steps
        self.submits = submits
        self.now = now
        self.inputs = frozenset(tensor.name for tensor in spec.inputs)
        self._outputs = tuple(tensor.name for tensor in spec.outputs)
        self._port = port
        self._runs: dict[ItemId, Run] = {}

    def start(self, batch: Batch) -> None:
        """Begin each request; every one costs a credit, which comes back with its end."""
        for item, operation in zip(batch.items, batch.operations, strict=True):
            asked = {output.name for output in operation.outputs}
            wanted = tuple(name for name in self._outputs if not asked or name in asked)
            run = self._runs[item] = Run(self, item, operation, wanted)
            run.advance()

    def cancel(self, item: ItemId) -> None:
        """Cancel what its steps have in hand."""
        run = self._runs.pop(item, None)
        if run is not None:
            run.abandon(CANCELLED)
            self._port.push((Part(item, None, CANCELLED), CREDIT))

    def close(self) -> None:
        """There is nothing to free; what was started still ends."""

    def ended(self, item: ItemId, outcome: Outcome, began: float) -> None:
        """A request has run. One that failed did not execute anything of this model's own."""
        if self._runs.pop(item, None) is None:
            return
        if isinstance(outcome, ServeError):
            self._port.push((Part(item, None, outcome), CREDIT))
        else:
            now = self.now()
            self._port.push((Executed([item], [outcome], began, began, now, now), CREDIT))


class Run:
    """One request on its way: the tensors that exist, the steps that have not begun, and those in work."""

    def __init__(self, graph: GraphInstance, item: ItemId, operation: Infer, wanted: tuple[str, ...]) -> None:
        self._graph = graph
        self._item = item
        self._operation = operation
        self._wanted = wanted
        self._began = graph.now()
        payload = operation.payload
        assert isinstance(payload, Tensors)  # the door has seen to it
        self._tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in payload.items}
        self._absent = graph.inputs - self._tensors.keys()
        steps, self._used = needed(graph.steps, wanted)
        self._pending = sorted(steps)
        self._working: dict[int, Ticket | None] = {}
        self._answered: set[int] = set()
        self._is_over = False
        above = operation.parent
        items, chain = (above.items, above.chain) if above is not None else ((), ())
        self._ref = CallRef((*items, item), (*chain, graph.name))

    def advance(self) -> None:
        """Begin every step whose inputs exist; end when nothing is left to do."""
        for i in self._pending[:]:
            if self._is_over:
                return
            sources = self._graph.steps[i].inputs.values()
            if all(name in self._tensors or name in self._absent for name in sources):
                self._pending.remove(i)
                self._begin(i, self._graph.steps[i])
        if not (self._is_over or self._working or self._pending):
            self._end(Tensors(tuple(self._tensors[name] for name in self._wanted if name in self._tensors)))

    def abandon(self, why: ServeError) -> None:
        """Nobody waits for it any more."""
        self._is_over = True
        working, self._working = self._working, {}
        for ticket in working.values():
            if ticket is not None:
                ticket.cancel(why)

    def _begin(self, i: int, step: Step) -> None:
        self._working[i] = None  # its answer may come before `submit` returns
        ticket = self._graph.submits.submit(self._call(step), partial(self._take, i))
        if i in self._working:
            self._working[i] = ticket
        elif self._is_over:
            ticket.cancel(CANCELLED)

    def _call(self, step: Step) -> Infer:
        whole = self._operation
        items = [
            _renamed(self._tensors[source], name)
            for name, source in step.inputs.items()
            if source in self._tensors
        ]
        left = whole.deadline
        if left is not None:
            left = max(left - (self._graph.now() - self._began), LEAST_SECONDS)
        return Infer(
            model=step.model,
            version=step.version,
            # What a member answers may view the request, so whoever gets it next holds the request's buffer, too.
            payload=Tensors(tuple(items), whole.payload.lease),
            id=whole.id,
            outputs=tuple(WantedOutput(name) for name, to in step.outputs.items() if to in self._used),
            parameters=whole.parameters,
            priority=whole.priority,
            queue_timeout=whole.queue_timeout,
            deadline=left,
            sequence=whole.sequence,
            wants=TENSORS,
            parent=self._ref,
        )

    def _take(self, i: int, part: ResponsePart) -> None:
        """A part of a step's answer; that of a step that gives several is refused with the second."""
        if self._is_over:
            return
        if part.final:
            self._working.pop(i, None)
        if part.error is not None:
            self._fail(i, part.error)
            return
        if isinstance(part.payload, Tensors):
            if i in self._answered:
                self._fail(i, _SEVERAL)
                return
            self._answered.add(i)
            self._keep(self._graph.steps[i].outputs, part.payload)
        if part.final:
            lacking = [
                name
                for name, to in self._graph.steps[i].outputs.items()
                if to in self._used and to not in self._tensors
            ]
            if lacking:
                self._fail(i, ServeError(Code.MODEL_FAILED, f"It answered without {', '.join(lacking)}."))
            else:
                self.advance()

    def _keep(self, names: Mapping[str, str], payload: Tensors) -> None:
        for tensor in payload.items:
            name = names.get(tensor.name)
            if name is not None:
                self._tensors[name] = _renamed(tensor, name)

    def _fail(self, i: int, error: ServeError) -> None:
        text = f"In ensemble '{self._graph.name}', step '{self._graph.steps[i].model}': {error.message}"
        told = ServeError(error.code, text, error.retry_after, error.status)
        told.__cause__ = error
        self._end(told)

    def _end(self, outcome: Outcome) -> None:
        self.abandon(CANCELLED)
        self._graph.ended(self._item, outcome, self._began)


_SEVERAL = ServeError(
    Code.UNSUPPORTED,
    "It answers in several parts (it is decoupled), which an ensemble does not serve yet. Call the model by itself, or "
    "let it answer each request once.",
)


def _renamed(tensor: Tensor, name: str) -> Tensor:
    return Tensor(name, tensor.datatype, tensor.shape, tensor.array)
