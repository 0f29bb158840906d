"""Model sources: where a model comes from and what somebody asked for, apart from what its files say."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trivium.types.spec import Origin


@dataclass(frozen=True, slots=True)
class SourceSetting:
    """A value in the format's own words, with the place that it was given at."""

    value: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Asks for a model: the place of its files, and what shall hold in spite of them.

    `uri` is a path of this machine. `name` and `version` are empty where the files decide, as `engine` is; `devices`
    names where its instances go. The settings `over` lie over those of the files (a registration request, a query),
    those `under` lie under them (an environment, a server's defaults).
    """

    uri: str
    name: str = ""
    version: str = ""
    engine: str = ""
    devices: tuple[str, ...] = ()
    over: Mapping[str, SourceSetting] = field(default_factory=dict)
    under: Mapping[str, SourceSetting] = field(default_factory=dict)
