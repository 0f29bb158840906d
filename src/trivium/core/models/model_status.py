"""Tells how the instances of one version are, for whoever looks: nothing here changes anything."""

import time
from collections.abc import Collection, Sequence

import msgspec

from trivium.core.instances.pool import Pool
from trivium.core.instances.scaler import Scaler
from trivium.types.interfaces import Clock
from trivium.types.observing import InstanceDeath, VersionLoad
from trivium.types.operations import InstanceStatus, ModelDescription
from trivium.types.running import Dead
from trivium.types.spec import ModelSpec, StandingCall


class ModelStatus:
    """Looks at the pool and the scaler of one version. Used on the loop only."""

    def __init__(self, spec: ModelSpec, pool: Pool, scaler: Scaler, clock: Clock) -> None:
        self._spec = spec
        self._pool = pool
        self._scaler = scaler
        self._clock = clock

    @property
    def deaths(self) -> Collection[InstanceDeath]:
        """Tell of the last instances that died."""
        return self._scaler.deaths

    def death(self, instance: str, fate: Dead) -> InstanceDeath:
        """Return what is known of an instance that has just been lost."""
        spec = self._spec
        return InstanceDeath(time.time(), spec.name, spec.version, instance, fate.cause, fate.last_lines)

    def load(self) -> VersionLoad:
        """Count its instances, and the items that they have in work."""
        size, opening, spec = self._pool.size, self._scaler.opening(), self._spec
        least = sum(group.minimum for group in self._scaler.groups())
        lack = max(least - size - opening, 0)
        pool = self._pool
        busy = sum(bool(slot.held) for slot in pool.slots().values())
        named = spec.name, spec.version, spec.engine
        return VersionLoad(*named, size, opening, lack, pool.running, busy, pool.places, pool.used)

    @property
    def has_workers(self) -> bool:
        """Are instances of it worker processes, now or once they are open?"""
        return self._scaler.has_workers

    def processes(self) -> tuple[tuple[str, int], ...]:
        """Return the names of its instances that are worker processes, each with the process's number."""
        slots = self._pool.slots().values()
        return tuple((slot.placement.name, slot.process) for slot in slots if slot.process is not None)

    def instances(self) -> tuple[InstanceStatus, ...]:
        """Describe those that are open."""
        now = self._clock.now()
        return tuple(slot.status(number, now) for number, slot in self._pool.slots().items())

    def resident_bytes(self) -> int:
        """Return the resident memory of its worker processes, in bytes."""
        return sum(status.memory or 0 for status in self.instances())

    def described(
        self, description: ModelDescription, queued: int, standing: Sequence[StandingCall]
    ) -> ModelDescription:
        """Add what is known of its instances, and of its queue."""
        return msgspec.structs.replace(
            description,
            groups=self._scaler.groups(),
            instances=self.instances(),
            opening=self._scaler.opening(),
            queued=queued,
            standing=tuple(standing),
        )
