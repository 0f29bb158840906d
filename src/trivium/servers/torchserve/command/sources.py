"""Gathers what configures a TorchServe, from a file, the command line and the environment.

Decides which value counts and what is at fault in it, with file, line and the nearest property. Pure. Source: spec
sheet `torchserve`, section 2: the environment, where the file lets it, goes before the command line, and that before
the file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trivium.codecs.java_properties import Properties
from trivium.codecs.near_names import near
from trivium.servers.torchserve.command.properties_table import (
    PREFIX,
    PROPERTIES,
    PropertySupport,
    ServerProperty,
)
from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

_VARIABLE = re.compile(r"\$\$(\w+?)\$\$")
_ALWAYS = "ts_open_inference_protocol"
_OF_THE_COMMAND = frozenset({"TS_CONFIG_FILE", "TS_MODEL_SERVER_HOME"})
_BY_VARIABLE = {row.environment_name: row for row in PROPERTIES.values() if row.environment_name}
_NEAR = {name.lower(): name for name in PROPERTIES}
COMMAND_LINE, ENVIRONMENT = "the command line", "the environment"


@dataclass(slots=True)
class PropertySources:
    """The values that count, by property, each with where it stands, and what is to be said of the others."""

    settings: dict[str, SourceSetting] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def text(self, name: str) -> str:
        """The value of a property, or its default."""
        setting = self.settings.get(name)
        return PROPERTIES[name].default if setting is None else setting.value.strip()

    def is_given(self, name: str) -> bool:
        """Tell whether somebody has set a property."""
        return name in self.settings

    def number(self, name: str) -> int:
        """The value of a number."""
        return int(self.text(name))

    def switch(self, name: str) -> bool:
        """The value of a truth value."""
        return self.text(name).lower() == "true"

    def origin(self, name: str) -> Origin:
        """Return where a value stands; the original's default, where nobody has set it."""
        setting = self.settings.get(name)
        return Origin("TorchServe's default", name) if setting is None else setting.origin

    @property
    def faults(self) -> tuple[Finding, ...]:
        """Those findings that keep the server from starting."""
        return tuple(one for one in self.findings if one.severity is Severity.ERROR)


def gather(
    file: Properties | None, flags: Mapping[str, SourceSetting], environment: Mapping[str, str]
) -> PropertySources:
    """Put file, flags (by the property that each stands for) and environment together, and judge each value."""
    found = PropertySources()
    if file is not None:
        found.findings += file.findings
        for name, entry in file.entries.items():
            setting = SourceSetting(entry.value, Origin(entry.file or file.file, name, entry.line))
            if _is_whole(found, setting, environment):
                value = _VARIABLE.sub(lambda match: environment[match[1]], setting.value)
                _take(found, name, replace(setting, value=value))
    for name, setting in flags.items():
        _take(found, name, setting)
    _take_environment(found, environment)
    return found


def _is_whole(found: PropertySources, setting: SourceSetting, environment: Mapping[str, str]) -> bool:
    """Tell whether the environment has all that `$$NAME$$` stands for in a value; what it has not is a fault."""
    origin = setting.origin
    unset = [name for name in dict.fromkeys(_VARIABLE.findall(setting.value)) if name not in environment]
    for name in unset:
        text = f"Invalid Environment Variable {name}: it is not set, and $${name}$$ stands for it"
        hint = f"Set it, or write the value in place of $${name}$$."
        found.findings.append(Finding(Severity.ERROR, origin.file, origin.line, origin.key, text, "", hint))
    return not unset


def _take(found: PropertySources, name: str, setting: SourceSetting) -> None:
    origin = setting.origin
    row = PROPERTIES.get(name)
    if row is None:
        found.findings.append(_unknown(name, origin))
        return
    value = setting.value.strip()
    if not value:
        return
    shown = f"{name}={value}"
    if fault := row.fault(value):
        hint = "Correct the value."
        found.findings.append(
            Finding(Severity.ERROR, origin.file, origin.line, name, fault, row.expected, hint)
        )
        return
    if row.support is PropertySupport.NO and value.lower() != row.default:
        hint = f"{row.how[:1].upper()}{row.how[1:]}."
        text = f"{shown[:120]} is not supported in this version"
        found.findings.append(Finding(Severity.ERROR, origin.file, origin.line, name, text, "", hint))
        return
    if row.support is PropertySupport.UNUSED and value != row.default:
        text = f"{shown[:120]} has no effect: {row.how}"
        found.findings.append(Finding(Severity.NOTICE, origin.file, origin.line, name, text))
    found.settings[name] = setting


def _unknown(name: str, origin: Origin) -> Finding:
    """Name a property that there is not: a slip of the pen is a fault, a foreign one (a plug-in's) is not."""
    meant = _NEAR.get(name.lower()) or near(name, PROPERTIES)
    if meant:
        text, hint = f"{name} is no property", f"Did you mean {meant}?"
        return Finding(Severity.ERROR, origin.file, origin.line, name, text, "one of TorchServe's", hint)
    text = f"{name} is no property of TorchServe's, and has no effect"
    hint = "Remove it; docs/torchserve.md lists all of them."
    return Finding(Severity.NOTICE, origin.file, origin.line, name, text, "", hint)


def _take_environment(found: PropertySources, environment: Mapping[str, str]) -> None:
    is_read = found.switch("enable_envvars_config")
    for name, value in environment.items():
        if not name.startswith(PREFIX) or name in _OF_THE_COMMAND or not value:
            continue
        row = _BY_VARIABLE.get(name)
        if row is None:
            _note_near(found, name, is_read)
        elif row.name == _ALWAYS:
            _take(found, row.name, SourceSetting(value, Origin(ENVIRONMENT, name)))
        elif row.name == "allowed_urls" and not found.switch("use_env_allowed_urls"):
            _note_unread(found, name, row, "use_env_allowed_urls=true")
        elif not is_read:
            _note_unread(found, name, row, "enable_envvars_config=true")
        else:
            _take(found, row.name, SourceSetting(value, Origin(ENVIRONMENT, name)))


def _note_unread(found: PropertySources, name: str, row: ServerProperty, line: str) -> None:
    text = f"{name} has no effect, since no configuration file lets the environment set {row.name}"
    hint = f"Write {line} into the file, or {row.name} itself."
    found.findings.append(Finding(Severity.NOTICE, ENVIRONMENT, None, name, text, "", hint))


def _note_near(found: PropertySources, name: str, is_read: bool) -> None:
    meant = near(name, _BY_VARIABLE, 0.85)
    if meant and is_read:
        text, hint = f"{name} is no variable of TorchServe's, and has no effect", f"Did you mean {meant}?"
        found.findings.append(Finding(Severity.NOTICE, ENVIRONMENT, None, name, text, "", hint))
