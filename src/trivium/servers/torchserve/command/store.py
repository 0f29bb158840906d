"""The models that a TorchServe starts with: what a list of them names in the model store, in other folders, elsewhere.

Looks at names in the store; reads no model. What cannot be had is a line of the log, and never keeps a server from
starting. Source: spec sheet `torchserve`, sections 1 and 2.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from trivium.codecs.path_segments import decoded
from trivium.core.server import Server
from trivium.examination import Examination
from trivium.fetchers.policy import read_places
from trivium.servers.torchserve.words.allowed_urls import AllowedUrls
from trivium.servers.torchserve.words.start_models import (
    ALL,
    ARCHIVES,
    StartModel,
    read_snapshot,
    read_start_models,
)
from trivium.settings.sources import Sources
from trivium.types.errors import ServeError, said_by
from trivium.types.sources import ModelSource

FETCHED = ("http", "https", "s3")
"""Schemes of URLs that models are fetched from."""


@dataclass(frozen=True, slots=True)
class StartupItem:
    """A model to start with, as `item` of a list names it; without `path` it is fetched."""

    item: str
    path: Path | None
    source: ModelSource

    def add_to(self, server: Server | Examination) -> None:
        """Have a server serve it, or a check read it. Raises NOT_FOUND, as `Server.add`."""
        if self.path is None:
            server.add(self.source)
        else:
            server.add(self.path, asked=self.source)


@dataclass(slots=True)
class StartupList:
    """The models to start with, those that cannot be had (the word of the list, and why), and which versions of theirs
    are to serve by default.
    """

    models: list[StartupItem] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    defaults: tuple[tuple[str, str], ...] = ()

    @property
    def urls(self) -> tuple[str, ...]:
        """Return what lies elsewhere."""
        return tuple(model.source.uri for model in self.models if model.path is None)


def startup_list(sources: Sources, store: Path, allowed: AllowedUrls) -> StartupList:
    """Return the models that the properties name, in their order."""
    found = StartupList()
    if sources.is_given("model_snapshot"):
        snapshot = read_snapshot(sources.text("model_snapshot"))
        wanted, found.defaults = snapshot.models, snapshot.defaults
    else:
        wanted = read_start_models(sources.text("load_models"))
    for model in wanted:
        if model.item.lower() == ALL:
            _take_all(found, store)
        elif model.is_url:
            _take_url(found, model, allowed)
        else:
            _take_path(found, model, store)
    return found


def _take_all(found: StartupList, store: Path) -> None:
    try:
        entries = sorted(store.iterdir())
    except OSError as error:
        found.failures.append((ALL, f"the model store {store} cannot be read: {error.strerror}"))
        return
    for entry in entries:
        is_hidden = entry.name.startswith(".")
        if not is_hidden and (entry.is_dir() or entry.name.lower().endswith(ARCHIVES)):
            found.models.append(StartupItem(entry.name, entry, ModelSource(str(entry))))


def _take_url(found: StartupList, model: StartModel, allowed: AllowedUrls) -> None:
    if allowed.patterns and (why := allowed.refusal(model.place)):
        found.failures.append((model.item, f"{why}. Add it to allowed_urls."))
        return
    if model.place[:5].lower() == "file:":
        _take_file(found, model, allowed)
        return
    try:
        read_places(place_of(model.place), FETCHED)
    except (ServeError, ValueError) as error:
        why = f"{error} Give a URL of {', '.join(FETCHED)}."
        found.failures.append((model.item, why))
        return
    found.models.append(StartupItem(model.item, None, ModelSource(model.place, model.name)))


def _take_file(found: StartupList, model: StartModel, allowed: AllowedUrls) -> None:
    try:
        place = Path("/" + decoded(urlsplit(model.place).path).lstrip("/"))
        is_there = os.path.exists(place)
    except (ServeError, ValueError) as error:
        found.failures.append((model.item, f"{said_by(error)} Correct the path."))
        return
    if not allowed.patterns:
        why = (
            "a file is named by its path: in the model store by its name there, a folder by its whole path. "
            f"allowed_urls=file://{place.parent}/.* lets files of that folder be named by URL."
        )
        found.failures.append((model.item, why))
    elif is_there:
        found.models.append(StartupItem(model.item, place, ModelSource(str(place), model.name)))
    else:
        found.failures.append((model.item, f"there is nothing at {place}. Correct the path."))


def place_of(url: str) -> str:
    """Return the place of a URL alone, as an allow-list has it. Raises ValueError."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _take_path(found: StartupList, model: StartModel, store: Path) -> None:
    path = Path(model.place)
    is_elsewhere = not os.path.exists(store / path) or (path.is_absolute() and not os.path.isdir(path))
    if is_elsewhere and not model.leaves and path.name and os.path.exists(store / path.name):
        path = Path(
            path.name
        )  # as in a registration: of a path elsewhere the last part is looked for in the store
    if model.leaves:
        why = "it leads out of the model store. Name what lies in it, or a folder by its whole path."
    elif path.is_absolute() and not os.path.isdir(path):
        why = f"{path} is no folder, and archives are taken from the model store {store}. Move it there."
    elif not os.path.exists(store / path):
        why = f"there is no {path} in the model store {store}{_there(store)}"
    else:
        place = store / path  # an absolute path stays what it is
        found.models.append(StartupItem(model.item, place, ModelSource(str(place), model.name)))
        return
    found.failures.append((model.item, why))


def _there(store: Path) -> str:
    try:
        names = sorted(entry.name for entry in store.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        return f", which cannot be read: {error.strerror}."
    shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    return f", which holds {shown}." if names else ", which is empty."
