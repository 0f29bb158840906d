"""Keeps the last lines that the workers of each model have printed, those that have ended among them.

A post-mortem has the last lines of one worker's standard error; here is what all workers of a model have said, in
order, for whoever asks what it is doing, or why it did not load. Bounded by lines, bytes and models.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

from trivium.core.observability.news import NO_NEWS, ServerNews
from trivium.types.observing import WorkerSaid
from trivium.types.recording import InstanceName, WorkerVoice

MOST_LINES = 200
"""That are kept of one model."""

MOST_CHARACTERS = 2**16
"""Of all lines of one model."""

MOST_MODELS = 256
"""Of which lines are kept: those that spoke last."""


class _Kept:
    """The lines of one model."""

    def __init__(self) -> None:
        self.lines: deque[WorkerSaid] = deque()
        self._size = 0

    def add(self, line: WorkerSaid) -> None:
        self.lines.append(line)
        self._size += len(line.text)
        while len(self.lines) > MOST_LINES or self._size > MOST_CHARACTERS:
            self._size -= len(self.lines.popleft().text)


class WorkerLines:
    """One per server; used on the loop only. `epoch` tells the time in seconds of the Unix epoch; each line is
    among the `news`, for who listens. `follows`: lines say which requests are in hand.
    """

    def __init__(self, epoch: Callable[[], float], news: ServerNews = NO_NEWS, follows: bool = False) -> None:
        self._epoch = epoch
        self._follows = follows
        self._news = news
        self._by_model: dict[str, _Kept] = {}

    def voice(self, instance: InstanceName, name: str) -> WorkerVoice:
        """Return the voice of an instance, which people know by this name."""
        return WorkerVoice(instance, partial(self._take, instance, name), name, self._follows)

    def of(self, model: str) -> tuple[WorkerSaid, ...]:
        """Return what is kept of a model, the oldest first."""
        kept = self._by_model.get(model)
        return () if kept is None else tuple(kept.lines)

    def _take(self, instance: InstanceName, name: str, text: str) -> None:
        line = WorkerSaid(self._epoch(), instance.model, instance.version, name, text)
        kept = self._by_model.pop(instance.model, None) or _Kept()
        self._by_model[instance.model] = kept  # in the order in which models spoke last
        kept.add(line)
        if len(self._by_model) > MOST_MODELS:
            del self._by_model[next(iter(self._by_model))]
        self._news.tell(line)
