"""The paths that a server was given, and what is in them: which format reads each, who holds which model."""

import asyncio
import stat
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from trivium.types.errors import Code, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.interfaces import Format
from trivium.types.spec import Defaults, ModelSpec, Reading, Unreadable


@dataclass(frozen=True, slots=True)
class Source:
    """One path with the format that claims it."""

    path: Path
    form: Format


@dataclass(frozen=True, slots=True)
class Found:
    """One model as read: all its versions, and the format to finish them by."""

    name: str
    specs: tuple[ModelSpec, ...]
    form: Format


class Repository:
    """Reads its sources anew each time it is asked."""

    def __init__(self, formats: Sequence[Format], defaults: Defaults, executor: Executor) -> None:
        self._formats = formats
        self._defaults = defaults
        self._executor = executor
        self._sources: list[Source] = []

    def add(self, path: Path) -> None:
        """Raises NOT_FOUND for a path that cannot be opened or that no format knows."""
        form = next((form for form in self._formats if form.claims(path)), None)
        if form is None:
            raise ServeError(Code.NOT_FOUND, self._unclaimed(path))
        self._sources.append(Source(path, form))

    async def read(self) -> tuple[list[Found], list[Unreadable]]:
        """Every model of every source; one whose name another source has already is unreadable."""
        found: dict[str, Found] = {}
        broken: list[Unreadable] = []
        for source in self._sources:
            reading = await self._read(source)
            broken.extend(reading.unreadable)
            for name in dict.fromkeys(spec.name for spec in reading.specs):
                specs = tuple(spec for spec in reading.specs if spec.name == name)
                if name in found:
                    broken.append(_twice(specs[0], found[name].specs[0]))
                else:
                    found[name] = Found(name, specs, source.form)
        return list(found.values()), broken

    async def _read(self, source: Source) -> Reading:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, source.form.read, source.path, self._defaults)

    def _unclaimed(self, path: Path) -> str:
        expected = "; ".join(f"{form.name}: {form.expects}" for form in self._formats)
        inside = ""
        try:
            if stat.S_ISDIR(path.stat().st_mode):
                entries = sorted(entry.name for entry in path.iterdir())[:10]
                inside = f" It holds: {', '.join(entries)}." if entries else " The folder is empty."
        except OSError as error:
            return f"{error.strerror}: {path}."
        return f"Nothing to serve was found in {path}.{inside} Known formats are: {expected}."


def _twice(spec: ModelSpec, first: ModelSpec) -> Unreadable:
    finding = Finding(
        Severity.ERROR,
        str(spec.root),
        None,
        "name",
        f"a second model named '{spec.name}'",
        "names that are unique over all paths",
        f"The first is in {first.root}; rename one of them or serve it elsewhere.",
    )
    return Unreadable(spec.name, spec.root, (finding,))
