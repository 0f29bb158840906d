"""Gathers what configures a TorchServe, from a file, the command line and the environment.

What is at fault in them `settings.sources` says. Pure. Source: spec sheet `torchserve`, section 2: the
environment, where the file lets it, goes before the command line, and that before the file.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from trivium.codecs.java_properties import Properties
from trivium.servers.torchserve.command.properties_table import CONFIG, NEVER, PREFIX
from trivium.servers.torchserve.words.start_models import json_fault
from trivium.settings.judging import meant_by, unknown, without_effect
from trivium.settings.sources import ENVIRONMENT, Sources
from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

_VARIABLE = re.compile(r"\$\$(\w+?)\$\$")
_JSON = ("models", "model_snapshot")
_ALWAYS = "ts_open_inference_protocol"
_OF_THE_COMMAND = frozenset({"TS_CONFIG_FILE", "TS_MODEL_SERVER_HOME"})
_BY_VARIABLE = {row.variable: row.name for row in CONFIG.rows.values() if row.variable != NEVER}


def gather(
    file: Properties | None, flags: Mapping[str, SourceSetting], environment: Mapping[str, str]
) -> Sources:
    """Put file, flags (by the property that each stands for) and environment together, and judge each value."""
    found = Sources(CONFIG)
    if file is not None:
        found.findings += file.findings
        found.lay(_filled(file, environment, found.findings))
        found.findings[:] = [_at_its_line(finding, file) for finding in found.findings]
    found.lay(flags.items())
    found.lay(_variables(found, environment))
    return found


def _at_its_line(finding: Finding, file: Properties) -> Finding:
    """Return what is wrong with JSON over several lines with the line that it is wrong on."""
    entry = file.entries.get(finding.key) if finding.key in _JSON and finding.file == file.file else None
    if entry is None or finding.severity is not Severity.ERROR:
        return finding
    at, why = json_fault(entry.value)
    return replace(finding, line=entry.line_at(at)) if why else finding


def _filled(
    file: Properties, environment: Mapping[str, str], findings: list[Finding]
) -> Iterator[tuple[str, SourceSetting]]:
    """Return the file's properties with the environment put in for `$$NAME$$`; a name that it has not is a fault."""
    for name, setting in file.settings():
        value, origin = setting.value, setting.origin
        unset = [each for each in dict.fromkeys(_VARIABLE.findall(value)) if each not in environment]
        for each in unset:
            text = f"Invalid Environment Variable {each}: it is not set, and $${each}$$ stands for it"
            hint = f"Set it, or write the value in place of $${each}$$."
            findings.append(Finding(Severity.ERROR, origin.file, origin.line, name, text, "", hint))
        if not unset:
            yield name, replace(setting, value=_VARIABLE.sub(lambda match: environment[match[1]], value))


def _variables(found: Sources, environment: Mapping[str, str]) -> Iterator[tuple[str, SourceSetting]]:
    """Return the properties that the environment sets, as far as those so far let it."""
    is_read, reads_urls = found.switch("enable_envvars_config"), found.switch("use_env_allowed_urls")
    for variable, value in environment.items():
        if not variable.startswith(PREFIX) or variable in _OF_THE_COMMAND or not value:
            continue
        origin, name = Origin(ENVIRONMENT, variable), _BY_VARIABLE.get(variable)
        lacking = "" if is_read or name == _ALWAYS else "enable_envvars_config=true"
        if name == "allowed_urls" and not reads_urls:
            lacking = "use_env_allowed_urls=true"
        if name is None:
            meant = meant_by(variable, _BY_VARIABLE, 0.85)
            if meant and is_read:
                what = f"{variable} is no variable of TorchServe's, and has no effect"
                found.findings.append(unknown(origin, what, "", meant, "", Severity.NOTICE))
        elif lacking:
            why = f"no configuration file lets the environment set {name}"
            hint = f"Write {lacking} into the file, or {name} itself."
            found.findings.append(without_effect(origin, why, hint))
        else:
            yield name, SourceSetting(value, origin)
