"""Model sources: where a model comes from and what somebody asked for, apart from what its files say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from trivium.types.spec import Origin


@dataclass(frozen=True, slots=True)
class SourceSetting:
    """A value in the format's own words, with the place that it was given at. Two are equal where their values are: who
    asks for the same thing asks for it from a place of its own.
    """

    value: str
    origin: Origin = field(compare=False)


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Asks for a model: the place of its files, and what shall hold in spite of them.

    `uri` is a path of this machine, or a URI of what is to be fetched. `name` and `version` are empty where the files
    decide, as `engine` is; `devices` names where its instances go. With `is_named_after_uri` nobody has chosen the name
    and files that name their model go before it. The settings `over` lie over those of the files (a registration
    request, a query), those `under` lie under them (an environment, a server's defaults). A path has to lie in the
    folder `within`, wherever links lead; empty: anywhere. `is_named`: whoever runs the server named it in the server's
    own command, which is a permission to fetch it; no request sets that. `with_code`: its code may run, and is fetched.
    """

    uri: str
    name: str = ""
    version: str = ""
    engine: str = ""
    devices: tuple[str, ...] = ()
    over: Mapping[str, SourceSetting] = field(default_factory=dict)
    under: Mapping[str, SourceSetting] = field(default_factory=dict)
    is_named_after_uri: bool = field(default=False, compare=False)
    within: str = ""
    is_named: bool = field(default=False, compare=False)
    with_code: bool = field(default=False, compare=False)

    @property
    def is_remote(self) -> bool:
        """Tell whether it lies elsewhere, and has to be fetched."""
        return bool(_REMOTE.match(self.uri))


_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


Place = Path | ModelSource
"""A place that models are read from: a path of this machine, or a source to fetch."""


def located(text: str) -> Place:
    """Return what somebody named in one word: a path of this machine (also as `file:`), or the source to fetch."""
    source = ModelSource(text)
    if text[:5].lower() == "file:":
        path = unquote(text[5:])
        return Path("/" + path.lstrip("/") if path.startswith("/") else path)
    return source if source.is_remote else Path(text)
