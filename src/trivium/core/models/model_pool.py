"""Chooses the pool of a model's instances, and who stands between the two."""

from collections.abc import Sequence as ItemList
from typing import Protocol

from trivium.core.instances.mailbox import Mailbox
from trivium.core.instances.pool import Owner, Pool
from trivium.core.instances.rate_limited_pool import LimitedPool, needs_of
from trivium.core.instances.rate_limiter import RateLimitedModel
from trivium.core.models.model_context import ModelContext
from trivium.core.schedulers.sequence.iterations import Iterated, Iterations
from trivium.core.schedulers.sequence.unannounced import Endings
from trivium.types.interfaces import Clock
from trivium.types.schedules import Sequence
from trivium.types.spec import ModelSpec


class PooledModel(Iterated, Protocol):
    """The model version that a pool is made for."""

    spec: ModelSpec

    def end_sequences(self, sequences: ItemList[str]) -> None:
        """Hear that an answer says that these are over."""
        ...

    def waiting(self) -> int:
        """Count the items that wait in the queue."""
        ...

    def look_again(self) -> None:
        """Hear that an instance may run now which had to wait for what others had."""
        ...

    def awaited(self) -> None:
        """Hear that another model waits while an instance of this one runs."""
        ...


def make_pool(
    model: PooledModel, mailbox: Mailbox, clock: Clock, context: ModelContext
) -> tuple[Pool, RateLimitedModel | None]:
    """Return the pool, limited where there is a limiter and the instances need anything. Raises LOAD_FAILED where one
    of them could never run.
    """
    spec, rules = model.spec, model.spec.scheduling
    owner: Owner = model
    if isinstance(rules, Sequence) and rules.is_iterative:
        owner = Iterations(model)
    elif isinstance(rules, Sequence) and rules.unannounced is not None:
        owner = Endings(model, rules.unannounced.properties.ends, model.end_sequences)
    limiter, now = context.limiter, clock.now
    if limiter is None or not any(group.claim.needs for group in spec.groups):
        return Pool(owner, mailbox, spec.batching.merge, now, context.observer), None
    needs = [amounts for group in spec.groups for amounts in needs_of(group)]
    member = limiter.join(needs, model.waiting, model.look_again, model.awaited)
    return LimitedPool(owner, mailbox, now, member, isinstance(rules, Sequence), context.observer), member
