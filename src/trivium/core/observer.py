"""The observer of a server that nobody observes."""

from contextlib import AbstractContextManager, nullcontext

from trivium.types.interfaces import RunObserver, RunSource


class NoObserver:
    """Implements `RunObserver`, and does nothing."""

    def ran(self, source: RunSource, mean_run: float) -> None:
        pass

    def opening(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass


NO_OBSERVER: RunObserver = NoObserver()
