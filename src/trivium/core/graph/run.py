"""One request on its way through a graph: which steps are in work for it, and what it has answered.

A step that answers in several parts splits the request into branches, one for each part, in which the steps behind it
run once more. Answers leave in the order of the parts, however long a branch takes; a step that runs ahead of the
branches is held. It knows neither formats nor wires, and calls nothing but the injected `submit`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import msgspec

from trivium.codecs.graph_functions import ADAPTER, FUNCTIONS, as_request
from trivium.core.graph.branches import Branch, Fork, Named, forks
from trivium.core.graph.policy import behind, can_lack, needed
from trivium.core.graph.slots import StepSlots
from trivium.core.request import CANCELLED
from trivium.types.buffers import Lease
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Generate, Generated
from trivium.types.interfaces import InferenceCore
from trivium.types.operations import CallRef, Infer, ResponsePart, WantedOutput
from trivium.types.payload import Listed, Payload, PayloadKind, RequestPayload, Tensor, Tensors
from trivium.types.running import ItemId
from trivium.types.schedules import Step

LEAST_SECONDS = 0.001
WRONG_VALUE = 500
"""HTTP's status for a value with which a graph cannot go on: no model has failed."""

TENSORS = PayloadKind.TENSORS


@dataclass(frozen=True, slots=True)
class GraphContext:
    """Holds what all requests through one graph share: its steps, its inputs, and whom its members are called by.

    `in_flight` bounds the parts of one request that are in work at a time, `slots` the calls of each step over all
    requests. Where payloads pass as a whole, `input` and `output` name those of the request and of its answer.
    """

    name: str
    steps: Sequence[Step]
    inputs: frozenset[str]
    in_flight: int
    submits: InferenceCore
    now: Callable[[], float]
    input: str = ""
    output: str = ""
    slots: StepSlots | None = None


class GraphOutcomes(Protocol):
    """Takes the answers of the requests that go through a graph, and their ends."""

    def executed(self, item: ItemId, payload: Payload, began: float) -> None:
        """A request has run, each of its steps once."""

    def answered(self, item: ItemId, payload: Payload, is_last: bool) -> None:
        """A request that gives several answers has given one."""

    def ended(self, item: ItemId, error: ServeError | None) -> None:
        """A request has failed, or has ended without a last answer."""


