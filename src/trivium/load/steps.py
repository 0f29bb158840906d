"""Rolling batches on the virtual clock: the core as it is, and the engine's own plan of each step, with made-up costs.

What slots and chunks would do to a known load, in seconds of computing instead of hours on a machine with the model.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from trivium.core.models.model_context import ModelContext
from trivium.core.models.served_model import ServedModel
from trivium.engines.hf.plan import (
    SlotHolder,
    SlotSeeker,
    StepPlan,
    StepSettings,
    StepView,
    plan,
)
from trivium.load.simulate import VirtualClock, opened
from trivium.types.generation import (
    Finish,
    Generate,
    Generated,
    GeneratedChoice,
    GenerationUsage,
    Sampling,
)
from trivium.types.interfaces import Check, Port, Sink
from trivium.types.operations import Infer, ResponsePart
from trivium.types.payload import PayloadKind
from trivium.types.running import Batch, Credit, Dead, Event, Executed, ItemId, Part, Stepped
from trivium.types.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class StepCost:
    """A step takes `fixed` seconds, and `per_token` for each token that it computes."""

    fixed: float
    per_token: float


@dataclass(slots=True)
class VirtualSequence:
    """One request in work: inputs whose keys and values are not computed, and tokens that are still to come."""

    item: ItemId
    left: int
    wanted: int
    began: float
    prompt: int
    slot: int | None = None
    made: int = 0
    first_at: float = 0.0


@dataclass(slots=True)
class StepLog:
    """Holds each step: when it began, the view that was decided upon, and the plan."""

    steps: list[tuple[float, StepView, StepPlan]] = field(default_factory=list)


class VirtualStepInstance:
    """Implements `Instance`: computes one step after the other while there is anything to compute."""

    threads: Collection[int] = ()
    check: Check | None = None

    def __init__(
        self, clock: VirtualClock, port: Port, settings: StepSettings, cost: StepCost, log: StepLog
    ) -> None:
        self.in_flight = settings.slots
        self._clock, self._port, self._settings, self._cost = clock, port, settings, cost
        self._log = log
        self._keys = 0
        self._sequences: dict[int, VirtualSequence] = {}
        self._cancelled: set[ItemId] = set()
        self._is_stepping = False
        self._stepped_at: float | None = None

    def attach(self, port: Port) -> None:
        """See `Instance`."""
        self._port = port

    def start(self, batch: Batch) -> None:
        """See `Instance`. They join before the next step."""
        for item, operation in zip(batch.items, batch.operations, strict=True):
            generate = operation.payload
            assert isinstance(generate, Generate), "a virtual model generates"
            assert generate.ids is not None, "its prompts are ids"
            self._keys += 1
            prompt, wanted = len(generate.ids[0]), generate.sampling.max_tokens or 1
            self._sequences[self._keys] = VirtualSequence(item, prompt, wanted, self._clock.now(), prompt)
        if not self._is_stepping:
            self._is_stepping = True
            self._clock.call_soon(self._step)

    def cancel(self, item: ItemId) -> None:
        """See `Instance`. It is in no further step."""
        self._cancelled.add(item)

    def _view(self) -> StepView:
        taken = {one.slot for one in self._sequences.values()}
        return StepView(
            tuple(slot for slot in range(self._settings.slots) if slot not in taken),
            tuple(
                SlotHolder(key, one.slot, one.left)
                for key, one in self._sequences.items()
                if one.slot is not None
            ),
            tuple(SlotSeeker(key, one.left) for key, one in self._sequences.items() if one.slot is None),
        )

    def _step(self) -> None:
        events: list[Event] = []
        for key, one in list(self._sequences.items()):
            if one.item in self._cancelled:
                events += self._ended(key, Generated())
        if events:
            self._port.push(events)
        if not self._sequences:
            self._is_stepping, self._stepped_at = False, None
            return
        view = self._view()
        planned = plan(view, self._settings)
        began = self._clock.now()
        self._log.steps.append((began, view, planned))
        for join in planned.joins:
            self._sequences[join.key].slot = join.slot
        tokens = len(planned.rows) + sum(piece.count for piece in planned.pieces)
        ended = began + self._cost.fixed + self._cost.per_token * tokens
        self._clock.call_at(ended, partial(self._end, planned, began))

    def _end(self, planned: StepPlan, began: float) -> None:
        now = self._stepped_at = self._clock.now()
        events: list[Event] = []
        came = read = 0
        for key, count in (
            *((key, 1) for key in planned.rows),
            *((piece.key, piece.count) for piece in planned.pieces),
        ):
            one = self._sequences[key]
            one.left -= count
            read += count if not one.made else 0
            if one.left:
                continue
            came += 1
            one.made, one.left = one.made + 1, 1
            one.first_at = one.first_at or now
            if one.made == one.wanted:
                choice = GeneratedChoice(0, ids=tuple(range(one.made)), finish=Finish.LENGTH)
                usage = GenerationUsage(one.prompt, one.made, one.first_at, now)
                events += self._ended(key, Generated((choice,), usage))
        share = len(self._sequences) / self._settings.slots
        events.append(Stepped(len(planned.rows), read, came, 0, share, began, now))
        self._port.push(events)
        self._clock.call_soon(self._step)

    def _ended(self, key: int, part: Generated) -> list[Event]:
        one = self._sequences.pop(key)
        now = self._clock.now()
        times = one.began, one.began, now, now
        run = Executed([], [], *times, 1, (one.item,), is_one_of_many=True, in_steps=True)
        return [Part(one.item, part), run, Credit(1)]

    @property
    def running_since(self) -> float | None:
        """See `Instance`."""
        return self._stepped_at if self._sequences else None

    def interrupt(self, why: str) -> Collection[ItemId]:
        """See `Instance`. Its steps end by themselves."""
        return ()

    def abandon(self, why: str) -> None:
        """See `Instance`."""
        self._port.deliver((Dead(why),))

    def hold(self, item: ItemId) -> None:
        """See `Instance`. It answers once."""

    def resume(self, item: ItemId) -> None:
        """See `Instance`. It was not held."""

    def close(self) -> None:
        """See `Instance`. There is nothing to free."""


def roll_virtually(
    spec: ModelSpec, clock: VirtualClock, settings: StepSettings, cost: StepCost, log: StepLog
) -> ServedModel:
    """The core of one model whose instances step on the virtual clock, open."""
    context = ModelContext(frozenset({PayloadKind.GENERATE}))
    return opened(
        spec, clock, lambda port: VirtualStepInstance(clock, port, settings, cost, log), context=context
    )


def simulate_steps(
    spec: ModelSpec,
    requests: Sequence[tuple[float, int, int]],
    settings: StepSettings,
    cost: StepCost,
    told: Callable[[ItemId, ResponsePart], None] = lambda item, part: None,
) -> StepLog:
    """Run requests, each with its arrival in seconds, the tokens of its prompt and of its answer, and return all steps.
    The parts of the answers go to `told`.
    """
    clock, log = VirtualClock(), StepLog()
    model = roll_virtually(spec, clock, settings, cost, log)
    for number, (when, prompt, count) in enumerate(requests, 1):
        generate = Generate(ids=((0,) * prompt,), sampling=Sampling(max_tokens=count))
        infer = Infer(spec.name, generate, wants=PayloadKind.GENERATE)
        clock.call_at(when, partial(_submit, model, number, infer, partial(told, number)))
    clock.run()
    return log


def _submit(model: ServedModel, number: ItemId, infer: Infer, sink: Sink) -> None:
    model.submit(number, infer, sink)
