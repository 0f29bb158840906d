"""One option: its flag, default, bounds and help, which values it takes, and its names in each source.

Pure. Must not know which options there are, nor who reads them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

PREFIX = "TRIVIUM_"
ANY = 2**53
INT = 2**31 - 1
LONG = INT / 1000
"""Largest values of options: of a size or count, of what gRPC keeps in 32 bits, and of what it counts there in
milliseconds, in seconds.
"""
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of the server. A number lies within two bounds; a text is one of `choices`, if there are any.

    `group` and `key` say where it stands: `key` under `[group]` in the file, `config.group.key` in code.
    """

    flag: str
    default: Any
    help: str
    within: tuple[float, float]
    choices: tuple[str, ...]
    is_common: bool
    group: str = ""
    key: str = ""

    @property
    def name(self) -> str:
        """The option's name without regard to groups, like `http_port`."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable that sets it, like `TRIVIUM_HTTP_PORT`."""
        return PREFIX + self.name.upper()

    @property
    def place(self) -> str:
        """Return where it stands in the file, like `port in [http]`."""
        return f"{self.key} in [{self.group}]"

    @property
    def kind(self) -> type:
        """The type of its values: bool, int, float or str."""
        return type(self.default)

    @property
    def expected(self) -> str:
        """Return which values it takes, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind in (str, bool):
            return "text" if self.kind is str else "true or false"
        return f"a {'whole ' if self.kind is int else ''}number from {self.within[0]} to {self.within[1]}"

    def parse(self, value: object) -> Any:
        """Read a value, which a source gives by its own type or as text. Raises ValueError for one out of bounds."""
        try:
            parsed = self._read(value)
        except (TypeError, KeyError, OverflowError) as error:
            raise ValueError(f"{value!r} is not {self.expected}") from error
        if self._allows(parsed):
            return parsed
        raise ValueError(f"{value!r} is not {self.expected}")

    def _allows(self, value: Any) -> bool:
        if self.kind is str:
            return not self.choices or value in self.choices
        least, most = self.within
        return bool(least <= value <= most)  # never so for NaN

    def _read(self, value: Any) -> Any:
        if self.kind is bool:
            return _FLAGS[str(value).lower()]
        if isinstance(value, bool) or (self.kind is str and not isinstance(value, str)):
            raise TypeError
        if self.kind is int and isinstance(value, float):
            raise TypeError
        return self.kind(value)


def option(
    flag: str,
    default: Any,
    help: str,
    within: tuple[float, float] = (0, 2**53),
    choices: tuple[str, ...] = (),
    is_common: bool = False,
) -> Any:
    """Make a field of a group. With `is_common` the help shows it at its top, among what most people need."""
    made = Option(flag, default, help, within, choices, is_common)
    return field(default=default, metadata={"option": made})


def options_of(group: str, section: type) -> Iterator[Option]:
    """Find the options of a section of the configuration: a class whose fields `option` made."""
    for each in fields(section):
        yield replace(each.metadata["option"], group=group, key=each.name)
