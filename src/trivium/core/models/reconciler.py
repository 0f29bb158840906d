"""Carries out what folders say: loads what is new or changed in them, unloads what has vanished, without a gap.

What changed the polling tells; what a load means the life cycle decides. What fails is logged and tried again at each
look, and what served before serves on.
"""

import asyncio
import logging
from concurrent.futures import Executor

from trivium.core.models.lifecycle import Lifecycle
from trivium.core.models.polling import RepositoryPoller
from trivium.core.models.polling_policy import PollingDecision, with_dependents
from trivium.core.models.registry import Registry
from trivium.core.models.repository import Repository, loading_order
from trivium.types.errors import ConfigError, ServeError
from trivium.types.spec import InvalidModel
from trivium.types.state import VersionState

log = logging.getLogger(__name__)

NOT_FOLLOWED = "the files of model '%s' changed, but it cannot be loaded as they are now: %s"


class RepositoryReconciler:
    """One per server whose models follow their folders, looked at every `seconds`; used on the loop only."""

    def __init__(
        self,
        registry: Registry,
        lifecycle: Lifecycle,
        repository: Repository,
        executor: Executor,
        seconds: float,
    ) -> None:
        self._registry = registry
        self._lifecycle = lifecycle
        self._repository = repository
        self._executor = executor
        self._failed: set[str] = set()
        self.polling = RepositoryPoller(
            repository.sources, repository.defaults, seconds, self.follow, self._unsettled
        )

    async def follow(self, decision: PollingDecision) -> None:
        """Load first, then unload."""
        found, broken = await self._repository.read()
        wanted = with_dependents(decision.load, {one.name: one.needs for one in found})
        self._failed.clear()
        for unreadable in broken:
            if unreadable.name in wanted:
                self._refuse(unreadable)
        for wave in loading_order([one for one in found if one.name in wanted]):
            loads = (self._lifecycle.load(one, self._executor) for one in wave)
            results = await asyncio.gather(*loads, return_exceptions=True)
            for one, result in zip(wave, results, strict=True):
                if isinstance(result, ServeError):
                    log.warning(NOT_FOLLOWED, one.name, result.message)
                    self._failed.add(one.name)
                elif result is not None:
                    raise result
        for name in decision.unload:
            await self._lifecycle.remove(name)

    def _refuse(self, unreadable: InvalidModel) -> None:
        """A new folder that cannot be read becomes known, and no more: it takes nothing from the server's readiness."""
        reason = ConfigError(unreadable.findings).message
        log.warning(NOT_FOLLOWED, unreadable.name, reason)
        if not self._registry.records(unreadable.name):
            self._registry.record(unreadable.name, "").reason = reason

    def _unsettled(self) -> frozenset[str]:
        """Models whose last load failed though they could be read: what they lacked may be there now."""
        records = self._registry.records()
        lost = {row.name for row in records if row.state is VersionState.FAILED and row.version}
        return frozenset(lost | self._failed)
