"""The stream of server-sent events: each thing written once, however many listen. Source: HTML, section 9.2.

Line ends within an event's data would begin fields of their own; JSON has none.
"""

from collections.abc import Callable

import msgspec

from trivium.types.observing import InstanceDeath, InstanceOpened, LostNews, Timeline, WorkerSaid
from trivium.types.operations import Answer, ResponsePart, Snapshot, VersionStatus
from trivium.types.wire import HttpAnswer
from trivium.wires.operate.errors import GUARDS, refuse
from trivium.wires.operate.rows import log_row, timeline_row
from trivium.wires.operate.schema import DeathEvent, LostEvent, Overview, StateEvent

_FIELDS = b"Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-store\r\n" + GUARDS
_END = b"event: end\ndata: {}\n\n"


class EventWriter:
    """Writes events, and what it has written last once more for whoever gets the same. One for all who listen.
    `overview` makes the document of a snapshot, `epoch` tells the time in seconds of the Unix epoch.
    """

    def __init__(self, overview: Callable[[Snapshot], Overview], epoch: Callable[[], float]) -> None:
        self._overview = overview
        self._epoch = epoch
        self._last: Answer | None = None
        self._written = b""

    def written(self, answer: Answer | None) -> bytes:
        """Return the bytes of an event; none for what is no event."""
        if answer is not self._last or answer is None:
            self._last, self._written = answer, self._event(answer)
        return self._written

    def _event(self, answer: Answer | None) -> bytes:
        match answer:
            case Snapshot():
                return _event("snapshot", self._overview(answer))
            case VersionStatus(model, version, state, reason):
                return _event("state", StateEvent(self._epoch(), model, version, state.value, reason or None))
            case InstanceOpened(when, model, version, instance):
                return _event("state", StateEvent(when, model, version, "ready", None, instance))
            case InstanceDeath(when, model, version, instance, cause, last_lines):
                death = DeathEvent(when, cause, last_lines, model=model, version=version, instance=instance)
                return _event("death", death)
            case WorkerSaid():
                return _event("log", log_row(answer))
            case Timeline():
                return _event("request", timeline_row(answer))
            case LostNews(count):
                return _event("lost", LostEvent(count))
            case _:
                return b""


class EventEncoder:
    """Writes the events of one who listens."""

    __slots__ = ("_has_begun", "_writer")

    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer
        self._has_begun = False

    def encode(self, part: ResponsePart) -> HttpAnswer:
        """See `types.interfaces.Encoder`."""
        if part.error is not None and not self._has_begun:
            return refuse(part.error)
        self._has_begun = True
        data = _END if part.final else self._writer.written(part.answer)
        return HttpAnswer(200, _FIELDS, (data,), len(data), part.final)


def _event(name: str, document: msgspec.Struct) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(document))
