"""Reads DJL's model URLs: `[name[:version[:engine[:devices]]]=]url?arguments`, one or a list of them.

Source: spec sheet `djl`, sections 2.1 to 2.3. Pure text; what lies at a URL is found out by whoever reads it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from trivium.servers.djl.words.naming import inferred_name
from trivium.types.errors import Code, ServeError
from trivium.types.sources import ModelSource, SourceSetting
from trivium.types.spec import Origin

FORM = "[name[:version[:engine[:devices]]]=]url"
_LIST = re.compile(r"[,\s]+")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_DEVICE = re.compile(r"\*|cpu|-1|(?:gpu|nc)?[0-9]{1,3}|gpu|nc|[0-9]+(?:\+[0-9]+)+")
_FIELDS = 4
DEFINITIONS = (".json", ".yml", ".yaml")
"""What makes a file, or the end of a URL, the definition of a workflow."""

LOCAL = ""
"""The scheme of what lies on this machine, whether it says `file:` or nothing."""


@dataclass(frozen=True, slots=True)
class DjlModelUrl:
    """One model URL. `scheme` is in lower case, LOCAL for a path of this machine; `place` is that path, or the whole
    URL without its query, whose arguments are the model's. What was left out is empty.
    """

    scheme: str
    place: str
    name: str = ""
    version: str = ""
    engine: str = ""
    devices: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The model's name: as given, else inferred from the last part of the path."""
        path = self.place if self.scheme == LOCAL else urlsplit(self.place).path
        last = path.rstrip("/").rpartition("/")[2]
        if self.is_definition:
            last = last.rpartition(".")[0]
        return self.name or inferred_name(last)

    @property
    def is_definition(self) -> bool:
        """Tell whether its end says that a workflow is defined there."""
        return self.place.lower().endswith(DEFINITIONS)

    def source(self, said_by: str, path: str = "") -> ModelSource:
        """The source that it asks for; `said_by` is the file, flag or request that has it, `path` where its files are
        by now, if not where it says.
        """
        origin = Origin(said_by, "")
        over = {key: SourceSetting(value, origin) for key, value in self.arguments.items()}
        uri = path or self.place
        return ModelSource(
            uri,
            self.model,
            self.version,
            self.engine,
            self.devices,
            over,
            is_named_after_uri=not self.name,
        )


def read_list(text: str) -> list[DjlModelUrl]:
    """Read URLs that commas or blanks separate. Raises INVALID for the first that cannot be read."""
    return [read_url(word) for word in _LIST.split(text) if word]


def read_url(text: str) -> DjlModelUrl:
    """Read one URL. Raises INVALID, saying which part cannot be what it is."""
    fields, url = _divided(text)
    if len(fields) > _FIELDS:
        raise _invalid(text, f"{len(fields)} fields in front of the equals sign")
    name, version, engine, devices = (*fields, *[""] * (_FIELDS - len(fields)))
    scheme, place, query = _located(text, url)
    return DjlModelUrl(scheme, place, name, version, engine, read_devices(devices), _arguments(text, query))


def read_devices(text: str) -> tuple[str, ...]:
    """Read device names that semicolons separate. Raises INVALID for what names no device."""
    names = tuple(name.strip() for name in text.split(";") if name.strip())
    for name in names:
        if not _DEVICE.fullmatch(name):
            raise ServeError(
                Code.INVALID,
                f"Failed to parse device name: {name[:40]!r}. There are *, cpu, -1, gpu, gpu0 and 0; several are "
                "separated by semicolons.",
            )
    return names


def _divided(text: str) -> tuple[list[str], str]:
    """Return the fields in front of the equals sign, if it is one of ours, and the URL."""
    left, sign, url = text.partition("=")
    if not sign or "?" in left or "/" in left:
        return [], text
    if left.startswith("[") and left.endswith("]"):
        left = left[1:-1]
    return left.split(":"), url


def _located(text: str, url: str) -> tuple[str, str, str]:
    """Return the scheme, the place and the query of a URL."""
    place, _, query = url.partition("?")
    found = _SCHEME.match(place)
    scheme = found[1].lower() if found else "file"
    if not place:
        raise _invalid(text, "no URL")
    if scheme != "file":
        return scheme, place, query
    path = place
    if found:
        path = unquote(place[len("file:") :])
        path = "/" + path.lstrip("/") if path.startswith("/") else path
    if not path or "\0" in path:
        raise _invalid(text, "no path")
    return LOCAL, path, query


def _arguments(text: str, query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=1000))
    except ValueError as error:
        raise _invalid(text, f"a query that cannot be read ({error})") from error


def _invalid(text: str, found: str) -> ServeError:
    return ServeError(
        Code.INVALID, f"The model URL {text[:200]!r} has {found}. Expected is {FORM}; correct it."
    )
