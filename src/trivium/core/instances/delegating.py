"""An instance that wraps another one, for rooms that change what goes in or comes out and nothing else."""

from collections.abc import Collection

from trivium.types.interfaces import Check, Instance, Port
from trivium.types.running import Batch, ItemId


class DelegatingInstance:
    """Passes every call of the instance contract on to another instance; subclasses change some of them."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    @property
    def threads(self) -> Collection[int]:
        """See `Instance`."""
        return self._instance.threads

    @property
    def in_flight(self) -> int:
        """See `Instance`."""
        return self._instance.in_flight

    @property
    def check(self) -> Check | None:
        """See `Instance`."""
        return self._instance.check

    def attach(self, port: Port) -> None:
        """See `Instance`."""
        self._instance.attach(port)

    def start(self, batch: Batch) -> None:
        """See `Instance`."""
        self._instance.start(batch)

    def cancel(self, item: ItemId) -> None:
        """See `Instance`."""
        self._instance.cancel(item)

    def hold(self, item: ItemId) -> None:
        """See `Instance`."""
        self._instance.hold(item)

    def resume(self, item: ItemId) -> None:
        """See `Instance`."""
        self._instance.resume(item)

    @property
    def running_since(self) -> float | None:
        """See `Instance`."""
        return self._instance.running_since

    def interrupt(self, why: str) -> Collection[ItemId]:
        """See `Instance`."""
        return self._instance.interrupt(why)

    def abandon(self, why: str) -> None:
        """See `Instance`."""
        self._instance.abandon(why)

    def close(self) -> None:
        """See `Instance`."""
        self._instance.close()
