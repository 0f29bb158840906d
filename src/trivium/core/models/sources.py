"""The sources of a server: what each of its paths is read as, and the members that graphs bring with them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from trivium.core.models.elsewhere import Elsewhere
from trivium.types.interfaces import Format
from trivium.types.sources import ModelSource


@dataclass(frozen=True, slots=True)
class Source:
    """One path with the format that claims it. `is_registered`: it was while the server ran. What was fetched lies
    below the folder `fetched`, with all that is made of it. `is_member`: graphs bring it, and it goes with the last.
    """

    path: Path
    form: Format
    asked: ModelSource | None = None
    is_registered: bool = False
    fetched: Path | None = None
    is_member: bool = False
    elsewhere: Elsewhere = field(default_factory=Elsewhere, compare=False)
    """Weights that its models name by URI."""

    @property
    def key(self) -> ModelSource | Path:
        """Return what tells it from others."""
        return self.path if self.asked is None else self.asked


def fetched_for(sources: Iterable[Source]) -> list[Path]:
    """Return the folders into which something was fetched for these sources."""
    return [
        folder
        for one in sources
        for folder in (*([] if one.fetched is None else [one.fetched]), *one.elsewhere.folders)
    ]


@dataclass(slots=True)
class _Brought:
    source: Source
    owners: list[ModelSource | Path] = field(default_factory=list)


class MemberSources:
    """Keeps the sources that graphs bring with them, each once, and by whom it is brought."""

    def __init__(self) -> None:
        self._all: list[_Brought] = []

    def find(self, asked: ModelSource, owner: Source) -> Source | None:
        """Return the source that is there for this wish, which `owner` brings from now on as well."""
        for one in self._all:
            if one.source.asked == asked:
                if owner.key not in one.owners:
                    one.owners.append(owner.key)
                return one.source
        return None

    def add(self, source: Source, owner: Source) -> None:
        """Keep a source that nobody has brought before."""
        self._all.append(_Brought(source, [owner.key]))

    def release(self, owner: ModelSource | Path) -> list[Source]:
        """Return the sources that nobody brings any more once this owner does not, and those that they brought."""
        gone = []
        for one in self._all:
            if owner in one.owners:
                one.owners.remove(owner)
                if not one.owners:
                    gone.append(one.source)
        self._all = [one for one in self._all if one.owners]
        return [*gone, *(source for one in gone for source in self.release(one.key))]
