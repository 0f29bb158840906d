"""Collects what the access log says of each request: how it waited, with how many it was executed, for how long.

There is none where nobody wants that. It hears what the counters hear, and writes into what the front end has put into
the request; the front end's line is written later, so that nobody waits.
"""

from collections.abc import Sequence

from trivium.core.observability.statistics import MOST_EARLY, WITHOUT_RUN
from trivium.core.request import Item
from trivium.types.errors import Code, ServeError
from trivium.types.observing import RequestFacts
from trivium.types.running import Executed, ItemId
from trivium.types.spec import ModelSpec
from trivium.types.tracing import trace_id


class FactsLog:
    """Implements `ItemLog`, for one version."""

    def __init__(self, spec: ModelSpec) -> None:
        self._names = spec.name, spec.version
        self._early: dict[ItemId, tuple[RequestFacts, float]] = {}  # with when they came

    def ran(self, run: Executed, succeeded: Sequence[Item], now: float) -> None:
        """See `ItemLog`."""
        for item in succeeded:
            facts = self._named(item)
            if facts is not None:
                _note(facts, run, item.enqueued_at)

    def over(self, run: Executed) -> None:
        """See `ItemLog`."""
        if not self._early:
            return
        for number in run.batch or run.items:
            early = self._early.pop(number, None)
            if early is not None:
                _note(early[0], run, early[1])

    def ended(self, item: Item, now: float) -> None:
        """See `ItemLog`."""
        facts = self._named(item)
        if facts is not None:
            self._tell(item, facts)

    def cached(self, item: Item, now: float) -> None:
        """See `ItemLog`: nothing ran."""
        self._named(item)

    def failed(self, item: Item, error: ServeError, now: float) -> None:
        """See `ItemLog`."""
        facts = self._named(item)
        if facts is None:
            return
        facts.code = error.code.value
        if not item.instance:
            facts.queued = now - item.enqueued_at
        elif item.run is not None or error.code not in WITHOUT_RUN:
            self._tell(item, facts)

    def answered_ill(self, item: Item, now: float) -> None:
        """See `ItemLog`."""
        facts = self._named(item)
        if facts is not None:
            facts.code = Code.MODEL_FAILED.value
            self._tell(item, facts)

    def _tell(self, item: Item, facts: RequestFacts) -> None:
        if item.run is not None:
            _note(facts, item.run, item.enqueued_at)
            return
        facts.waits = True
        self._early[item.item] = facts, item.enqueued_at
        if len(self._early) > MOST_EARLY:  # nobody says when it ran
            self._early.pop(next(iter(self._early)))[0].waits = False

    def _named(self, item: Item) -> RequestFacts | None:
        """Return the facts of an item, with its names among them; None where nobody collects them."""
        origin = item.operation.origin
        facts = None if origin is None else origin.facts
        if facts is not None:
            facts.model, facts.version = self._names
            facts.trace = facts.trace or trace_id(item.operation.context)
        return facts


def _note(facts: RequestFacts, run: Executed, came: float) -> None:
    facts.together = len(run.batch or run.items)
    facts.queued = max(run.began - came, 0.0)
    facts.compute = max(run.ended - run.began, 0.0)
    facts.waits = False
