"""Is the server ready, or a model? What user code has a say in is asked there, and waited for as long as is said here.

A model is ready when every one of its instances says so; those that say nothing in time do not.
"""

from collections.abc import Callable, Sequence

from trivium.core.models.registry import Registry
from trivium.types.errors import ServeError
from trivium.types.interfaces import Check, Clock, Sink
from trivium.types.operations import Readiness, Ready, ResponsePart
from trivium.types.state import ServerState, VersionState

CHECK_SECONDS = 5.0
"""That user code has to say whether it is ready (sheet "triton", section 8.1)."""


class ReadyAnswers:
    """One per server; used on the loop only. A lenient server is ready whatever did not load."""

    def __init__(
        self, registry: Registry, clock: Clock, state: Callable[[], ServerState], is_lenient: bool = False
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._state = state
        self._is_lenient = is_lenient

    def begin(self, operation: Ready, sink: Sink) -> None:
        """The sink gets a `Readiness`: at once, unless user code has to be asked."""
        if not operation.model:
            sink(ResponsePart(answer=self.server()))
            return
        is_loading = False
        try:
            loaded = self._registry.serving(operation.model, operation.version)
            why = self._registry.lacking(loaded)
        except ServeError as error:
            why = error.message
            is_loading = error.metadata.get("state") == VersionState.LOADING.value
        checks = () if why else loaded.checks()
        if not checks:
            sink(ResponsePart(answer=Readiness(not why, why, is_loading)))
            return
        _Asked(loaded.spec.name, checks, sink, self._clock)

    @property
    def state(self) -> ServerState:
        """Return where the server is in its life."""
        return self._state()

    def server(self) -> Readiness:
        """Say whether the whole server is ready, and if not, why."""
        state = self.state
        if state is not ServerState.SERVING:
            return Readiness(False, f"The server is {state.value}.", is_passing=True)
        if self._is_lenient:
            return Readiness(True)
        for row in self._registry.listing().versions:
            if row.state in (VersionState.FAILED, VersionState.LOADING):
                why = f"Model '{row.model}' is {row.state.value}. {row.reason}"
                return Readiness(False, why, is_passing=row.state is VersionState.LOADING)
        return Readiness(True)


class _Asked:
    """All instances of a model, for one who wants to know."""

    def __init__(self, model: str, checks: Sequence[Check], sink: Sink, clock: Clock) -> None:
        self._model = model
        self._count = len(checks)
        self._sink: Sink | None = sink
        self._timer = clock.call_at(clock.now() + CHECK_SECONDS, self._late)
        self._leave: list[Callable[[], None]] = []
        for check in checks:
            self._leave.append(check(self._told))

    def _told(self, why: str) -> None:
        """Ask one of them: nothing, or why it is not ready."""
        self._count -= 1
        if why or not self._count:
            self._answer(why)

    def _late(self) -> None:
        self._answer(
            f"Model '{self._model}' did not say within {CHECK_SECONDS:g} s whether it is ready: its method is_ready "
            "has not returned. Let it look at what it knows already, and wait for nothing."
        )

    def _answer(self, why: str) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            self._timer.cancel()
            for leave in self._leave:
                leave()
            sink(ResponsePart(answer=Readiness(not why, why)))
