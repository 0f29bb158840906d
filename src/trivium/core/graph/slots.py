"""Bounds how many calls of each step of a graph are in work, over all requests that go through it.

Source: the original's documentation of ensemble_models, "max_inflight_requests", of release 26.09.
"""

from collections import deque
from typing import Protocol


class Waiter(Protocol):
    """A request that waits for room at a step."""

    def proceed(self) -> None:
        """There is room: begin what can be begun."""


class StepSlots:
    """Counts the calls of each step that have not ended, and who waits for one to end, in order. On the loop only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used: dict[int, int] = {}
        self._waiting: dict[int, dict[Waiter, None]] = {}
        self._freed: deque[int] = deque()
        self._is_handing_on = False

    def take(self, step: int, waiter: Waiter) -> bool:
        """Take a slot of the step. False where all are taken: the waiter is called once one is free."""
        used = self._used.get(step, 0)
        if used >= self._most:
            self._waiting.setdefault(step, {})[waiter] = None
            return False
        self._used[step] = used + 1
        return True

    def free(self, step: int) -> None:
        """A call of the step has ended: whoever waits longest gets its slot."""
        self._used[step] -= 1
        self._freed.append(step)
        if self._is_handing_on:  # a member that answers at once: without this, each would be a call deeper
            return
        self._is_handing_on = True
        while self._freed:
            self._hand_on(self._freed.popleft())
        self._is_handing_on = False

    def leave(self, waiter: Waiter) -> None:
        """It waits no more."""
        for waiting in self._waiting.values():
            waiting.pop(waiter, None)

    def _hand_on(self, step: int) -> None:
        waiting = self._waiting.get(step, {})
        while waiting and self._used[step] < self._most:
            waiter = next(iter(waiting))
            del waiting[waiter]
            waiter.proceed()