class Run:
    """One request. Tells `outcomes` its answers and its end."""

    def __init__(
        self,
        graph: GraphContext,
        outcomes: GraphOutcomes,
        item: ItemId,
        operation: Infer,
        wanted: tuple[str, ...],
    ) -> None:
        self._graph = graph
        self._outcomes = outcomes
        self._item = item
        self._operation = operation
        self._wanted = wanted
        self._began = graph.now()
        given = _given(graph, operation.payload)
        self._absent = graph.inputs - given.keys()
        steps, self._used = needed(graph.steps, wanted)
        self._root = Branch(None, given, sorted(steps))
        self._is_over = False
        self._is_held = False
        self._is_proceeding = False
        self._is_stale = False  # something came while it proceeded
        above = operation.parent
        items, chain = (above.items, above.chain) if above is not None else ((), ())
        self._ref = CallRef((*items, item), (*chain, graph.name), item)

    def proceed(self) -> None:
        """Begin every step whose inputs exist, give what is whole, in order, and end when nothing is left to do."""
        if self._is_proceeding:
            self._is_stale = True
            return
        self._is_proceeding = True
        self._turn()
        while self._is_stale and not self._is_over:
            self._turn()
        self._is_proceeding = False

    def _turn(self) -> None:
        self._is_stale = False
        self._begin_all(self._root)
        if not self._is_over and self._give(self._root) and not self._is_over:
            self._end(None)  # the last answer has left already, or there was none

    def cancel(self, why: ServeError) -> None:
        """Nobody waits for it any more."""
        self._is_over = True
        if self._graph.slots is not None:
            self._graph.slots.leave(self)
        for ticket in list(self._root.tickets()):
            ticket.cancel(why)

    def hold(self) -> None:
        """Its receiver is full: so are all steps."""
        self._is_held = True
        for ticket in list(self._root.tickets()):
            ticket.hold()

    def resume(self) -> None:
        """There is room again, for those that do not run ahead."""
        self._is_held = False
        full = {id(fork.ticket) for fork in forks(self._root) if fork.is_full}
        for ticket in list(self._root.tickets()):
            if id(ticket) not in full:
                ticket.resume()

    # -- forward -------------------------------------------------------------------------------------------

    def _begin_all(self, branch: Branch) -> None:
        for i in branch.pending[:]:
            if self._is_over:
                return
            sources = self._graph.steps[i].sources
            if all(name in self._absent or branch.knows(name) for name in sources) and self._has_room(i):
                branch.pending.remove(i)
                self._begin(branch, i, self._graph.steps[i])
        if branch.fork is not None:
            branch.fork.fill(self._graph.in_flight)
            branch.fork.balance(self._graph.in_flight, self._is_held)
            for following in list(branch.fork.alive):
                self._begin_all(following)

    def _has_room(self, i: int) -> bool:
        """Take a slot of a step that calls a model; without one, this request proceeds once there is one."""
        slots = self._graph.slots
        return slots is None or bool(self._graph.steps[i].function) or slots.take(i, self)

    def _begin(self, branch: Branch, i: int, step: Step) -> None:
        if step.function:
            self._apply(branch, i, step)
            return
        branch.working[i] = None  # its answer may come before `submit` returns
        ticket = self._graph.submits.submit(self._call(branch, step), partial(self._take, branch, i))
        fork = branch.fork
        if self._is_over:
            ticket.cancel(CANCELLED)
        elif i in branch.working:
            branch.working[i] = ticket
            if self._is_held:
                ticket.hold()
        elif fork is not None and fork.step == i:
            fork.ticket = ticket
            if self._is_held or fork.is_full:
                ticket.hold()

    def _apply(self, branch: Branch, i: int, step: Step) -> None:
        """Compute a step that is a function of the graph's own."""
        try:
            branch.values[step.gives] = FUNCTIONS[step.function]([branch.value(name) for name in step.takes])
        except ServeError as error:
            status = WRONG_VALUE if error.code is Code.MODEL_FAILED else error.status
            self._fail(i, ServeError(error.code, error.message, status=status))
        else:
            self._is_stale = True

    def _call(self, branch: Branch, step: Step) -> Infer:
        whole = self._operation
        left = whole.deadline
        if left is not None:
            left = max(left - (self._graph.now() - self._began), LEAST_SECONDS)
        return Infer(
            model=step.model,
            version=step.version,
            payload=self._payload(branch, step, whole.payload.lease),
            id=whole.id,
            outputs=tuple(WantedOutput(name) for name, to in step.outputs.items() if to in self._used),
            parameters={**whole.parameters, ADAPTER: step.adapter} if step.adapter else whole.parameters,
            priority=whole.priority,
            queue_timeout=whole.queue_timeout,
            deadline=left,
            sequence=whole.sequence,
            wants=None if step.gives else TENSORS,
            parent=self._ref,
            adapter=step.adapter or (whole.adapter if self._passes_adapter(step) else ""),
        )

    def _passes_adapter(self, step: Step) -> bool:
        """Does the step get the very request, which may name an adapter?"""
        return step.passes_adapter and step.takes == (self._graph.input,)

    def _payload(self, branch: Branch, step: Step, lease: Lease | None) -> RequestPayload:
        """Return what a step gets. What a member answers may view the request, so that whoever gets it next holds the
        request's buffer, too.
        """
        if step.is_listed:
            return Listed(tuple(branch.value(name) for name in step.takes), lease)
        if step.gives:
            return as_request(branch.value(step.takes[0]), lease, step.adapter)
        sources = ((name, branch.tensor(source)) for name, source in step.inputs.items())
        return Tensors(tuple(_renamed(tensor, name) for name, tensor in sources if tensor is not None), lease)

    # -- back ----------------------------------------------------------------------------------------------

    def _take(self, branch: Branch, i: int, part: ResponsePart) -> None:
        """A part of a step's answer. A first one that is not the last, or that is the last and empty, is one of
        several, or of none.
        """
        if part.final and self._graph.slots is not None:
            self._graph.slots.free(i)
        if self._is_over:
            return
        if part.error is not None:
            self._fail(i, part.error)
            return
        values = None
        if part.payload is not None:
            values = self._kept(i, part.payload)
            if values is None:
                return
        fork = branch.fork
        if fork is None or fork.step != i:
            if part.final and values is not None:
                del branch.working[i]
                branch.values.update(values)
                self.proceed()
                return
            if fork is not None:
                self._fail(i, _two(self._graph.steps[fork.step].name))
                return
            fork = self._split(branch, i)
        if values is not None:
            fork.waiting.append(values)
        fork.is_closed = part.final
        if part.final:
            fork.ticket = None
        self.proceed()

    def _split(self, branch: Branch, i: int) -> Fork:
        following = behind(self._graph.steps, i)
        pending = [step for step in branch.pending if step in following]
        branch.pending = [step for step in branch.pending if step not in following]
        branch.fork = Fork(branch, i, pending, branch.working.pop(i))
        return branch.fork

    def _kept(self, i: int, payload: Payload) -> Named | None:
        """Return what is used of it, by its names in the graph. None where some of that is not there: then it has
        failed.
        """
        step = self._graph.steps[i]
        if step.gives:
            assert not isinstance(payload, Generate | Generated), "models answer with tensors or bodies"
            return {step.gives: payload}
        if not isinstance(payload, Tensors):
            self._fail(i, ServeError(Code.MODEL_FAILED, "It answered with a body, not with tensors."))
            return None
        names: Mapping[str, str] = step.outputs
        kept = {names[tensor.name]: tensor for tensor in payload.items if tensor.name in names}
        left_out = {to: name for name, to in names.items() if to in self._used and to not in kept}
        lacking = [name for to, name in left_out.items() if not can_lack(self._graph.steps, to)]
        if lacking:
            self._fail(i, ServeError(Code.MODEL_FAILED, f"It answered without {', '.join(lacking)}."))
            return None
        values: Named = {name: _renamed(tensor, name) for name, tensor in kept.items()}
        return values | dict.fromkeys(left_out)

    def _give(self, branch: Branch) -> bool:
        """Answer with what is whole, in order. Has all of this branch been answered?"""
        if branch.working or branch.pending:
            return False
        fork = branch.fork
        if fork is None:
            self._answer(branch)
            return True
        while fork.alive and not self._is_over and self._give(fork.alive[0]):
            fork.alive.popleft()
            self._is_stale = True  # there is room for another one
        return fork.is_closed and not fork.alive and not fork.waiting

    def _answer(self, branch: Branch) -> None:
        payload = self._answered(branch)
        if payload is None:
            return
        if branch.parent is None:
            self._is_over = True
            self._outcomes.executed(self._item, payload, self._began)
        else:
            self._is_over = branch.is_last()
            self._outcomes.answered(self._item, payload, self._is_over)

    def _answered(self, branch: Branch) -> Payload | None:
        """Return what the graph answers, of this branch. None where that is no answer: then it has failed."""
        name = self._graph.output
        if not name:
            found = ((name, branch.tensor(name)) for name in self._wanted)
            return Tensors(tuple(tensor for _, tensor in found if tensor is not None))
        value = branch.value(name)
        if not isinstance(value, Listed):
            return value
        words = f"The value '{name}' of '{self._graph.name}' is a list of {len(value.payloads)}"
        self._end(
            ServeError(
                Code.MODEL_FAILED,
                f"{words}, and an answer is one. Let a function make one of them.",
                status=WRONG_VALUE,
            )
        )
        return None

    # -- the end -------------------------------------------------------------------------------------------

    def _fail(self, i: int, error: ServeError) -> None:
        text = f"In model '{self._graph.name}', step '{self._graph.steps[i].name}': {error.message}"
        told = ServeError(error.code, text, error.retry_after, error.status)
        told.__cause__ = error
        self._end(told)

    def _end(self, error: ServeError | None) -> None:
        self.cancel(CANCELLED)
        self._outcomes.ended(self._item, error)


def _two(other: str) -> ServeError:
    return ServeError(
        Code.UNSUPPORTED,
        f"It answers in several parts, and so does step '{other}', which is neither before nor behind it: which of "
        "their parts belong together is not known. Let one of the two answer once, or put them behind one another.",
    )


def _given(graph: GraphContext, payload: Payload) -> Named:
    """Return what a request brings, by its names in the graph."""
    if graph.input:
        assert not isinstance(payload, Generate | Generated), "the door has seen to it"
        return {graph.input: payload}
    assert isinstance(payload, Tensors), "the door has seen to it"
    return {tensor.name: tensor for tensor in payload.items}


def _renamed(tensor: Tensor, name: str) -> Tensor:
    return msgspec.structs.replace(tensor, name=name)
