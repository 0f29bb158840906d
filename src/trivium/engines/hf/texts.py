"""Turns requests into tokens while the steps go on: in a thread, or in a process that can be killed if it may be dear.

The thread has its own copy of the tokenizer, since encoding changes settings that decoding reads.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from trivium.codecs.text_bounds import MOST_MEMORY, SECONDS
from trivium.engines.hf.prompts import (
    PromptInput,
    PromptTokenizer,
    as_work,
    from_work,
    unreadable,
)
from trivium.engines.hf.text_roads_policy import TextRoad, most_long, road
from trivium.machine.helper_process import EndOfWork, HelperLane, HelperProcess, WorkEnded, WorkOpener
from trivium.types.errors import Code, ServeError, frameless, said_by
from trivium.types.generation import Generate
from trivium.types.running import ItemId
from trivium_worker.wire.vital import VitalThread

_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that can be computed, or why not."""

    item: ItemId
    prompts: Sequence[PromptInput] = ()
    error: ServeError | None = None


@dataclass(frozen=True, slots=True)
class _Unread:
    item: ItemId
    generate: Generate
    came_at: float


class PromptReader:
    """Reads requests, those of one road in the order in which they come. `wake` is called when one is ready.
    `work` opens a `PromptWork` of the same tokenizer elsewhere.
    """

    def __init__(
        self, tokenizer: PromptTokenizer, work: WorkOpener, slots: int, wake: Callable[[], None]
    ) -> None:
        self._tokenizer = tokenizer
        self._is_cheap = not tokenizer.length.may_be_dear
        self._most_long = most_long(slots)
        self._wake = wake
        self._helper = HelperProcess(work, MOST_MEMORY)
        self._roads: dict[TextRoad, _Road] = {}
        self._unread: dict[ItemId, TextRoad] = {}
        self._ready: SimpleQueue[PreparedRequest] = SimpleQueue()

    def read(self, item: ItemId, generate: Generate) -> None:
        """Take a request that has been judged. INVALID where its texts are too long whatever they say, QUEUE_FULL where
        as many long ones wait as may.
        """
        self._tokenizer.judge(generate)
        chosen = road(generate, self._is_cheap)
        if chosen is TextRoad.LONG and list(self._unread.values()).count(chosen) >= self._most_long:
            raise ServeError(
                Code.QUEUE_FULL,
                f"Model '{self._tokenizer.limits.model}': {self._most_long} requests with long texts wait to be read, "
                "and no more may. Send it again later, or as tokens.",
            )
        self._unread[item] = chosen
        taker = self._roads.get(chosen)
        if taker is None:
            taker = self._roads[chosen] = _Road(chosen, self._prompts(chosen), self._told)
        taker.put(_Unread(item, generate, time.monotonic()))

    @property
    def is_brief(self) -> bool:
        """Return whether one of those that wait has a short text."""
        return any(chosen is not TextRoad.LONG for chosen in self._unread.values())

    def take(self, seconds: float) -> PreparedRequest | None:
        """Return the next one that is ready, or is within so many seconds."""
        with suppress(Empty):
            found = self._ready.get(timeout=seconds) if seconds else self._ready.get_nowait()
            self._unread.pop(found.item, None)
            return found
        return None

    def cancel(self, item: ItemId) -> None:
        """Nobody waits for it any more: what is being done for it ends."""
        chosen = self._unread.pop(item, None)
        if chosen is not None:
            self._roads[chosen].cancel(item)

    def close(self) -> None:
        """End the threads, each behind the request that it has in hand, or leave it to that if it takes long."""
        for each in self._roads.values():
            each.end()
        self._helper.close()
        for each in self._roads.values():
            each.thread.join(_PATIENCE)

    def _told(self, prepared: PreparedRequest) -> None:
        self._ready.put(prepared)
        self._wake()

    def _prompts(self, chosen: TextRoad) -> "_Prompts":
        if chosen is TextRoad.THREAD:
            return _PromptsHere(self._tokenizer)
        lane = HelperLane(self._helper, 0 if chosen is TextRoad.BRIEF else 1)
        return _PromptsBeside(lane, self._tokenizer.limits.model)


