"""Ends items and tells their receivers, each just once. Counts what failed; a receiver that fails hurts nobody."""

import logging
from collections.abc import Callable, Mapping

from trivium.core.observability.recording import item_log
from trivium.core.observability.statistics import VersionCounters
from trivium.core.queueing.payload_adapter import PayloadAdapter
from trivium.core.request import Item
from trivium.types.errors import ServeError, frameless
from trivium.types.generation import Generated
from trivium.types.metrics import Measurements
from trivium.types.operations import ResponsePart
from trivium.types.payload import Payload, Raw, Scalar
from trivium.types.recording import ServingRecorder
from trivium.types.running import ItemId, Part
from trivium.types.spec import ModelSpec
from trivium.types.state import ItemState

log = logging.getLogger(__name__)

NOTHING: Mapping[str, Scalar] = {}
SINK_FAILED = "the receiver of an answer of model '%s' failed"
ENDED = ItemState.ENDED  # members of an Enum are slow to look up in its class


class ResponseDispatcher:
    """Dispatches the responses of one model version."""

    def __init__(
        self, spec: ModelSpec, door: PayloadAdapter, counters: VersionCounters, now: Callable[[], float]
    ) -> None:
        self._name = spec.name
        self._version = spec.version
        self._door = door
        self._counters = counters
        self._now = now

    def end(self, item: Item, error: ServeError) -> None:
        """End an item with an error."""
        item.state = ENDED
        if item.timer is not None:
            item.timer.cancel()
        self._counters.failed(item, error, self._now())
        self._give(item, ResponsePart(error=error, model=self._name, version=self._version))

    def answer(self, item: Item, payload: Payload | None, parameters: Mapping[str, Scalar] = NOTHING) -> bool:
        """End an item with an answer, which the caller counts; False, and counted, where it cannot be had as it was
        asked for.
        """
        item.state = ENDED
        if item.timer is not None:
            item.timer.cancel()
        if item.operation.outputs:
            try:
                payload = self._door.written(item, payload)
            except ServeError as error:
                self.end(item, frameless(error))
                return False
        try:
            item.sink(ResponsePart(payload, None, None, True, parameters, self._name, self._version))
        except Exception:
            log.exception(SINK_FAILED, self._name)
        return True

    def answer_raw(self, item: Item, outcome: Raw) -> bool:
        """With a handler's own answer, as the item's wire wants it. Was it well, by the status it asks for?"""
        answer, parameters = self._door.answer(item, outcome)
        if isinstance(answer, ServeError):
            self.end(item, answer)
            return False
        is_well = outcome.status < 400
        if not is_well:
            self._counters.answered_ill(item, self._now())
        return self.answer(item, answer, parameters) and is_well

    def part(self, item: Item, part: Part) -> bool:
        """One part of an answer, or its end. False where it was none that the item's wire can carry: then the
        item has ended, though its instance does not know.
        """
        if item.state is ENDED:
            self._counters.wasted += part.error is None
            return True
        if part.error is not None:
            self.end(item, part.error)
            return True
        outcome, more = self._door.answer(item, part.payload)
        parameters = {**part.parameters, **more} if more else part.parameters
        if isinstance(outcome, ServeError):
            self.end(item, outcome)
            return part.final
        if part.final:
            if type(outcome) is Raw and outcome.status >= 400:
                self._counters.answered_ill(item, self._now())
                self.answer(item, outcome, parameters)
            elif self.answer(item, outcome, parameters):
                self._counters.streamed(item, self._now())
                if type(part.payload) is Generated and part.payload.usage is not None:
                    self._counters.generated(self._name, item, part.payload)
        else:
            try:
                outcome = self._door.written(item, outcome)
            except ServeError as error:
                self.end(item, frameless(error))
                return False
            self._give(item, ResponsePart(outcome, None, None, False, parameters, self._name, self._version))
        return True

    def _give(self, item: Item, part: ResponsePart) -> None:
        try:
            item.sink(part)
        except Exception:
            log.exception(SINK_FAILED, self._name)


class TimedResponseDispatcher(ResponseDispatcher):
    """Works like `ResponseDispatcher`, and counts when the first of each answer leaves. An item is among `begun` from
    the first of several parts until it ends.
    """

    def __init__(
        self, spec: ModelSpec, door: PayloadAdapter, counters: VersionCounters, now: Callable[[], float]
    ) -> None:
        super().__init__(spec, door, counters, now)
        self.begun: set[ItemId] = set()

    def part(self, item: Item, part: Part) -> bool:
        """Count it, if it is the first one that holds anything."""
        is_first = part.payload is not None and item.item not in self.begun
        if is_first and not part.final and item.state is not ENDED:
            self.begun.add(item.item)
            self._counters.began_to_answer(item, self._now())
        return super().part(item, part)

    def answer(self, item: Item, payload: Payload | None, parameters: Mapping[str, Scalar] = NOTHING) -> bool:
        """Count it, if it is the whole answer."""
        is_whole = payload is not None and item.item not in self.begun
        self.begun.discard(item.item)
        is_given = super().answer(item, payload, parameters)
        if is_given and is_whole:
            self._counters.began_to_answer(item, self._now())
        return is_given

    def end(self, item: Item, error: ServeError) -> None:
        """An item that has ended may still be pushed parts: they are nobody's."""
        self.begun.discard(item.item)
        super().end(item, error)


def answering(
    spec: ModelSpec,
    door: PayloadAdapter,
    now: Callable[[], float],
    measures: Measurements,
    recorder: ServingRecorder | None = None,
) -> tuple[VersionCounters, ResponseDispatcher]:
    """Return what counts and what answers for one version; first parts are timed where that is measured."""
    counters = VersionCounters(
        measures, now, spec.metrics.first_part_bounds, item_log(spec, recorder, measures)
    )
    if door.generates:
        counters.begin_generation(spec.name)
    kind = TimedResponseDispatcher if measures.first_parts else ResponseDispatcher
    return counters, kind(spec, door, counters, now)
