"""Weights that a model's own files name, and that lie elsewhere: a format asks for them, and is asked again once they
are here.
"""

from pathlib import Path

from trivium.types.errors import ServeError, anew
from trivium.types.sources import ModelSource


class Elsewhere:
    """Keeps what the models of one source name. The thread that reads looks into it; it is filled between readings."""

    def __init__(self) -> None:
        self.lacking: list[ModelSource] = []
        """What a reading has asked for in vain, in its order."""

        self.folders: list[Path] = []
        """The folders that hold what was fetched."""

        self._places: dict[str, Path] = {}
        self._refusals: dict[str, ServeError] = {}

    def find(self, uri: str, with_code: bool) -> Path | None:
        """Return where it is by now; None where it has not been fetched, which is tried after this reading. Raises why
        it could not be.
        """
        if uri in self._refusals:
            raise anew(self._refusals[uri])
        if uri not in self._places and all(one.uri != uri for one in self.lacking):
            self.lacking.append(ModelSource(uri, with_code=with_code))
        return self._places.get(uri)

    def add(self, uri: str, place: Path, folder: Path) -> None:
        """Have it be here from now on."""
        self._places[uri] = place
        self.folders.append(folder)

    def refuse(self, uri: str, error: ServeError) -> None:
        """Have the next reading say why it is not here."""
        self._refusals[uri] = error

    def begin(self) -> None:
        """Begin to read anew: what could not be fetched is tried again."""
        self.lacking = []
        self._refusals = {}
