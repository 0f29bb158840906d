"""Looks at the folders of models again and again, in a thread, and hands on what has changed since the last look.

What that means the policy decides; carrying it out is the business of `follow`.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from trivium.core.models.lifecycle import Lifecycle
from trivium.core.models.polling_policy import PollingDecision, Snapshot, decide, merged, with_dependents
from trivium.core.models.registry import Registry
from trivium.core.models.repository import READ_SECONDS, Repository, loading_order
from trivium.core.models.sources import Source
from trivium.types.errors import ConfigError, ServeError, anew
from trivium.types.interfaces import SupportsPolling
from trivium.types.spec import Defaults, InvalidModel
from trivium.types.state import VersionState

log = logging.getLogger(__name__)

NOT_FOLLOWED = "the files of model '%s' changed, but it cannot be loaded as they are now: %s"

_NOT_A_CHANGE = "__pycache__"
"""Folders of this name appear when a model is loaded."""


class RepositoryPoller:
    """One per server; used on the loop only. `sources` says what is looked at. `seconds` lie between the end of a look,
    with all that follows from it, and the next one. `unsettled` names models to be tried again.
    """

    def __init__(
        self,
        sources: Callable[[], Sequence[Source]],
        defaults: Defaults,
        seconds: float,
        follow: Callable[[PollingDecision, bool], Awaitable[Mapping[str, str]]],
        unsettled: Callable[[], frozenset[str]],
    ) -> None:
        self._sources = sources
        self._defaults = defaults
        self._seconds = seconds
        self._follow = follow
        self._unsettled = unsettled
        self._seen: dict[str, Snapshot] = {}
        self._stamps: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def look(self) -> None:
        """The first look, before anything is loaded: what changes from now on counts."""
        self._seen = await asyncio.to_thread(self._look, list(self._sources()))

    def start(self) -> None:
        """Look again from now on."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Look no more; a load in work is given up."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def poll(self, retries: bool = True, *, is_whole: bool = False) -> Mapping[str, str]:
        """One look, and what follows from it; behind one that is under way. With `retries` what failed counts as
        changed; with `is_whole` nothing is unloaded where something fails. Returns what could not be loaded, with the
        reasons.
        """
        async with self._turn:
            before = self._seen
            async with asyncio.timeout(READ_SECONDS):
                now = self._seen = await asyncio.to_thread(self._look, list(self._sources()))
            unsettled = self._unsettled() if retries else frozenset()
            decision = decide(merged(before), merged(now), unsettled)
            return {} if decision.is_empty else await self._follow(decision, is_whole)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            try:
                await self.poll()
            except Exception:
                log.exception("looking for changed models failed; the next look is in %g s", self._seconds)

    def _look(self, sources: Sequence[Source]) -> dict[str, Snapshot]:
        return {str(source.path): self._picture(source) for source in sources}

    def _picture(self, source: Source) -> Snapshot:
        place = str(source.path)
        try:
            if isinstance(source.form, SupportsPolling):
                places = source.form.places(source.path)
                return {name: fingerprint(path) for name, path in places.items()}
            whole = fingerprint(source.path)
        except OSError as error:  # a disk that is gone for a moment is no order to unload everything
            log.warning("%s cannot be looked at (%s): its models stay as they are", source.path, error)
            return self._seen.get(place, {})
        if place in self._seen and self._stamps.get(place) == whole:
            return self._seen[place]
        self._stamps[place] = whole
        reading = source.form.read(source.path, self._defaults)
        names = {spec.name for spec in reading.specs} | {model.name for model in reading.unreadable}
        return dict.fromkeys(sorted(names), whole)


def fingerprint(path: Path) -> str:
    """Fingerprint a file or folder: the names of all that is in it, with times and sizes of files. Follows links, each
    folder once. Raises OSError where `path` itself cannot be looked at.
    """
    found = blake2b(digest_size=16)
    found.update(_line(path.name, path.stat()))
    if path.is_dir():
        seen: set[tuple[int, int]] = set()
        os.scandir(path).close()  # `walk` would pass over what cannot be opened
        for folder, folders, files in os.walk(path, followlinks=True):
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in seen:
                folders.clear()
                continue
            seen.add((status.st_dev, status.st_ino))
            folders[:] = sorted(name for name in folders if name != _NOT_A_CHANGE)
            found.update(f"{os.path.relpath(folder, path)}/\0".encode("utf-8", "surrogateescape"))
            for name in sorted(files):
                try:
                    found.update(_line(name, os.stat(os.path.join(folder, name))))
                except OSError:
                    found.update(f"{name} ?\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def _line(name: str, status: os.stat_result) -> bytes:
    is_file = status.st_mode & 0o170000 == 0o100000
    told = f"{status.st_mtime_ns} {status.st_size} {status.st_ino}" if is_file else "folder"
    return f"{name} {told}\0".encode("utf-8", "surrogateescape")


class RepositoryReconciler:
    """One per server whose models follow their folders, looked at every `seconds`; used on the loop only."""

    def __init__(
        self,
        registry: Registry,
        lifecycle: Lifecycle,
        repository: Repository,
        seconds: float,
    ) -> None:
        self._registry = registry
        self._lifecycle = lifecycle
        self._repository = repository
        self._failed: dict[str, str] = {}
        self.polling = RepositoryPoller(
            lambda: repository.sources, repository.defaults, seconds, self.follow, self._unsettled
        )

    async def follow(self, decision: PollingDecision, is_whole: bool) -> Mapping[str, str]:
        """Load first, then unload, with `is_whole` only if nothing failed. Returns what did, with the reasons."""
        found, broken = await self._repository.read()
        wanted = with_dependents(decision.load, {one.name: one.needs for one in found})
        told, self._failed = self._failed, {}
        refused = {each.name: self._refuse(each) for each in broken if each.name in wanted}
        for wave in loading_order([one for one in found if one.name in wanted]):
            loads = (self._lifecycle.load(one) for one in wave)
            results = await asyncio.gather(*loads, return_exceptions=True)
            for one, result in zip(wave, results, strict=True):
                if isinstance(result, ServeError):
                    self._failed[one.name] = result.message
                    if told.get(one.name) != result.message:  # it is tried again at every look
                        log.warning(NOT_FOLLOWED, one.name, result.message)
                elif result is not None:
                    raise anew(result)
        failed = {**refused, **self._failed}
        for name in decision.unload if not (failed and is_whole) else ():
            await self._lifecycle.remove(name)
        return failed

    def _refuse(self, unreadable: InvalidModel) -> str:
        """Return why it is not loaded. A new folder that cannot be read becomes known, and no more: it takes nothing
        from the server's readiness.
        """
        reason = ConfigError(unreadable.findings).message
        log.warning(NOT_FOLLOWED, unreadable.name, reason)
        if not self._registry.records(unreadable.name):
            self._registry.record(unreadable.name, "").reason = reason
        return reason

    def _unsettled(self) -> frozenset[str]:
        """Models whose last load failed though they could be read: what they lacked may be there now."""
        records = self._registry.records()
        lost = {row.name for row in records if row.state is VersionState.FAILED and row.version}
        return frozenset(lost | self._failed.keys())
