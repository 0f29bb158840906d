"""Carries out what the policy decides: takes items from the queue, starts batches, arms the one timer.

It knows no model, payload or wire. It asks after an arrival, a credit, a cancellation and a wake-up.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from trivium.core.clock import Alarm
from trivium.core.queueing.queue import RequestQueue
from trivium.core.request import Item
from trivium.core.schedulers.policy import BatchingSettings, decide
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Clock
from trivium.types.running import InstanceId
from trivium.types.scheduling import Entry

Start = Callable[[InstanceId, list[Item]], None]
Reject = Callable[[Item, ServeError], None]


class DynamicScheduler:
    """One per model version. `start` runs a batch on an instance; `reject` answers an item that expired;
    `decided` is told of every decision carried out.
    """

    def __init__(
        self, queue: RequestQueue, settings: BatchingSettings, clock: Clock, start: Start, reject: Reject
    ) -> None:
        self._queue = queue
        self._settings = settings
        self._clock = clock
        self._start = start
        self._reject = reject
        self._decided: Callable[[], None] | None = None
        self._alarm = Alarm(clock, self.pump)
        self._is_due = False

    def report_to(self, decided: Callable[[], None] | None) -> None:
        """Call `decided` behind every decision carried out from now on; None calls nobody."""
        self._decided = decided

    def changed(self) -> None:
        """An item arrived or left, or a credit came back: decide at the end of this turn of the loop, once for
        all that happens in it. A model that merges first has the loop look at its sockets once more: requests
        that have reached the machine by now are worth a place in the batch, and it costs no waiting.
        """
        if not self._is_due:
            self._is_due = True
            self._clock.call_soon(self._look_once_more if self._settings.merge else self._decide_now)

    def _look_once_more(self) -> None:
        self._clock.call_soon(self._decide_now)

    def _decide_now(self) -> None:
        self._is_due = False
        if self._queue.count:
            self.pump()

    def pump(self) -> None:
        """Decide and act once."""
        queue = self._queue
        decision = decide(queue, self._settings, self._clock.now())
        if decision.demote:
            for item in cast(Sequence[Item], decision.demote):
                queue.demote(item)
        cuts: Any = decision.cuts  # whose entries are this queue's own items
        if cuts:
            start = self._start
            queue.take(cuts[0].entries if len(cuts) == 1 else [item for cut in cuts for item in cut.entries])
            for cut in cuts:
                start(cut.instance, cut.entries)
        if decision.wake_at != self._alarm.when:
            self._alarm.set(decision.wake_at)
        if decision.reject:
            self._reject_all(decision.reject)
        if self._decided is not None:
            self._decided()

    def _reject_all(self, refusals: Sequence[tuple[Entry, Code]]) -> None:
        """Tell their receivers last, once all have left the queue: a receiver may submit or cancel at once."""
        for entry, _ in refusals:
            self._queue.remove(cast(Item, entry))
        for entry, code in refusals:
            item = cast(Item, entry)
            self._reject(item, _refusal(item, code, self._clock.now()))

    def close(self) -> None:
        """Forget the timer; the queue is empty or about to be."""
        self._alarm.set(None)


def _refusal(item: Item, code: Code, now: float) -> ServeError:
    waited = now - item.enqueued_at
    return ServeError(
        code,
        f"The request waited {waited:.3f} s in the queue of model '{item.operation.model}' and its time "
        "there was up. Ask for a longer timeout, send fewer at once, or give the model more instances.",
    )
