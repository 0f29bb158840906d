"""Checks a `config.properties` by itself, without starting anything: for `trivium check --djl-config`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trivium.app import Catalogue
from trivium.commands.command_line import read_properties
from trivium.servers.djl.command.command import home_of
from trivium.servers.djl.command.settings import settle
from trivium.servers.djl.command.sources import gather
from trivium.types.errors import ConfigError, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting


@dataclass(frozen=True, slots=True)
class CheckedConfig:
    """Lists what is to be said of a file, and the settings that it lays under those of every model."""

    findings: tuple[Finding, ...]
    under: Mapping[str, SourceSetting]

    @property
    def is_servable(self) -> bool:
        """Would a server start with it?"""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


def check_config(catalogue: Catalogue, file: Path, environment: Mapping[str, str]) -> CheckedConfig:
    """Check a file as `djl-serving -f FILE` would read it; of the environment only the server's home counts."""
    sources = gather(read_properties(file), (), "", {})
    findings = tuple(sources.findings)
    if sources.faults:
        return CheckedConfig(findings, {})
    try:
        settled = settle(catalogue, sources, {}, home_of(environment))
    except ConfigError as error:
        return CheckedConfig((*findings, *error.findings), {})
    except ServeError as error:
        return CheckedConfig((*findings, Finding(Severity.ERROR, str(file), None, "", error.message)), {})
    return CheckedConfig(findings, settled.under)
