"""Which scheduler serves a model, by its spec."""

from trivium.core.instances.pool import Pool
from trivium.core.queueing.queue import RequestQueue
from trivium.core.schedulers.dynamic import DynamicScheduler, Reject, Start
from trivium.core.schedulers.policy import BatchingSettings
from trivium.core.schedulers.sequence.scheduler import SequenceScheduler
from trivium.types.interfaces import Clock
from trivium.types.schedules import Sequence
from trivium.types.spec import ModelSpec


def scheduler_for(
    spec: ModelSpec, queue: RequestQueue, pool: Pool, clock: Clock, start: Start, reject: Reject
) -> DynamicScheduler | SequenceScheduler:
    """The sequence scheduler where the spec asks for it; for all others, graphs too, the dynamic one."""
    if isinstance(spec.scheduling, Sequence):
        return SequenceScheduler(spec, queue, pool, clock, start, reject)
    return DynamicScheduler(queue, BatchingSettings.of(spec.batching, spec.dynamic), clock, start, reject)
