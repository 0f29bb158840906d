"""Takes copies of how the whole server does at one moment, from what there is: nothing is counted for them.

Used on the loop only.
"""

import os
from collections.abc import Callable, Mapping

from trivium.core.models.readiness import ReadyAnswers
from trivium.core.models.registry import Registry
from trivium.machine.use import resident_bytes
from trivium.types.operations import Snapshot


class Snapshots:
    """Takes them, from here on. `now` is the core's clock, `epoch` tells seconds of the Unix epoch."""

    def __init__(
        self,
        registry: Registry,
        readiness: ReadyAnswers,
        now: Callable[[], float],
        epoch: Callable[[], float],
    ) -> None:
        self._registry = registry
        self._readiness = readiness
        self._now = now
        self._epoch = epoch
        self._started = epoch()

    def take(self) -> Snapshot:
        """Take one."""
        registry = self._registry
        return Snapshot(
            self._epoch(),
            self._now(),
            self._started,
            self._readiness.state,
            self._readiness.server(),
            registry.listing(),
            registry.report(),
            tuple(record.loaded.status.load() for record in registry.records() if record.loaded is not None),
        )

    def memory(self) -> Mapping[str, int]:
        """Return the resident bytes of the server, under an empty name, and of the workers of each model."""
        found = {"": resident_bytes(os.getpid()) or 0}
        for record in self._registry.records():
            if record.loaded is not None and (resident := record.loaded.status.resident_bytes()):
                found[record.name] = found.get(record.name, 0) + resident
        return found
