"""Makes a configuration from a file, the environment and flags: who wins, and what is said of values that do not fit.

Flags win over variables, variables over the file, the file over the defaults. What does not fit is a fault, and all
faults are named at once; what is only worth knowing is a notice. Must not know what an option is for.
"""

import os
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trivium.config.options import ServerConfig
from trivium.config.schema import ConfigSchema
from trivium.settings.judging import meant_by, unknown
from trivium.settings.option import Option
from trivium.settings.sources import SettingsTable, Sources
from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Origin
from trivium.types.spoken import PREFIX

REMOVED: Mapping[str, str] = {"grpc_layer": "Drop it: gRPC is served by Trivium's own HTTP/2 alone."}
"""Options that there were once, by name -> what to do now. Any source that still gives one is at fault."""

_ENVIRONMENT = "environment"
_SERVICE = re.compile(
    PREFIX
    + r"([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?)"
)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_NAMED = 6


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration, and what whoever starts the server should know of its sources, a line for each notice."""

    config: ServerConfig
    notices: tuple[str, ...]


def load_config(
    schema: ConfigSchema, path: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]
) -> LoadedConfig:
    """Merge the sources; a flag that is None was not given. Raises ConfigError with every fault that was found."""
    given = {name: value for name, value in flags.items() if value is not None}
    merged = _Merge(schema)
    if path is not None:
        merged.take_file(str(path), _read(path))
    merged.take_environment(environment, given)
    merged.take_flags(given)
    return merged.finish()


def from_process(schema: ConfigSchema, path: Path | None, flags: Mapping[str, Any]) -> LoadedConfig:
    """`load_config` with this process's environment."""
    return load_config(schema, path, os.environ, flags)


def configured(schema: ConfigSchema, **options: Any) -> ServerConfig:
    """Make a configuration from options by name, like `http_port=0`.

    Raises ConfigError for an unknown option, which suggests the near one, and for a value that does not fit.
    """
    merged = _Merge(schema)
    merged.take_flags(options, "options")
    return merged.finish().config