class _Road:
    """A thread that reads one request after the other."""

    def __init__(self, name: TextRoad, prompts: "_Prompts", told: Callable[[PreparedRequest], None]) -> None:
        self._prompts = prompts
        self._tell = told
        self._queue: SimpleQueue[_Unread | None] = SimpleQueue()
        self._gone: set[ItemId] = set()
        self._is_ending = False
        self.thread = VitalThread(self._run, f"trivium-texts-{name.value}")

    def put(self, unread: _Unread) -> None:
        """Read it behind those that came before."""
        self._queue.put(unread)

    def cancel(self, item: ItemId) -> None:
        """Leave out a request that was put here and is not answered."""
        self._gone.add(item)

    def end(self) -> None:
        """Read no more."""
        self._is_ending = True
        self._queue.put(None)

    def _run(self) -> None:
        while (unread := self._queue.get()) is not None and not self._is_ending:
            item = unread.item
            made = PreparedRequest(item)
            try:
                if item not in self._gone:
                    made = PreparedRequest(item, self._prompts.read(unread, self._is_wanted))
            except ServeError as error:
                made = PreparedRequest(item, error=frameless(error))
            del unread
            if item in self._gone:
                self._gone.discard(item)
            else:
                self._tell(made)
        self._prompts.close()

    def _is_wanted(self, item: ItemId) -> bool:
        return not self._is_ending and item not in self._gone


class _Prompts:
    """Reads the prompts of a request, while that `is_wanted`. Raises ServeError, whatever user code raises."""

    def read(self, unread: _Unread, is_wanted: Callable[[ItemId], bool]) -> list[PromptInput]:
        raise NotImplementedError

    def close(self) -> None:
        """Read no more."""


class _PromptsHere(_Prompts):
    """Reads in the calling thread."""

    def __init__(self, tokenizer: PromptTokenizer) -> None:
        self._tokenizer = tokenizer

    def read(self, unread: _Unread, is_wanted: Callable[[ItemId], bool]) -> list[PromptInput]:
        return self._tokenizer.prompts(unread.generate)


class _PromptsBeside(_Prompts):
    """Reads in a helper process, which is killed where that takes too long."""

    def __init__(self, lane: HelperLane, model: str) -> None:
        self._lane = lane
        self._model = model

    def read(self, unread: _Unread, is_wanted: Callable[[ItemId], bool]) -> list[PromptInput]:
        work = as_work(unread.generate)
        try:
            told = self._lane.do(work, unread.came_at, SECONDS, lambda: is_wanted(unread.item))
        except WorkEnded as ended:
            raise ended_early(self._model, unread.generate, ended) from ended
        except OSError as error:
            raise ServeError(
                Code.MODEL_FAILED, f"Model '{self._model}': {unreadable(unread.generate)}: {said_by(error)}."
            ) from error
        return from_work(told)

    def close(self) -> None:
        self._lane.close()


def ended_early(model: str, generate: Generate, ended: WorkEnded) -> ServeError:
    """Return the error of a request whose texts were not read to their end."""
    what = f"Model '{model}': {unreadable(generate)}"
    if ended.reason is EndOfWork.UNWANTED:
        return ServeError(Code.CANCELLED, f"{what}: its client has left.")
    if ended.reason is EndOfWork.DIED:
        text = f"that ended the process which reads texts, and may have {MOST_MEMORY >> 20} MiB of memory for one"
        return ServeError(Code.MODEL_FAILED, f"{what}: {text}. Send less, or look at the template.")
    if not ended.has_begun:
        text = f"others took the {SECONDS:g} s that a text may wait and take"
        return ServeError(Code.EXPIRED, f"{what}: {text}. Send it again.")
    text = f"it took longer than {SECONDS:g} s, and was ended"
    return ServeError(
        Code.EXPIRED, f"{what}: {text}. Send less, or look at the template for what has no end."
    )
