"""Has a server load its models anew as their files are saved.

The system says what changed, where watchfiles is installed; else a timer asks.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence, Set
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trivium.core.server import Server
from trivium.types.sources import Place

if TYPE_CHECKING:
    from watchfiles import Change

log = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two looks, where the system does not say what changed."""

QUIET = 100
"""Milliseconds without a further change after which a save counts as done: editors write, rename and touch."""

LONGEST = 1000
"""Milliseconds for which changes that do not end are gathered at most."""


def files_of(places: Iterable[Place]) -> list[Path]:
    """Return what is followed of places: each path, or the file before the class of a handler; of what is fetched
    nothing.
    """
    paths = [
        place if isinstance(place, Path) else Path(place.uri)
        for place in places
        if isinstance(place, Path) or not place.is_remote
    ]
    files = [
        path if path.exists() else path.with_name(path.name.rpartition(":")[0] or path.name) for path in paths
    ]
    return [file for file in files if file.exists()]


class FileFollower:
    """Follows the files of the places that a server began with, from the moment at which it is up.

    A folder is followed with all that is below it. Its parent is, too, for the place alone: a file is often saved by
    renaming another to its name, which the file itself does not notice.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = [place.absolute() for place in places]
        self._names = {str(place) for place in self._places}
        self._up, self._changed = asyncio.Event(), asyncio.Event()
        self._paths: set[str] = set()

    def begin(self) -> None:
        """Follow them from now on; what was saved while the server loaded is seen at once."""
        self._up.set()

    @asynccontextmanager
    async def beside(self, server: Server) -> AsyncIterator[None]:
        """Follow them while this context lasts."""
        task = asyncio.create_task(self._follow(server))
        try:
            yield
        finally:
            await _ended(task)

    async def _follow(self, server: Server) -> None:
        await self._up.wait()
        if find_spec("watchfiles") is None:
            log.info(
                "files are looked at every %g s; `pip install trivium[reload]` has them noticed at once",
                EVERY,
            )
            while True:
                await _look(server, frozenset())
                await asyncio.sleep(EVERY)
        watches = asyncio.create_task(self._watch())
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                paths, self._paths = self._paths, set()
                await _look(server, paths)
        finally:
            await _ended(watches)

    async def _watch(self) -> None:
        """Note what changes; a place that is there anew is watched anew with all that is below it."""
        below = asyncio.create_task(self._watch_below())
        parents = sorted({place.parent for place in self._places})
        try:
            async for paths in _changes(parents, self._is_place, is_deep=False):
                self._note(paths)
                await _ended(below)
                below = asyncio.create_task(self._watch_below())
        finally:
            await _ended(below)

    async def _watch_below(self) -> None:
        from watchfiles import DefaultFilter

        async for paths in _changes([place for place in self._places if place.is_dir()], DefaultFilter()):
            self._note(paths)

    def _note(self, paths: Set[str]) -> None:
        self._paths |= paths
        self._changed.set()

    def _is_place(self, change: "Change", path: str) -> bool:
        return path in self._names


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _changes(
    places: Sequence[Path], wanted: "Callable[[Change, str], bool]", is_deep: bool = True
) -> AsyncIterator[Set[str]]:
    """Yield the paths that change together, in these places or, if `is_deep`, below them. The first set is empty: the
    places are watched from now on, and what changed before has to be looked for.
    """
    from watchfiles import awatch

    if not places:
        return
    watched = awatch(
        *places,
        watch_filter=wanted,
        step=QUIET,
        debounce=LONGEST,
        rust_timeout=LONGEST,
        yield_on_timeout=True,
        recursive=is_deep,
        ignore_permission_denied=True,
    )
    is_first = True
    async for changes in watched:
        if changes or is_first:
            yield {path for _, path in changes}
        is_first = False


async def _look(server: Server, paths: Set[str]) -> None:
    """Have models loaded whose files changed; those that failed are tried again where anything did."""
    try:
        await asyncio.to_thread(_forget_compiled, paths)
        await server.poll(retries=bool(paths))
    except Exception:
        log.exception("changed files could not be followed; they are looked at again at the next save")


def _forget_compiled(paths: Iterable[str]) -> None:
    """Remove what Python has compiled of these modules: it knows a file by its second and its size, and somebody who
    tries things saves the same size twice a second.
    """
    for path in map(Path, paths):
        if path.suffix == ".py":
            for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
                compiled.unlink(missing_ok=True)
