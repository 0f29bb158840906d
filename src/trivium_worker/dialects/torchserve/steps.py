"""TorchServe's continuous batching: the handler is called again and again with all requests that have not ended.

Source: spec sheet `torchserve`, sections 4.4 and 4.6. A request's data come with its first step; afterwards it is an
empty dict under the same id. `context.stopping_criteria` say after each step which answers are their last. One that
asks the handler what it says of itself is in no call with others: a handler may take those that are not in a call for
gone.
"""

from collections import deque
from typing import Any

from trivium_worker.dialects.torchserve.answers import answer_of, elements_of, failure_of
from trivium_worker.dialects.torchserve.handler import TorchServeAdapter, ends_request, id_of
from trivium_worker.dialects.torchserve.rows import row_of
from trivium_worker.runtime.adapter import Host, Setup, Step
from trivium_worker.wire.values import Failure, Item, Raw


class _Running:
    """One request that has not ended. `row` is what its next step shows."""

    def __init__(self, item: Item, row: dict[str, Any], processor: Any) -> None:
        self.item = item
        self.row = row
        self.processor = processor
        self.request_id = id_of(item)
        self.parts = 0
        self.is_alone = item.method == "describe"


class SteppingTorchServeAdapter(TorchServeAdapter):
    """One handler with continuous batching; a batch has `slots` requests at most."""

    def __init__(self, setup: Setup, host: Host) -> None:
        super().__init__(setup, host)
        self.slots = int(setup.settings["slots"])
        self._running: dict[int, _Running] = {}
        self._coming: deque[_Running] = deque()  # in the order in which they may join

    def add(self, item: Item) -> None:
        """See `Adapter`."""
        row, headers = row_of(item, self._decodes)
        self._coming.append(_Running(item, row, self.processor_of(item, headers)))
        item.payload = Raw([])  # the handler keeps what it needs

    def step(self) -> Step | None:
        """Call the handler. What it raises is the end of every request that was in the call."""
        self._join()
        running = list(self._running.values())
        if not running:
            return None
        rows = [each.row for each in running]
        for each in running:
            each.row = {}
        self._show([each.request_id for each in running], [each.processor for each in running])
        self._items = [each.item for each in running]
        try:
            elements = elements_of(self._called(rows), len(running))
            ends = self._ends(elements)
        except Exception as error:
            self._fail(failure_of(error))
            return Step(len(running))
        finally:
            self._items = []
        for each, element, is_last in zip(running, elements, ends, strict=False):
            self._answer(each, element, is_last)
        return Step(len(running), share=len(self._running) / self.slots)

    def _join(self) -> None:
        """Let those that have come into the next step, up to one that is alone, or has to wait for that."""
        while self._coming:
            is_alone = self._coming[0].is_alone or any(each.is_alone for each in self._running.values())
            if self._running and is_alone:
                return
            coming = self._coming.popleft()
            self._running[coming.item.number] = coming

    def abort(self, item: Item) -> int:
        """See `Adapter`. The handler does not see it again."""
        self._coming = deque(each for each in self._coming if each.item.number != item.number)
        running = self._running.pop(item.number, None)
        return 0 if running is None else running.parts

    def reset(self) -> None:
        """See `Adapter`."""
        self._running.clear()
        self._coming.clear()

    def _ends(self, elements: list[Any]) -> list[bool]:
        """Return for each element whether it is the last of its request; without criteria all are."""
        criteria = self.context.stopping_criteria
        if not criteria:
            return [True] * len(elements)
        if len(criteria) != len(elements):
            raise Failure(
                (
                    f"Prediction failed: context.stopping_criteria has {len(criteria)} entries for "
                    f"{len(elements)} requests; it must have one for each, in order."
                ),
                status=503,
            )
        return [ends_request(criteria[i], element) for i, element in enumerate(elements)]

    def _answer(self, running: _Running, element: Any, is_last: bool) -> None:
        try:
            answer = answer_of(element, running.processor)
        except Failure as failure:
            del self._running[running.item.number]
            running.item.send(failure_of(failure), final=True)
            return
        running.parts += 1
        if is_last:
            del self._running[running.item.number]
            running.item.send(answer, final=True)
        else:
            running.item.offer(answer)

    def _fail(self, failure: Failure) -> None:
        running, self._running = self._running, {}
        for each in running.values():
            each.item.send(failure, final=True)

    def _part(self, item: Item, answer: Any) -> None:
        """A step waits for no reader."""
        item.offer(answer)