class _Merge:
    """Lays the sources over one another, each option by the names that it has there; `notices` are worth a line."""

    def __init__(self, schema: ConfigSchema) -> None:
        self._schema = schema
        self._options = schema.options
        self._sources = Sources(SettingsTable("Trivium's", "option", "docs/configuration.md", schema.options))
        self.notices: list[str] = []

    def take_file(self, file: str, tables: Mapping[str, Any]) -> None:
        """Take what stands in the file: tables by group, and single keys in front of them, as there once were."""
        places: dict[str, str] = {}
        single = []
        for key, value in tables.items():
            if key in self._schema.groups and isinstance(value, dict):
                for inner, inner_value in value.items():
                    self._take_key(file, key, inner, inner_value, places)
            elif key in self._schema.groups:
                self._fault(file, key, f"{value!r}", "a table", f"Write [{key}] and its keys below.")
            elif key in self._options:
                single.append(key)
                self._take_once(file, key, self._options[key], value, places)
            else:
                self._unknown(file, "", key, isinstance(value, dict))
        if single:
            now = ", ".join(f"{key} is {self._options[key].place}" for key in single)
            self.notices.append(f"{file}: keys outside of a table are still read. In tables, {now}.")

    def _take_key(self, file: str, table: str, key: str, value: object, places: dict[str, str]) -> None:
        if option := self._schema.keys[table].get(key):
            self._take_once(file, f"{table}.{key}", option, value, places)
        else:
            self._unknown(file, table, key)

    def _take_once(self, file: str, key: str, option: Option, value: object, places: dict[str, str]) -> None:
        if (before := places.setdefault(option.name, key)) != key:
            self._fault(file, key, f"{before} gives it, too", "one of the two", f"Keep {option.place}.")
        self._take(file, key, option, value)

    def _unknown(self, file: str, table: str, key: str, is_table: bool = False) -> None:
        for name in (key, f"{table}_{key}"):
            if name in REMOVED:
                self._removed(file, f"{table}.{key}" if table else key, name)
                return
        known = list(self._schema.keys[table]) if table else [f"[{name}]" for name in self._schema.groups]
        shown = f"{table}.{key}" if table else key
        self._no_option(file, shown, known, _meant(self._schema, table, key, is_table))

    def take_environment(self, environment: Mapping[str, str], flags: Mapping[str, Any]) -> None:
        """Take the variables that are options. One that a flag replaces is not even read."""
        skipped = []
        for variable, value in environment.items():
            if not variable.startswith(PREFIX):
                continue
            name = variable.removeprefix(PREFIX).lower()
            if _is_of_a_service(variable, value):
                skipped.append(variable)
            elif name in REMOVED:
                self._removed(_ENVIRONMENT, variable, name)
            elif name not in self._options:
                meant = meant_by(name, self._options)
                hint = f" Did you mean {self._options[meant].variable}?" if meant else ""
                self.notices.append(f"The variable {variable} is no option and has no effect.{hint}")
            elif name not in flags:
                self._take(_ENVIRONMENT, variable, self._options[name], value)
        if skipped:
            self.notices.append(_skipped(skipped, self._options))

    def take_flags(self, flags: Mapping[str, Any], source: str = "command line") -> None:
        """Take what the command line gives, or a caller, by the names of options."""
        for name, value in flags.items():
            if name in self._options:
                self._take(source, self._options[name].flag, self._options[name], value)
            elif name in REMOVED:
                self._removed(source, "--" + name.replace("_", "-"), name)
            else:
                meant = meant_by(name, self._options)
                self._no_option(source, name, self._options, meant and f"'{meant}'")

    def finish(self) -> LoadedConfig:
        """Make the configuration. Raises ConfigError with all faults, if there are any."""
        if self._sources.faults:
            raise ConfigError(self._sources.faults)
        origins = {name: each.origin for name, each in self._sources.settings.items()}
        config = replace(self._schema.config(self._sources.values), origins=origins)
        return LoadedConfig(config, tuple(self.notices))

    def _take(self, source: str, key: str, option: Option, value: object) -> None:
        self._sources.take(option, value, Origin(source, key))

    def _no_option(self, source: str, key: str, known: Iterable[str], meant: str) -> None:
        expected = f"one of {', '.join(known)}"
        fault = unknown(Origin(source, key), "no such option", expected, meant, "Remove it.")
        self._sources.findings.append(fault)

    def _removed(self, source: str, key: str, name: str) -> None:
        self._fault(source, key, "this option was removed", hint=REMOVED[name])

    def _fault(self, source: str, key: str, found: str, expected: str = "", hint: str = "") -> None:
        self._sources.findings.append(Finding(Severity.ERROR, source, None, key, found, expected, hint))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ServeError(
            Code.NOT_FOUND, f"Cannot read the configuration {path}: {error.strerror}."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fault = Finding(
            Severity.ERROR,
            str(path),
            None,
            "",
            f"not TOML: {error}",
            "tables like [http], lines like port = 8080",
        )
        raise ConfigError((fault,)) from error


def _meant(schema: ConfigSchema, table: str, key: str, is_table: bool) -> str:
    """Find what somebody may have meant by this key: a table, or an option of the same table, or any option."""
    if is_table:
        meant = meant_by(key, schema.groups)
        return f"[{meant}]" if meant else ""
    ordered = reversed(
        list(schema.options.values())
    )  # of several keys that are alike, the first group's is meant
    anywhere = {**{option.key: option for option in ordered}, **schema.options}
    inside = schema.keys.get(table, {})
    for name in (key, meant_by(key, inside), meant_by(key, anywhere)):
        if option := inside.get(name) or anywhere.get(name):
            return f"'{option.key}' in [{option.group}]"
    return ""


def _is_of_a_service(variable: str, value: str) -> bool:
    """Does Kubernetes set it, for containers in the namespace of a Service whose name begins with our own?"""
    is_url = variable.endswith("_PORT") and _URL.match(value) is not None
    return is_url or _SERVICE.fullmatch(variable) is not None


def _skipped(variables: Iterable[str], options: Collection[str]) -> str:
    """Say which variables were skipped, those first that an option has for its own."""
    names = sorted(variables, key=lambda name: (name.removeprefix(PREFIX).lower() not in options, name))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f"Skipped variables that Kubernetes sets for Services: {', '.join(names[:_NAMED])}{more}. "
        "`enableServiceLinks: false` in the pod leaves them out."
    )
