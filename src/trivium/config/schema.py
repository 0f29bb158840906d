"""All options that there are: the server's own, and those that each server which is stood in for brings along."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from trivium.config.options import ServerConfig
from trivium.settings.kinds import OneOf
from trivium.settings.option import Option, options_of
from trivium.types.by_type import ByType


@dataclass(frozen=True, slots=True)
class OwnSection:
    """Holds the options of a server that is stood in for: the class whose fields they are, and their heading."""

    kind: type
    title: str


class ConfigSchema:
    """Knows every option by its name, and makes a configuration of their values."""

    def __init__(self, own: Mapping[str, OwnSection], profiles: Mapping[str, str]) -> None:
        """`own` are the sections of other servers by the table of the file that they are in; `profiles` what can be
        served, with what the help says of each.
        """
        self._own = own
        common = {each.name: each for each in fields(ServerConfig) if "title" in each.metadata}
        self.groups: Mapping[str, str] = {
            **{name: each.metadata["title"] for name, each in common.items()},
            **{name: each.title for name, each in own.items()},
        }
        """Groups, as tables of the file are named -> the heading of each."""
        kinds = {**{name: each.type for name, each in common.items()}, **{n: own[n].kind for n in own}}
        options = _completed(_all(kinds), profiles)
        self.options: Mapping[str, Option] = {each.name: each for each in options}
        """All options by name, like `http_port`, group by group."""
        self.keys: Mapping[str, Mapping[str, Option]] = {
            name: {each.key: each for each in options if each.group == name} for name in self.groups
        }
        """Group -> its options by their keys in the file."""

    def config(self, values: Mapping[str, Any]) -> ServerConfig:
        """Make a configuration of values by the names of their options, which fit; the others are the defaults."""
        groups: dict[str, dict[str, Any]] = {name: {} for name in self.groups}
        for name, value in values.items():
            option = self.options[name]
            groups[option.group][option.key] = value
        sections = [each.kind(**groups.pop(name)) for name, each in self._own.items()]
        own = ByType(*(each for each in sections if each != type(each)()))
        defaults = ServerConfig()
        made = {name: replace(getattr(defaults, name), **inner) for name, inner in groups.items()}
        return ServerConfig(**made, own=own)

    def value(self, config: ServerConfig, name: str) -> Any:
        """Return the value of an option, by its name, in a configuration."""
        group, key = self.options[name].group, self.options[name].key
        own = self._own.get(group)
        section: object = getattr(config, group) if own is None else config.own.read(own.kind)
        return getattr(section, key)


def _all(kinds: Mapping[str, Any]) -> Iterator[Option]:
    for group, kind in kinds.items():
        yield from options_of(group, kind)


def _completed(options: Iterable[Option], profiles: Mapping[str, str]) -> list[Option]:
    """Return the options, that of the profile with all that can be served."""
    *most, last = (f"{name} ({note})" if note else name for name, note in profiles.items())
    words = f"{', '.join(most)} or {last}"
    return [
        replace(each, help=each.help.format(words), kind=OneOf(tuple(profiles)))
        if each.name == "profile"
        else each
        for each in options
    ]
