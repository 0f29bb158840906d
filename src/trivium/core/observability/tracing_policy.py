"""Decides which requests are traced: sampling, and the settings of the server and of models over one another. Pure.

It knows neither what a trace holds nor where it goes. The rules are those that Triton has (spec sheet `triton`, section
4.12): every n-th request, so many in all, every one that belongs to a trace of its client's.
"""

import re
from collections.abc import Sequence

import msgspec

from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.tracing import NO_CHANGE, TraceChange, Traces, TraceSettings

MOST_HELD = 10_000
"""Traces of one file at most, where the settings name a larger number, or none."""

_CONTEXT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


def is_context(parent: str) -> bool:
    """Is it a `traceparent` of W3C Trace Context, and does it name a trace?"""
    return _CONTEXT.fullmatch(parent) is not None


class Sampler:
    """Counts the requests that one group of settings holds for."""

    def __init__(self, settings: TraceSettings) -> None:
        self._settings = settings
        self._seen = 0
        self._left = settings.left
        self._open = 0  # taken, and not finished
        self._held: list[Traces] = []
        self._is_replaced = False

    @property
    def settings(self) -> TraceSettings:
        """Return the settings as they are now: fewer are left with each that is taken."""
        return msgspec.structs.replace(self._settings, left=self._left)

    @property
    def is_on(self) -> bool:
        """May it take any?"""
        return bool(self._settings.details)

    def takes(self, is_followed: bool) -> bool:
        """Is this request traced? `is_followed`: it belongs to a trace of its client's."""
        settings = self._settings
        if not settings.details:
            return False
        is_hit = False
        if settings.every and (self._left != 0 or is_followed):
            self._seen += 1
            is_hit = self._seen % settings.every == 0 and self._left != 0
            if is_hit and self._left is not None:
                self._left -= 1
        self._open += is_hit or is_followed
        return is_hit or is_followed

    def finished(self, traces: Traces) -> tuple[Sequence[Traces], bool]:
        """Return what shall be written now that these are finished, and whether as a file of its own: every `per_file`
        traces, and once no more will be taken.
        """
        self._open -= 1
        settings = self._settings
        if not settings.per_file and settings.left is None:
            return (traces,), False
        self._held.append(traces)
        is_last = (self._left == 0 or self._is_replaced) and not self._open
        if is_last or len(self._held) >= min(settings.per_file or MOST_HELD, MOST_HELD):
            return self.rest(), True
        return (), False

    def replace(self) -> Sequence[Traces]:
        """It takes no more: what is held, to be written as a file of its own. The open come by `finished`."""
        self._is_replaced = True
        return self.rest()

    def rest(self) -> Sequence[Traces]:
        """Return what is held, to be written as a file of its own; nothing is, after that."""
        held, self._held = self._held, []
        return held


class TraceBook:
    """The settings that hold: the server's under `""`, and those of models that have some of their own."""

    def __init__(self, first: TraceSettings, can_write: bool) -> None:
        self._first = first
        self._can_write = can_write
        self._changes: dict[str, TraceChange] = {"": NO_CHANGE}
        self._samplers: dict[str, Sampler] = {"": Sampler(first)}

    @property
    def is_on(self) -> bool:
        """Is anything traced?"""
        return self._can_write and any(sampler.is_on for sampler in self._samplers.values())

    def of(self, model: str) -> Sampler:
        """Return what samples the requests of this model."""
        return self._samplers.get(model) or self._samplers[""]

    def change(self, model: str, change: TraceChange) -> Sequence[Sampler]:
        """Settings of the model, or (an empty name) of the server; counting starts anew, for models that share some of
        the server's, too. Returns the samplers that are replaced. INVALID where traces shall be written and cannot be:
        then nothing has changed.
        """
        changes = {**self._changes, model: _over(self._now(model), change)}
        names = tuple(changes) if not model else (model,)
        made = {"": self._samplers[""]}
        if not model:
            made[""] = Sampler(_settled(self._first, changes[""]))
        for name in filter(None, names):
            own = changes[name] if name == model else self._now(name)
            if own != NO_CHANGE:
                made[name] = Sampler(_settled(made[""].settings, own))
        for name in names:
            if name in made:
                self._check(made[name].settings)
        before = [self._samplers[name] for name in names if name in self._samplers]
        self._changes = {name: own for name, own in changes.items() if own != NO_CHANGE or not name}
        self._samplers = {
            name: sampler for name, sampler in self._samplers.items() if name not in names
        } | made
        return before

    def samplers(self) -> Sequence[Sampler]:
        """All that there are."""
        return tuple(self._samplers.values())

    def _now(self, model: str) -> TraceChange:
        """Return what was changed, with as many left as there are still."""
        change = self._changes.get(model, NO_CHANGE)
        if isinstance(change.left, int) and model in self._samplers:
            left = self._samplers[model].settings.left
            return msgspec.structs.replace(change, left=-1 if left is None else left)
        return change

    def _check(self, settings: TraceSettings) -> None:
        if not settings.details:
            return
        if not settings.every:
            raise _unfit(
                "sample rate must be non-zero",
                "One request in 0 shall be traced, which is none. Give a number from 1.",
            )
        if not self._can_write:
            raise _unfit(
                "trace file name is not given",
                "Traces cannot be switched on: this server was started without a place for them. Start it with "
                "--trace-file, or with --trace-endpoint.",
            )
        if settings.left == 0:
            raise _unfit(
                "", "No request at all shall be traced, but more than nothing of it. Give a number from 1."
            )


def _unfit(why: str, text: str) -> ServeError:
    return ServeError(Code.INVALID, text, info=ErrorInfo.of(reasons.TRACE_UNFIT, why=why))


def _over(before: TraceChange, change: TraceChange) -> TraceChange:
    """Return what is set of the new ones, over the old ones; what was cleared is unset."""
    cleared = {name: msgspec.UNSET if value is None else value for name, value in _set(change).items()}
    return msgspec.structs.replace(before, **cleared)


def _settled(outer: TraceSettings, change: TraceChange) -> TraceSettings:
    fields = _set(change)
    if fields.get("left") == -1:
        fields["left"] = None
    return msgspec.structs.replace(outer, **fields)


def _set(change: TraceChange) -> dict[str, object]:
    fields = {name: getattr(change, name) for name in TraceChange.__struct_fields__}
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}
