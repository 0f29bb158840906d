"""Keeps what comes for receivers that are full, and decides what becomes of those who make it.

The one place between instances and receivers where a held answer waits: a sender that nobody else waits for is held;
the parts of another are kept, and given when there is room again. Knows neither wires nor what a part holds.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from trivium.core.clock import Alarm
from trivium.core.instances.pool import Pool
from trivium.core.request import Item
from trivium.core.streams.policy import StreamVerdict, StreamView, judge_stream
from trivium.core.streams.spool import PartSpool, StreamStore
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Clock
from trivium.types.running import Executed, ItemId, Outcome, Part
from trivium.types.spoken import spoken
from trivium.types.state import ItemState

_log = logging.getLogger(__name__)

ENDED = ItemState.ENDED  # members of an Enum are slow to look up in its class
LOOK_SECONDS = 0.005
"""After which a held sender is looked at again once something new may wait for it: by then that was handed out."""


class StreamingModel(Protocol):
    """The model version whose items these are."""

    def is_waited_for(self, item: Item) -> bool:
        """Does another request wait for what makes this one's answer?"""
        ...

    def pass_on(self, item: Item, part: Part) -> None:
        """Give the receiver of an item a part."""
        ...

    def leave(self, item: Item) -> None:
        """An item has ended, and its instance is done with it."""
        ...


class HeldStream:
    """The answer to one item, whose receiver was full when a part came. Behind what the spool keeps comes `error`, if
    there is one.
    """

    __slots__ = ("_evict", "error", "has_last", "is_done", "is_held", "item", "spool")

    def __init__(
        self,
        item: Item,
        store: StreamStore,
        moved: Callable[["HeldStream"], None],
        evict: Callable[["HeldStream"], None],
    ) -> None:
        """`moved` is called when a file of it was written or read, `evict` when others need the room that it takes."""
        self.item = item
        self.spool = PartSpool(item.item, store, self, partial(moved, self))
        self.error: Part | None = None
        self.is_held = False  # its sender is
        self.is_done = False  # its instance has ended it
        self.has_last = False  # its last part is kept: what comes behind that is nobody's
        self._evict = evict

    def give_up(self) -> None:
        """See `SlowReader`."""
        self._evict(self)

    def pop(self) -> Part | None:
        """Take what its receiver gets next; None where there is nothing, or not yet."""
        if self.spool.is_empty:
            part, self.error = self.error, None
            return part
        return self.spool.pop()


