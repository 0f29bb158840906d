"""Counts how predictions are answered, and knows whether errors have come too fast. One per server: what one listener
answers counts for the health that another tells.
"""

from collections.abc import Callable, Mapping

from trivium.servers.djl.words.error_rate_policy import (
    ErrorKind,
    ErrorRate,
    ErrorRatesView,
    full_allowances,
    judge_error,
)
from trivium.types import reasons
from trivium.types.errors import Code, ServeError

_WLM = {Code.NOT_READY, Code.QUEUE_FULL, Code.WORKER_DIED, Code.EXPIRED, Code.DRAINING}
_OF_MODELS = {Code.MODEL_FAILED, Code.UNKNOWN, Code.OUT_OF_MEMORY}
HANDLER_ERROR = 424
_NO_RATES: Mapping[ErrorKind, ErrorRate] = {}


class DjlMeter:
    """Counts answers by the first digit of their status, and errors by their kind. Two threads may count at once
    where long answers are written: one of them may get lost then, which no health depends on.
    """

    __slots__ = ("_now", "_view", "answers", "errors")

    def __init__(
        self, rates: Mapping[ErrorKind, ErrorRate] = _NO_RATES, now: Callable[[], float] = lambda: 0.0
    ) -> None:
        self._now = now
        self._view: ErrorRatesView = full_allowances(rates, now())
        self.answers = [0] * 10
        self.errors = dict.fromkeys(ErrorKind, 0)

    @property
    def is_exceeded(self) -> bool:
        """Have errors come too fast, at any time since the start?"""
        return self._view.is_exceeded

    def answered(self, status: int) -> None:
        """A model has answered, with a status of its own."""
        self._count(status, ErrorKind.MODEL if status >= 500 or status == HANDLER_ERROR else None)

    def refused(self, error: ServeError, status: int) -> None:
        """An error was answered with this status."""
        self._count(status, kind_of(error, status))

    def _count(self, status: int, kind: ErrorKind | None) -> None:
        self.answers[status // 100] += 1
        if kind is None:
            return
        self.errors[kind] += 1
        if self._view.rates:
            self._view = judge_error(self._view, kind, self._now())


def kind_of(error: ServeError, status: int) -> ErrorKind | None:
    """Say whose error it is; None for that of a client."""
    if error.code in _WLM or error.reason == reasons.NO_MEMORY:
        return ErrorKind.WLM
    if error.code in _OF_MODELS:
        return ErrorKind.MODEL
    return ErrorKind.SERVER if status >= 500 else None
