"""Those who watch the server: a snapshot every second, and each thing that happens, for as long as somebody listens.

With nobody listening no timer runs here, counters have nobody more to tell, and news are heard by nobody. A listener
that is full keeps a bounded number of news, is told how many it has missed, and is cut off in the end.
"""

from collections import deque
from collections.abc import Callable

from trivium.core.clock import Alarm
from trivium.core.models.registry import Registry
from trivium.core.models.served_model import ServedModel
from trivium.core.observability.news import News, ServerNews
from trivium.core.observability.timelines import TimelineBook, TimelineLog
from trivium.core.request import COMPLETED
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Clock, Sink, Ticket
from trivium.types.observing import LostNews
from trivium.types.operations import Answer, ResponsePart, Snapshot

EVERY_SECONDS = 1.0
"""Between two snapshots."""

MOST_LISTENERS = 64
MOST_KEPT = 200
"""News that are kept for one who reads slower than they come."""

HELD_SECONDS = 30.0
"""After which one who reads nothing is cut off."""

LISTEN_SECONDS = 900.0
"""After which a listener is sent away: it may come again, if it may."""

RETRY_SECONDS = 5.0


class WatchTicket:
    """Implements `Ticket`: one who listens, from the time `since`."""

    def __init__(self, sink: Sink, since: float, leave: "Callable[[WatchTicket], None]") -> None:
        self._sink = sink
        self._leave = leave
        self._kept: deque[ResponsePart] = deque()
        self._snapshot: ResponsePart | None = None
        self._lost = 0
        self._is_held = self._is_over = False
        self._now: float = since
        self._held_since = since
        self.since = since

    def give(self, part: ResponsePart, now: float) -> None:
        """Pass on a part, or keep it while the receiver is full. Of several snapshots the last one counts."""
        self._now = now
        if not self._is_held:
            self._sink(part)
        elif isinstance(part.answer, Snapshot):
            self._snapshot = part
        elif len(self._kept) < MOST_KEPT:
            self._kept.append(part)
        else:
            self._lost += 1

    def is_late(self, now: float) -> bool:
        """Has it listened, or read nothing, for too long?"""
        return now - self.since > LISTEN_SECONDS or (self._is_held and now - self._held_since > HELD_SECONDS)

    def end(self, error: ServeError | None = None) -> None:
        """Nothing more comes; further calls have no effect."""
        if not self._is_over:
            self._is_over = True
            self._leave(self)
            self._sink(ResponsePart(error=error))

    def cancel(self, why: ServeError) -> None:
        """See `Ticket`."""
        self.end(why)

    def hold(self) -> None:
        """See `Ticket`."""
        if not self._is_held:
            self._is_held, self._held_since = True, self._now

    def resume(self) -> None:
        """See `Ticket`. It gets what was kept, as far as it has room."""
        self._is_held = False
        while self._kept and not self._is_held:
            self._sink(self._kept.popleft())
        if self._lost and not self._is_held:
            lost, self._lost = self._lost, 0
            self._sink(ResponsePart(answer=LostNews(lost), final=False))
        if self._snapshot is not None and not self._is_held:
            snapshot, self._snapshot = self._snapshot, None
            self._sink(snapshot)


class Watching:
    """One per server; used on the loop only. `look` takes a snapshot."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        news: ServerNews,
        book: TimelineBook,
        look: Callable[[], Snapshot],
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._news = news
        self._book = book
        self._look = look
        self._listeners: set[WatchTicket] = set()
        self._logs: dict[ServedModel, TimelineLog] = {}
        self._alarm = Alarm(clock, self._tick)
        self._is_closed = False

    @property
    def count(self) -> int:
        """Count those who listen."""
        return len(self._listeners)

    def begin(self, sink: Sink) -> Ticket:
        """Let one more listen. It gets a snapshot at once, or why it may not listen."""
        if self._is_closed or len(self._listeners) >= MOST_LISTENERS:
            sink(ResponsePart(error=_refusal(self._is_closed)))
            return COMPLETED
        now = self._clock.now()
        if not self._listeners:
            self._book.begin()
            self._news.heard = self._tell
            self._alarm.set(now + EVERY_SECONDS)
        listener = WatchTicket(sink, now, self._leave)
        self._listeners.add(listener)
        self._attend()
        listener.give(ResponsePart(answer=self._look(), final=False), now)
        return listener

    def close(self) -> None:
        """The server goes down: nobody hears any more."""
        self._is_closed = True
        for listener in tuple(self._listeners):
            listener.end()

    def _tell(self, news: News) -> None:
        self._give(news, self._clock.now())

    def _give(self, answer: Answer, now: float) -> None:
        part = ResponsePart(answer=answer, final=False)
        for listener in tuple(self._listeners):
            listener.give(part, now)

    def _tick(self) -> None:
        now = self._clock.now()
        for listener in [each for each in self._listeners if each.is_late(now)]:
            listener.end()
        if not self._listeners:
            return
        self._attend()
        for log in self._logs.values():
            log.settle(now)
        self._give(self._look(), now)
        if self._listeners:
            self._alarm.set(now + EVERY_SECONDS)

    def _attend(self) -> None:
        """Hear how the requests of all models end that serve by now."""
        serving = {record.loaded for record in self._registry.records() if record.loaded is not None}
        for model in serving - self._logs.keys():
            log = self._logs[model] = TimelineLog(self._book, model.spec.name, model.spec.version)
            model.listen(log)
        for model in self._logs.keys() - serving:
            model.listen(None)
            del self._logs[model]

    def _leave(self, listener: WatchTicket) -> None:
        self._listeners.discard(listener)
        if self._listeners:
            return
        self._alarm.set(None)
        self._news.heard = None
        for model in self._logs:
            model.listen(None)
        self._logs.clear()


def _refusal(is_closed: bool) -> ServeError:
    if is_closed:
        return ServeError(Code.DRAINING, "The server is going down.")
    text = f"{MOST_LISTENERS} listen to this server already. Close a page that shows it, or try again later."
    return ServeError(Code.QUEUE_FULL, text, RETRY_SECONDS)
