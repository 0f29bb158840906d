"""Ends items whose time to run, or to be answered, is up. Arms a timer only for items that have a deadline."""

from functools import partial

from trivium.core.request import Item
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Clock


class Deadlines:
    """Keeps the deadlines of one model version. `run_limit` seconds for an instance to end an item."""

    def __init__(self, model: str, run_limit: float | None, clock: Clock) -> None:
        self._model = model
        self.run_limit = run_limit
        self._clock = clock

    def keep_own(self, item: Item) -> None:
        """The request's own deadline, if it has one, from when it came."""
        seconds = item.operation.deadline
        if seconds is not None:
            self._end_by(item, item.enqueued_at + seconds, f"its deadline of {seconds:g} s")

    def started(self, items: list[Item]) -> None:
        """An instance has these items from now on."""
        limit = self.run_limit
        if limit is not None:
            when = self._clock.now() + limit
            for item in items:
                self._end_by(item, when, f"the model's run deadline of {limit:g} s")

    def recalled(self, item: Item) -> None:
        """A run's deadline begins anew when the item runs again, the request's own does not."""
        if item.timer is not None:
            item.timer.cancel()
            item.timer = item.deadline = None
            self.keep_own(item)

    def _end_by(self, item: Item, when: float, what: str) -> None:
        """An earlier limit stays in force."""
        if item.deadline is not None and item.deadline <= when:
            return
        if item.timer is not None:
            item.timer.cancel()
        error = ServeError(Code.EXPIRED, f"The request to model '{self._model}' ran out of time: {what}.")
        item.deadline = when
        item.timer = self._clock.call_at(when, partial(item.cancel, error))
