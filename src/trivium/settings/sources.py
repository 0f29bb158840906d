"""Lays the sources of a configuration over one another, and keeps with each value where it stands.

Which source goes before which its server says, by the order in which it lays them. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trivium.settings.judging import meant_by, unknown, unserved, wrong
from trivium.settings.setting import Setting, Support
from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

_NEAR, _NEAR_OTHERS = 0.6, 0.8
"""How near a name has to be to be meant; nearer, where what is near may be somebody else's."""

COMMAND_LINE, ENVIRONMENT = "the command line", "the environment"


@dataclass(frozen=True, slots=True)
class SettingsTable:
    """All settings of one configuration by their names, and how sentences speak of them."""

    owner: str  # whose they are, like "DJL's"
    noun: str  # what one is called, like "key"
    page: str  # the page of the manual that lists them
    rows: Mapping[str, Setting]
    any_case: bool = False  # a name in other capitals is the setting, and no slip
    has_others: bool = False  # a name that is near to none is somebody else's, and no fault

    @classmethod
    def of(cls, owner: str, noun: str, page: str, rows: Iterable[Setting], **how: bool) -> "SettingsTable":
        """Make a table of its rows."""
        return cls(owner, noun, page, {row.name: row for row in rows}, **how)

    def find(self, name: str) -> Setting | None:
        """Return the setting of a name, None for none."""
        row = self.rows.get(name)
        if row is None and self.any_case:
            row = next((each for each in self.rows.values() if each.name.lower() == name.lower()), None)
        return row

    def unknown(self, name: str, origin: Origin) -> Finding:
        """Name a setting that there is not."""
        meant = meant_by(name, self.rows, _NEAR_OTHERS if self.has_others else _NEAR)
        what, hint = f"{name} is no {self.noun}", f"Remove it; {self.page} lists all of them."
        if self.has_others and not meant:
            what = f"{what} of {self.owner}, and has no effect"
            return unknown(origin, what, "", "", hint, Severity.NOTICE)
        if meant and self.rows[meant].support is Support.REFUSED:
            refused = f"Did you mean {meant}? That is refused: {self.rows[meant].how}."
            return unknown(origin, what, f"one of {self.owner}", "", refused)
        return unknown(origin, what, f"one of {self.owner}", meant, hint)


@dataclass(slots=True)
class Sources:
    """The values that count, by name, each with where it stands, and what is to be said of the others."""

    table: SettingsTable
    settings: dict[str, SourceSetting] = field(default_factory=dict)  # as they were written
    values: dict[str, Any] = field(default_factory=dict)  # as their kinds read them
    findings: list[Finding] = field(default_factory=list)

    def lay(self, layer: Iterable[tuple[str, SourceSetting]]) -> None:
        """Lay a source over those before, and judge each of its values. An empty one counts as not given."""
        for name, setting in layer:
            row, value = self.table.find(name), setting.value.strip()
            if row is None:
                self.findings.append(self.table.unknown(name, setting.origin))
            elif value:
                self.take(row, value, setting.origin)

    def take(self, row: Setting, value: object, origin: Origin) -> None:
        """Let a value go before those so far, if it can be."""
        finding = wrong(origin, row, value) or unserved(origin, row, str(value))
        self.findings += [finding] if finding else []
        if finding is None or finding.severity is not Severity.ERROR:
            self.settings[row.name] = SourceSetting(str(value), origin)
            self.values[row.name] = row.kind.read(value)

    def text(self, name: str) -> str:
        """The value of a setting as it was written, or its default."""
        setting = self.settings.get(name)
        return str(self.table.rows[name].default) if setting is None else setting.value

    def value(self, name: str) -> Any:
        """The value of a setting as its kind reads it."""
        row = self.table.rows[name]
        return self.values[name] if name in self.values else row.kind.read(row.default)

    def number(self, name: str) -> int:
        """The value of a number."""
        return int(self.text(name))

    def switch(self, name: str) -> bool:
        """The value of a truth value."""
        return self.text(name).lower() == "true"

    def is_given(self, name: str) -> bool:
        """Tell whether somebody has set it."""
        return name in self.settings

    def origin(self, name: str) -> Origin:
        """Return where a value stands; the original's default, where nobody has set it."""
        setting = self.settings.get(name)
        return Origin(f"{self.table.owner} default", name) if setting is None else setting.origin

    @property
    def faults(self) -> tuple[Finding, ...]:
        """Those findings that keep the server from starting."""
        return tuple(one for one in self.findings if one.severity is Severity.ERROR)