class HeldStreams:
    """Keeps the unread answers of one model version. Used on the loop only; `kept` has those with parts that wait."""

    def __init__(self, model: StreamingModel, pool: Pool, store: StreamStore, clock: Clock) -> None:
        self._model = model
        self._pool = pool
        self._store = store
        self._clock = clock
        self._alarm = Alarm(clock, self._look)
        self.kept: dict[ItemId, HeldStream] = {}

    # -- from the instance ---------------------------------------------------------------------------------

    def takes(self, item: Item) -> bool:
        """Is a part of this item to be kept, since its receiver is full, or others are in front of it?"""
        return item.state is not ENDED and (item.is_held or item.item in self.kept)

    def keep(self, item: Item, part: Part) -> None:
        """Keep a part of an item that `takes` is true of."""
        stream = self.kept.get(item.item)
        if stream is None:
            stream = self._begin(item)
        stream.is_done = stream.is_done or part.final
        if not stream.has_last:
            stream.has_last = part.final
            if part.error is None:
                stream.spool.append(part)
            else:
                stream.error = part
        self._judge(stream)

    def without_kept(self, run: Executed, items: Sequence[Item]) -> tuple[Executed, Sequence[Item]]:
        """Keep the outcomes of an execution's items that have parts waiting; return what is left of it."""
        is_kept = [item.item in self.kept and self.takes(item) for item in items]
        if not any(is_kept):
            return run, items
        for item, outcome, kept in zip(items, run.outcomes, is_kept, strict=True):
            if kept:
                item.run = run
                self.keep(item, _last(item, outcome))
        left = [number for number, kept in enumerate(is_kept) if not kept]
        return run.only(left, sum(item.rows for item in items)), [items[number] for number in left]

    def lost(self, item: Item, error: ServeError) -> bool:
        """Its instance is gone: what is kept of its answer is given all the same, and the error behind it. False where
        nothing is kept.
        """
        if item.item not in self.kept or not self.takes(item):
            return False
        self.keep(item, Part(item.item, None, error))
        return True

    # -- from the receiver ---------------------------------------------------------------------------------

    def resume(self, item: Item) -> None:
        """Its receiver has room again: it gets what is kept, until it is full or there is no more."""
        stream = self.kept.get(item.item)
        if stream is not None:
            self._drain(stream)
        self.look_soon()  # it may wait now for a sender that another one holds

    def drop(self, item: Item) -> bool:
        """The item has ended: nothing is kept for it any more. Is its instance done with it, too?"""
        stream = self.kept.pop(item.item, None)
        if stream is None:
            return False
        stream.spool.close()
        return stream.is_done

    def items(self) -> list[Item]:
        """Return the items that have parts waiting."""
        return [stream.item for stream in self.kept.values()]

    def look_soon(self) -> None:
        """Something has come that may wait for a sender which is held."""
        if self.kept and self._alarm.when is None:
            self._alarm.set(self._clock.now() + LOOK_SECONDS)

    def close(self) -> None:
        """The model is closed, and every item has ended."""
        self._alarm.set(None)

    # -- details -------------------------------------------------------------------------------------------

    def _begin(self, item: Item) -> HeldStream:
        stream = HeldStream(item, self._store, self._moved, self._evict)
        self.kept[item.item] = stream
        return stream

    def _evict(self, stream: HeldStream) -> None:
        self._end(stream, _too_slow(stream, "others need the room"), False)

    def _look(self) -> None:
        for stream in list(self.kept.values()):
            if self.kept.get(stream.item.item) is stream:
                self._judge(stream)

    def _judge(self, stream: HeldStream) -> None:
        """Let its sender go on, or hold or end it."""
        if stream.is_done or stream.has_last:
            return
        item, spool = stream.item, stream.spool
        waits = self._model.is_waited_for(item)
        view = StreamView(waits, spool.memory, spool.filed, spool.is_writing, spool.has_files)
        verdict = judge_stream(view, self._store.bounds)
        if verdict is StreamVerdict.END:
            self._end(stream, _too_slow(stream, "that is as much as one may leave"), True)
        elif (verdict is StreamVerdict.HOLD) is not stream.is_held:
            stream.is_held = not stream.is_held
            (self._pool.hold if stream.is_held else self._pool.resume)(item)

    def _moved(self, stream: HeldStream) -> None:
        """A file of it was written or read, or could not be."""
        if self.kept.get(stream.item.item) is not stream:
            return
        if stream.spool.is_torn:
            self._end(stream, _torn(stream), False)
        if not stream.item.is_held:
            self._drain(stream)
        if self.kept.get(stream.item.item) is stream:
            self._judge(stream)

    def _end(self, stream: HeldStream, error: ServeError, keeps: bool) -> None:
        """End it with an error, behind what is kept or in place of it."""
        item = stream.item
        if not keeps:
            stream.spool.close()
        _log.warning("%s", error.message)
        stream.has_last = True
        stream.error = Part(item.item, None, error)
        if not stream.is_done:
            self._pool.cancel(item)

    def _drain(self, stream: HeldStream) -> None:
        item = stream.item
        while not item.is_held and self.kept.get(item.item) is stream:
            part = stream.pop()
            if part is None:
                break
            self._model.pass_on(item, part)
            if item.state is ENDED:
                if self.drop(item):
                    self._model.leave(item)
                return
        if self.kept.get(item.item) is stream and not item.is_held and stream.spool.is_empty:
            del self.kept[item.item]
            if stream.is_held:
                self._pool.resume(item)


def _last(item: Item, outcome: Outcome) -> Part:
    """Return what ends an item as its last part."""
    return Part(item.item, None, outcome) if isinstance(outcome, ServeError) else Part(item.item, outcome)


def _about(stream: HeldStream) -> str:
    return f"An answer of model '{stream.item.operation.model}'"


def _too_slow(stream: HeldStream, why: str) -> ServeError:
    left = stream.spool.memory + stream.spool.filed
    return ServeError(
        Code.TOO_LARGE,
        spoken(
            f"{_about(stream)} was ended: its reader has left {left} bytes of it unread while other requests wait for "
            f"the model, and {why}. Read faster, ask for less at a time, or let the server keep more (--unread-disk)."
        ),
        info=ErrorInfo.of(reasons.UNREAD, model=stream.item.operation.model, left=left),
    )


def _torn(stream: HeldStream) -> ServeError:
    return ServeError(
        Code.INTERNAL,
        f"{_about(stream)} was ended: what its reader had left unread was kept in a file, which cannot be read again. "
        "Send the request again.",
    )
