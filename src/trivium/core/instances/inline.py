"""An instance that runs on the loop, at once: for built-in work of microseconds, and in tests."""

from collections.abc import Collection

from trivium.core.execution import execute
from trivium.types.interfaces import Check, Port, Runner
from trivium.types.running import Batch, Credit, ItemId


class InlineInstance:
    """Runs what is started before `start` returns; the events still go through the port."""

    threads: Collection[int] = ()
    in_flight = 0
    check: Check | None = None
    running_since: float | None = None

    def __init__(self, runner: Runner, port: Port) -> None:
        self._runner = runner
        self._port = port

    def attach(self, port: Port) -> None:
        """See `Instance`."""
        self._port = port

    def start(self, batch: Batch) -> None:
        """Run it now."""
        self._port.push((execute(self._runner, batch), Credit(1)))

    def cancel(self, item: ItemId) -> None:
        """Nothing is ever in work between two calls."""

    def hold(self, item: ItemId) -> None:
        """It answers once."""

    def resume(self, item: ItemId) -> None:
        """It was not held."""

    def interrupt(self, why: str) -> Collection[ItemId]:
        """A run ends before anybody could interrupt it."""
        return ()

    def abandon(self, why: str) -> None:
        """It is never interrupted."""

    def close(self) -> None:
        """Free the model."""
        self._runner.close()
