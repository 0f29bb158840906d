"""Requests to models that are not there yet, and what becomes of them.

Decides who waits, beside how many and for how long. It loads nothing: it is told of every change of a version's state,
and who has waited long enough is submitted as if they had come then.
"""

from collections.abc import Callable
from functools import partial

from trivium.core.models.registry import Record, Registry
from trivium.core.queueing.admission import queue_full
from trivium.core.request import COMPLETED, GIVEN_UP, Item, out_of_time
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, frameless
from trivium.types.interfaces import Clock, Sink, Ticket, Timer
from trivium.types.operations import Infer, ResponsePart, VersionStatus
from trivium.types.payload import cover
from trivium.types.registered_names import named_version
from trivium.types.spec import Limits
from trivium.types.state import VersionState

RETRY_SECONDS = 1.0
"""After which a request may be sent again that found no room: nobody knows how long a load takes."""

Submit = Callable[[Infer, Sink], Ticket]


def _stay(request: "WaitingRequest") -> None:
    """Keep it until its model is there, though it has ended."""


class WaitingRequest:
    """A request that came at the time `since` and whose model is not there yet, and its ticket from then on. Whatever
    `infer` holds is held until it is submitted or ends; if it ends before, `leave` is told.
    """

    def __init__(
        self, infer: Infer, sink: Sink, since: float, leave: "Callable[[WaitingRequest], None]" = _stay
    ) -> None:
        self.infer = infer
        self._sink = sink
        self._since = since
        self._leave = leave
        self._ticket: Ticket | None = None
        self._timer: Timer | None = None
        self._is_over = self._is_held = False
        if infer.payload.lease is not None:
            infer.payload.lease.hold()

    def keep_deadline(self, limits: Limits, clock: Clock) -> None:
        """End it once the time is up that itself or its model gives it, wherever it is then."""
        own, longest, reason = self.infer.deadline, limits.item_deadline, ""
        if longest is not None and (own is None or longest < own):
            own, reason = longest, reasons.ITEM_DEADLINE
        if own is not None:
            end = partial(self.cancel, out_of_time(self.infer.model, own, reason))
            self._timer = clock.call_at(self._since + own, end)

    def go_on(self, submit: Submit) -> None:
        """Submit it: its model is there. It has waited since it came."""
        if self._is_over:
            return
        self._ticket = ticket = submit(self.infer, self._answer)
        self._release()
        if isinstance(ticket, Item):
            ticket.enqueued_at = self._since
        if self._is_held:
            ticket.hold()

    def fail(self, error: ServeError) -> None:
        """Answer it with why its model is not there."""
        if not self._is_over:
            self._leave(self)
            self._release()
            self._answer(ResponsePart(error=frameless(error), model=self.infer.model))

    def cancel(self, why: ServeError) -> None:
        """End it with `why`, wherever it is."""
        if self._ticket is None:
            self.fail(why)
        else:
            self._ticket.cancel(why)

    def hold(self) -> None:
        """See `Ticket`."""
        self._is_held = True
        if self._ticket is not None:
            self._ticket.hold()

    def resume(self) -> None:
        """See `Ticket`."""
        self._is_held = False
        if self._ticket is not None:
            self._ticket.resume()

    def _answer(self, part: ResponsePart) -> None:
        if part.final:
            self._is_over = True
            if self._timer is not None:
                self._timer.cancel()
        self._sink(part)

    def _release(self) -> None:
        if self.infer.payload.lease is not None:
            self.infer.payload.lease.release()


class WaitingRoom:
    """Keeps the requests to versions that are being loaded, if it `is_open`. Used on the loop only.

    For each place that requests name, a model and perhaps a version, as many wait as may in the queue of the version
    that is coming. What calls from inside a handler does not wait, since what it calls may wait for its end; nor do
    requests to a model that wants an instance to be free for them.
    """

    def __init__(self, registry: Registry, clock: Clock, submit: Submit, is_open: bool) -> None:
        self._registry = registry
        self._clock = clock
        self._submit = submit
        self._waiting: dict[
            tuple[str, str], dict[WaitingRequest, None]
        ] = {}  # in the order in which they came
        self.is_open = is_open
        """May anybody wait, for a load or for an instance?"""

    def takes(self, model: str, version: str) -> bool:
        """Would a request to this place wait?"""
        return self._coming(model, version) is not None

    def join(self, infer: Infer, sink: Sink) -> Ticket | None:
        """Let a request wait, or refuse it through its sink because too many do; None for one that shall not wait."""
        record = None if infer.parent is not None else self._coming(infer.model, infer.version)
        if record is None or record.spec is None:
            return None
        waiting = self._waiting.setdefault((record.name, infer.version), {})
        limits = record.spec.limits
        request = WaitingRequest(infer, sink, self._clock.now(), lambda gone: waiting.pop(gone, None))
        if len(waiting) >= limits.queue_items:
            request.fail(queue_full(record.name, len(waiting), RETRY_SECONDS))
            return COMPLETED
        try:
            cover(infer.payload)
        except ServeError as error:
            request.fail(frameless(error))
            return COMPLETED
        request.keep_deadline(limits, self._clock)
        waiting[request] = None
        return request

    def count(self, model: str, version: str) -> int:
        """Return how many wait for a version."""
        return sum(
            len(waiting)
            for place, waiting in self._waiting.items()
            if place[0] == model and place[1] in ("", version)
        )

    def told(self, status: VersionStatus) -> None:
        """The state of a version has changed: submit who waited for it, or tell why it did not load."""
        for place in [each for each in self._waiting if each[0] == status.model]:
            if self._coming(*place) is not None:
                continue
            failure = _failure(status) if status.state is VersionState.FAILED else None
            for request in list(self._waiting.pop(place)):
                if failure is None:
                    request.go_on(self._submit)
                else:
                    request.fail(failure)

    def close(self) -> None:
        """Nothing is waited for any more, instances that do not open included: the server goes down."""
        if not self.is_open:
            return
        self.is_open = False
        for loaded in [record.loaded for record in self._registry.records() if record.loaded is not None]:
            if loaded.obstacle() and not loaded.is_cold and not loaded.is_failed:
                loaded.fail_waiting(GIVEN_UP)
        waiting, self._waiting = self._waiting, {}
        for request in [one for some in waiting.values() for one in some]:
            request.fail(GIVEN_UP)

    def _coming(self, model: str, version: str) -> Record | None:
        record = self._registry.coming(model, version) if self.is_open else None
        return None if record is None or record.spec is None or record.spec.limits.needs_free else record


def _failure(status: VersionStatus) -> ServeError:
    text = (
        f"{named_version(status.model, status.version)} did not load: {status.reason or 'why is in the log'}"
    )
    info = ErrorInfo.of(reasons.NOT_LOADED, model=status.model, version=status.version, text=status.reason)
    return ServeError(Code.LOAD_FAILED, text, info=info)
