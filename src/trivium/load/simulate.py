"""The core on a virtual clock: the same admission, queue, policy and books as live, with made-up instances.

What a change of batching or instances would do to a known load, in seconds of computing instead of hours.
"""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial

import msgspec
import numpy as np

from trivium.core.instances.mailbox import Mailbox
from trivium.core.models.model_context import PLAIN, ModelContext
from trivium.core.models.served_model import ServedModel
from trivium.types.datatype import DataType
from trivium.types.interfaces import Check, Instance, Port
from trivium.types.operations import Infer, SequenceRef
from trivium.types.payload import Payload, Tensor, Tensors
from trivium.types.running import Batch, Credit, Dead, Executed, ItemId, Outcome, Part, Placement
from trivium.types.schedules import Sequence as SequenceSpec
from trivium.types.spec import Isolation, ModelSpec
from trivium.types.statistics import VersionStatistics


class VirtualTimer:
    """A call that waits for its virtual time."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """It will not be made."""
        self.callback = None


class VirtualClock:
    """A `Clock` whose time passes only when `run` has nothing left to do at the present."""

    def __init__(self) -> None:
        self._now = 0.0
        self._order = itertools.count()
        self._calls: list[tuple[float, int, VirtualTimer]] = []

    def now(self) -> float:
        """Virtual seconds."""
        return self._now

    def call_at(self, when: float, callback: Callable[[], None]) -> VirtualTimer:
        """Call once, at `when` or now if that has passed."""
        timer = VirtualTimer(callback)
        heapq.heappush(self._calls, (max(when, self._now), next(self._order), timer))
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call once, now, after what was asked for before."""
        self.call_at(self._now, callback)

    def run(self, until: float = float("inf")) -> None:
        """Make every call due up to `until`, in order of time, then of asking."""
        while self._calls and self._calls[0][0] <= until:
            self._now, _, timer = heapq.heappop(self._calls)
            if timer.callback is not None:
                timer.callback()
        if until != float("inf"):
            self._now = max(self._now, until)


class VirtualInstance:
    """Takes `service(rows)` virtual seconds for a batch and answers each item with its own payload. With `in_flight` it
    takes that time for each item, and has so many in work at once.
    """

    threads: Collection[int] = ()
    check: Check | None = None

    def __init__(
        self, clock: VirtualClock, port: Port, service: Callable[[int], float], in_flight: int = 0
    ) -> None:
        self.in_flight = in_flight
        self._clock = clock
        self._port = port
        self._service = service
        self._free_at = 0.0
        self._runs: deque[Executed] = deque()
        self._alone: dict[ItemId, float] = {}  # items of which many are in work, and since when
        self._is_abandoned = False

    def attach(self, port: Port) -> None:
        """See `Instance`."""
        self._port = port

    def start(self, batch: Batch) -> None:
        """Begins when what it holds already has ended; one of many items at once."""
        if self.in_flight:
            for item, operation, rows in zip(batch.items, batch.operations, batch.rows, strict=True):
                self._start_one(item, operation.payload, rows)
            return
        began = max(self._clock.now(), self._free_at)
        self._free_at = ended = began + self._service(sum(batch.rows))
        outcomes: list[Outcome] = [operation.payload for operation in batch.operations]
        run = Executed(batch.items, outcomes, began, began, ended, ended)
        self._runs.append(run)
        self._clock.call_at(ended, self._end)

    def _end(self) -> None:
        run = self._runs.popleft()
        if not self._is_abandoned:
            self._port.push((run, Credit(1)))

    def _start_one(self, item: ItemId, payload: Payload, rows: int) -> None:
        began = self._alone[item] = self._clock.now()
        ended = began + self._service(rows)

        def end() -> None:
            if not self._is_abandoned:
                del self._alone[item]
                run = Executed([], [], began, began, ended, ended, rows, (item,), is_one_of_many=True)
                self._port.push((Part(item, payload), run, Credit(1)))

        self._clock.call_at(ended, end)

    @property
    def running_since(self) -> float | None:
        """See `Instance`."""
        return self._runs[0].began if self._runs else min(self._alone.values(), default=None)

    def interrupt(self, why: str) -> Collection[ItemId]:
        """It runs to its end, as in a thread whose runner cannot be interrupted."""
        return self._runs[0].items if self._runs else ()

    def abandon(self, why: str) -> None:
        """See `Instance`."""
        self._is_abandoned = True
        self._port.deliver((Dead(why),))

    def cancel(self, item: ItemId) -> None:
        """It runs to its end, as in a thread."""

    def hold(self, item: ItemId) -> None:
        """It answers once."""

    def resume(self, item: ItemId) -> None:
        """It was not held."""

    def close(self) -> None:
        """Nothing to free."""


def load_virtually(
    spec: ModelSpec,
    clock: VirtualClock,
    service: Callable[[int], float],
    run: Callable[[Coroutine[object, object, None]], None] = asyncio.run,
    context: ModelContext = PLAIN,
    in_flight: int = 0,
) -> ServedModel:
    """The core of one model on the virtual clock, open. `run` runs the coroutine that opens it."""

    return opened(spec, clock, lambda port: VirtualInstance(clock, port, service, in_flight), run, context)


def opened(
    spec: ModelSpec,
    clock: VirtualClock,
    open_instance: Callable[[Port], Instance],
    run: Callable[[Coroutine[object, object, None]], None] = asyncio.run,
    context: ModelContext = PLAIN,
) -> ServedModel:
    """The core of one model on the virtual clock, open, over made-up instances of any kind."""

    async def launch(placement: Placement, port: Port) -> Instance:
        return open_instance(port)

    model = ServedModel(spec, Isolation.INLINE, launch, Mailbox(clock.call_soon), clock, context)
    run(model.open())
    return model


def simulate(
    spec: ModelSpec, arrivals: Sequence[float], service: Callable[[int], float]
) -> VersionStatistics:
    """Statistics of `spec` after requests of one row at `arrivals` (seconds), each batch of n rows taking
    `service(n)` seconds. The spec's only input must be FP32; for a model with sequences each request is one.
    """
    clock = VirtualClock()
    model = load_virtually(spec, clock, service)
    infer = _one_row(spec)
    is_sequence = isinstance(spec.scheduling, SequenceSpec)
    for number, when in enumerate(arrivals, 1):
        if is_sequence:
            infer = msgspec.structs.replace(infer, sequence=SequenceRef(number, starts=True, ends=True))
        clock.call_at(when, partial(_submit, model, number, infer))
    clock.run()
    return model.report()


def _submit(model: ServedModel, number: ItemId, infer: Infer) -> None:
    model.submit(number, infer, lambda part: None)


def _one_row(spec: ModelSpec) -> Infer:
    tensor = spec.inputs[0]
    dims = tuple(1 if dim == -1 else dim for dim in tensor.dims)
    shape = (1, *dims) if spec.batching.batch_axis else dims
    payload = Tensors((Tensor(tensor.name, DataType.FP32, shape, np.zeros(shape, "<f4")),))
    return Infer(model=spec.name, payload=payload)
