"""An option of our own: a setting with its names on the command line, in the environment and in the file.

Pure. Must not know which options there are, nor who reads them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from trivium.settings.kinds import DIGIT_SWITCH, TEXT, Kind, OneOf, Seconds, Size, Whole
from trivium.settings.setting import Setting
from trivium.types.spoken import PREFIX

ANY = 2**53
INT = 2**31 - 1
LONG = INT / 1000
"""Largest values of options: of a size or count, of what gRPC keeps in 32 bits, and of what it counts there in
milliseconds, in seconds.
"""


@dataclass(frozen=True, slots=True)
class Option(Setting):
    """A setting of the server, by its name without regard to groups, like `http_port`.

    `is_secret`: its value is shown to nobody. `group` and `key` say where it stands: `key` under `[group]` in the file,
    `config.group.key` in code.
    """

    is_common: bool = False
    is_secret: bool = False
    group: str = ""
    key: str = ""

    @property
    def flag(self) -> str:
        """The flag that sets it, like `--http-port`."""
        return "--" + self.name.replace("_", "-")

    @property
    def place(self) -> str:
        """Return where it stands in the file, like `port in [http]`."""
        return f"{self.key} in [{self.group}]"

    @property
    def type(self) -> type:
        """The type of its values: bool, int, float or str."""
        return type(self.default)


def option(  # noqa: PLR0913 - each is a word of its row
    flag: str,
    default: Any,
    help: str,
    within: tuple[float, float] = (0, ANY),
    choices: tuple[str, ...] = (),
    is_common: bool = False,
    is_secret: bool = False,
) -> Any:
    """Make a field of a group. With `is_common` the help shows it at its top, among what most people need; one that
    `is_secret` is shown to nobody. A number with a fraction is a time in seconds.
    """
    kind = OneOf(choices) if choices else _kind(type(default), *within)
    return _field(flag, kind, default, help, is_common, is_secret)


def size_option(
    flag: str, default: int, help: str, within: tuple[int, int] = (0, ANY), is_common: bool = False
) -> Any:
    """Make a field of a group that is a number of bytes, which may have a unit."""
    return _field(flag, Size(*within), default, help, is_common)


def _field(flag: str, kind: Kind, default: Any, help: str, is_common: bool, is_secret: bool = False) -> Any:
    name = flag.removeprefix("--").replace("-", "_")
    made = Option(
        name, kind, default, help, variable=PREFIX + name.upper(), is_common=is_common, is_secret=is_secret
    )
    return field(default=default, metadata={"option": made})


def _kind(of: type, least: Any, most: Any) -> Kind:
    kinds = {bool: DIGIT_SWITCH, int: Whole(least, most), float: Seconds(least, most)}
    return kinds.get(of, TEXT)


def options_of(group: str, section: type) -> Iterator[Option]:
    """Find the options of a section of the configuration: a class whose fields `option` made."""
    for each in fields(section):
        yield replace(each.metadata["option"], group=group, key=each.name)
