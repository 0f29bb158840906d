"""Exchanges the places that a server reads its models from, while it serves: all of the new ones, or none.

What differs is found by the look at files, as when they change on disk; what is new is loaded before anything goes.
"""

import asyncio
import shutil
from collections.abc import Collection, Coroutine, Sequence
from pathlib import Path

from trivium.core.models.lifecycle import Lifecycle
from trivium.core.models.polling import RepositoryPoller
from trivium.core.models.registry import Registry
from trivium.core.models.repository import Repository
from trivium.core.models.sources import Source, fetched_for
from trivium.types.errors import Code, ServeError
from trivium.types.sources import Place


class PlaceExchange:
    """One per server whose models follow their files; used on the loop only."""

    def __init__(
        self, registry: Registry, lifecycle: Lifecycle, repository: Repository, polling: RepositoryPoller
    ) -> None:
        self._registry = registry
        self._lifecycle = lifecycle
        self._repository = repository
        self._polling = polling
        self._turn = asyncio.Lock()

    async def exchange(self, places: Sequence[Place]) -> Coroutine[None, None, None] | None:
        """Serve what these places hold, in place of those that the server was given; what clients registered stays.
        What is new or differs is loaded first, then what is gone is unloaded, and what is in flight finishes. Returns
        what removes the files that nobody needs any more once nothing in flight does: the caller runs it, if there is
        any. Raises NOT_FOUND, and LOAD_FAILED with all that cannot be loaded; then all is served as before.
        """
        async with self._turn:
            names = {record.name for record in self._registry.records()}
            before = [each for each in self._repository.sources if not each.is_registered]
            now = await self._found(places, before)
            self._read_from_now_on(now)
            if failed := await self._polling.poll(is_whole=True):
                self._read_from_now_on(before)
                await self._polling.poll()
            gone = [each for each in (now if failed else before) if each not in self._repository.sources]
            folders = fetched_for(gone)
        if failed:
            await self._remove(names, folders)
            words = " ".join(f"Model '{name}': {reason}" for name, reason in failed.items())
            raise ServeError(
                Code.LOAD_FAILED, f"What was served before is served still, since not all loads. {words}"
            )
        return self._remove(names, folders) if folders else None

    async def _found(self, places: Sequence[Place], before: Sequence[Source]) -> list[Source]:
        """Return the sources that places are; what is there already is not fetched anew."""
        found: list[Source] = []
        try:
            for place in places:
                known = next((each for each in before if each.key == place), None)
                found.append(known or await self._repository.found(place))
        except BaseException:
            await self._remove((), fetched_for(each for each in found if each not in before))
            raise
        return found

    def _read_from_now_on(self, sources: Sequence[Source]) -> None:
        registered = [each for each in self._repository.sources if each.is_registered]
        self._repository.sources = [*sources, *registered]

    async def _remove(self, names: Collection[str], folders: Sequence[Path]) -> None:
        """Remove folders once nothing that was in flight of these models needs them."""
        if folders:
            await asyncio.gather(*map(self._lifecycle.drained, names))
        for folder in folders:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
