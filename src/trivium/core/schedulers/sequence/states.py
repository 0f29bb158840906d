"""Implicit state: tensors that a model gives for its sequence and gets back with the next request of it.

Stands between the pool and an instance: adds to each request what its sequence has come to, keeps what the answer says
of it, and shows clients none of that. A state lives as long as its sequence, and no longer than its instance. Sheet
"triton", section 7.7; there a first state is uninitialised memory unless it is asked for, here it is zero.
"""

import asyncio
from collections.abc import Hashable, Iterator, Sequence

import msgspec

from trivium.codecs.synthetic import synthetic_tensor
from trivium.core.instances.delegating import DelegatingInstance
from trivium.core.instances.scaler import Launch
from trivium.types.interfaces import Instance, Port
from trivium.types.operations import Infer, SequenceRef, WantedOutput
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Batch, Event, Executed, ItemId, Outcome, Part, Placement
from trivium.types.schedules import State
from trivium.types.scheduling import SequenceId
from trivium.types.spec import ModelSpec

Held = dict[SequenceId, dict[str, Tensor]]
"""By sequence, by the input's name."""


def firsts(model: str, states: Sequence[State], batch_axis: bool) -> tuple[Tensor, ...]:
    """Return what each state begins with. LOAD_FAILED where a file does not fit. Blocking."""
    about = f"Model '{model}', initial state"
    return tuple(synthetic_tensor(state.first, 1 if batch_axis else 0, about, b"") for state in states)


class States:
    """Keeps for one loaded version the states of its sequences, by instance."""

    def __init__(self, spec: ModelSpec, states: Sequence[State]) -> None:
        self._model = spec.name
        self._states = tuple(states)
        self._batch_axis = spec.batching.batch_axis
        self._inputs = {state.output: state.first.name for state in states}
        self._hidden = frozenset(state.output for state in states if not state.is_shown)
        self._wanted = tuple(WantedOutput(state.output) for state in states)
        self._firsts: tuple[Tensor, ...] = ()
        self._held: list[Held] = []
        self.varies = any(-1 in state.dims for state in states)
        """May two sequences have states of different shapes, which cannot run together?"""

    def around(self, launch: Launch) -> Launch:
        """Opens the same instances, which keep states. LOAD_FAILED where an initial state cannot be read."""

        async def launch_stateful(placement: Placement, port: Port) -> Instance:
            if not self._firsts:
                self._firsts = await asyncio.to_thread(firsts, self._model, self._states, self._batch_axis)
            keeper = _Keeper(self, port)
            self._held.append(keeper.held)
            return StatefulInstance(await launch(placement, keeper), self, keeper)

        return launch_stateful

    def forget(self, sequence: SequenceId) -> None:
        """It is over."""
        for held in self._held:
            held.pop(sequence, None)

    def closed(self, held: Held) -> None:
        """An instance is gone, or will be, and what it held."""
        self._held = [other for other in self._held if other is not held]

    def shape_key(self, ref: SequenceRef) -> Hashable:
        """Return what the states of sequences must have in common that run together."""
        now = {} if ref.starts else next((held[ref.id] for held in self._held if ref.id in held), {})
        return tuple(now.get(tensor.name, tensor).shape for tensor in self._firsts)

    def given(self, infer: Infer, held: Held) -> Infer:
        """A request with the state of its sequence; a row without one, and the first request, get the first state."""
        payload, ref = infer.payload, infer.sequence
        assert isinstance(payload, Tensors)
        now = {} if ref is None or ref.starts else held.get(ref.id, {})
        states = tuple(now.get(tensor.name, tensor) for tensor in self._firsts)
        outputs = infer.outputs
        if outputs:
            asked = {output.name for output in outputs}
            outputs += tuple(wanted for wanted in self._wanted if wanted.name not in asked)
        return msgspec.structs.replace(
            infer, payload=Tensors(payload.items + states, payload.lease), outputs=outputs
        )

    def taken(self, sequence: SequenceId | None, outcome: Outcome, held: Held) -> Outcome:
        """Keep what an answer says of the state, in memory of its own; what the client is shown of the answer. A state
        that it does not speak of stays as it is.
        """
        if not isinstance(outcome, Tensors):
            return outcome
        said = {self._inputs[t.name]: t for t in outcome.items if t.name in self._inputs}
        if sequence is not None and said:
            now = held.setdefault(sequence, {})
            for name, tensor in said.items():
                now[name] = Tensor(name, tensor.datatype, tensor.shape, tensor.array.copy())
        return Tensors(tuple(t for t in outcome.items if t.name not in self._hidden), outcome.lease)


class StatefulInstance(DelegatingInstance):
    """An instance whose requests carry states."""

    def __init__(self, instance: Instance, states: States, keeper: "_Keeper") -> None:
        super().__init__(instance)
        self._states = states
        self._keeper = keeper

    def start(self, batch: Batch) -> None:
        """Add the states."""
        keeper = self._keeper
        for item, operation in zip(batch.items, batch.operations, strict=True):
            if operation.sequence is not None:
                keeper.running[item] = operation.sequence.id
        operations = [self._states.given(operation, keeper.held) for operation in batch.operations]
        self._instance.start(Batch(batch.items, operations, batch.rows))

    def close(self) -> None:
        """See `Instance`. Its sequences end with it."""
        self._states.closed(self._keeper.held)
        self._instance.close()


class _Keeper:
    """The port of one instance. `push` may come from its thread, while the loop is about other sequences: what is in
    work of one sequence is one request.
    """

    def __init__(self, states: States, port: Port) -> None:
        self._states = states
        self._port = port
        self.held: Held = {}
        self.running: dict[ItemId, SequenceId] = {}

    def push(self, events: Sequence[Event]) -> None:
        """See `Port`."""
        self._port.push(list(self._shown(events)))

    def deliver(self, events: Sequence[Event]) -> None:
        """See `Port`."""
        self._port.deliver(list(self._shown(events)))

    def _shown(self, events: Sequence[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, Executed):
                outcomes = [
                    self._states.taken(self.running.pop(item, None), outcome, self.held)
                    for item, outcome in zip(event.items, event.outcomes, strict=True)
                ]
                yield msgspec.structs.replace(event, outcomes=outcomes)
            elif isinstance(event, Part):
                sequence = self.running.pop(event.item, None) if event.final else self.running.get(event.item)
                payload = self._states.taken(sequence, event.payload, self.held)
                yield msgspec.structs.replace(event, payload=payload)
            else:
                yield event
