"""Lays out the files that go to the nodes of a cluster, and tells models apart that are applications of their own.

Ray packs a working_dir by the hash of its content and brings it to each node once; what that folder holds is laid out
here, by links.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from trivium.model_catalogue import MODELS
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import SupportsPolling
from trivium.types.sources import ModelSource, Place
from trivium.types.spoken import spoken


def laid_out(places: Sequence[Place], folder: Path, prefix: str = "") -> list[str]:
    """Link the paths among places into a folder, below names of their own that begin with `prefix`; return all as a
    process finds them whose working directory it is. With a file of Python goes its folder, since it imports what lies
    beside it.
    """
    return [_laid_out(place, folder / f"{prefix}{number}") for number, place in enumerate(places)]


def _laid_out(place: Place, into: Path) -> str:
    if isinstance(place, ModelSource):
        return place.uri
    path = Path(os.path.abspath(place))
    file, colon, inside = path.name.partition(":")
    into.mkdir()
    if file.endswith(".py"):
        (into / "files").symlink_to(path.parent, target_is_directory=True)
        return f"{into.name}/files/{file}{colon}{inside}"
    (into / path.name).symlink_to(path)
    return f"{into.name}/{path.name}"


def spread(places: Sequence[Place]) -> dict[str, Place]:
    """Return the places of single applications by their names: each model of a repository of folders, any other place
    by its own name. Raises INVALID for two of one name.
    """
    found: dict[str, Place] = {}
    for name, place in (each for one in places for each in _models(one).items()):
        if name in found:
            raise ServeError(
                Code.INVALID,
                spoken(
                    f"With --spread models {found[name]} and {place} would both be the application {name!r}. Rename "
                    "one of them, or serve them in one application, with --spread all."
                ),
            )
        found[name] = place
    return found


def _models(place: Place) -> dict[str, Place]:
    if isinstance(place, ModelSource):
        return {place.name or place.uri.partition("?")[0].rstrip("/").rpartition("/")[2]: place}
    if place.is_dir():
        form = next((form for form in MODELS.formats if form.claims(place)), None)
        if form is not None and isinstance(form, SupportsPolling):
            return dict(form.places(place))
    path = Path(os.path.abspath(place))
    return {path.name.rpartition(":")[2] if ".py:" in path.name else path.stem: place}
