"""Translates the flags of `tritonserver` to the configuration of a server, and reports what cannot be had.

Pure but for the environment that `config` reads. Raises ServeError for what the original refuses as a bad command
line, CannotStart for what keeps it from starting. Must not start anything.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trivium.app import Catalogue
from trivium.config.loading import LoadedConfig, from_process
from trivium.config.options import ServerConfig
from trivium.config.schema import ConfigSchema
from trivium.servers.triton.command import lists
from trivium.servers.triton.command.errors import CannotStart
from trivium.servers.triton.command.flag_table import FLAGS
from trivium.servers.triton.command.metrics_flags import metrics_fields
from trivium.servers.triton.command.trace_flags import trace_fields, unused_traces
from trivium.settings.judging import refusal
from trivium.settings.setting import Support
from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.log_settings import LogSettings

_SAME: Mapping[str, str] = {
    "--id": "server_name",
    "--exit-timeout-secs": "drain_timeout",
    "--model-control-mode": "model_control",
    "--repository-poll-secs": "poll_seconds",
    "--model-config-name": "model_config_name",
    "--model-load-thread-count": "load_threads",
    "--model-load-retry-count": "load_retries",
    "--rate-limit": "rate_limit",
    "--http-address": "host",
    "--http-port": "http_port",
    "--reuse-http-port": "reuse_http_port",
    "--http-max-input-size": "max_body_bytes",
    "--allow-client-shm": "client_shared_memory",
    "--grpc-address": "grpc_host",
    "--grpc-port": "grpc_port",
    "--reuse-grpc-port": "reuse_grpc_port",
    "--grpc-keepalive-permit-without-calls": "grpc_pings_without_calls",
    "--grpc-http2-max-pings-without-data": "grpc_pings_without_data",
    "--grpc-http2-max-ping-strikes": "grpc_ping_strikes",
}
"""Flag -> the field that it is."""

_SECONDS: Mapping[str, str] = {
    "--grpc-keepalive-time": "grpc_keepalive_time",
    "--grpc-keepalive-timeout": "grpc_keepalive_timeout",
    "--grpc-http2-min-recv-ping-interval-without-data": "grpc_min_ping_interval",
    "--grpc-max-connection-age": "grpc_connection_age",
    "--grpc-max-connection-age-grace": "grpc_connection_grace",
}
"""Flag, in milliseconds -> the field that it is, in seconds."""

_OPPOSITE: Mapping[str, str] = {
    "--allow-http": "no_http",
    "--allow-grpc": "no_grpc",
    "--strict-readiness": "ready_despite_failures",
}
"""Flag -> the field that is its opposite."""

_COMPRESSION = {"none": "none", "low": "gzip", "medium": "deflate", "high": "deflate"}
"""What the original's levels come to with clients that take both."""

_LARGEST_MESSAGE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """All that the command line says, with the catalogue of what a server is made of. `startup` are the models to load
    first, None for all; `values` are those of all flags, `unused` the flags that were given for nothing, with the
    reason, `notices` what is worth a line about the environment.
    """

    catalogue: Catalogue
    config: ServerConfig
    repositories: tuple[str, ...]
    startup: tuple[str, ...] | None
    log: LogSettings
    values: Mapping[str, Any]
    unused: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def control(self) -> str:
        """Return the mode of control: none, poll or explicit."""
        return str(self.values["--model-control-mode"])


def settle(catalogue: Catalogue, given: Mapping[str, Any]) -> CommandSettings:
    """Return the settings for the flags that were given, by name."""
    values = {name: given.get(name, () if flag.repeats else flag.default) for name, flag in FLAGS.items()}
    _check(values)
    log = LogSettings(
        values["--log-verbose"],
        values["--log-info"],
        values["--log-warning"],
        values["--log-error"],
        values["--log-format"] == "ISO8601",
        values["--log-file"],
    )
    # The original keeps a set of them: each counts once, and by name.
    repositories = tuple(sorted({*values["--model-store"], *values["--model-repository"]}))
    loaded, unused = _config(catalogue.schema, values), _unused(given, values)
    return CommandSettings(
        catalogue, loaded.config, repositories, _startup(values), log, values, unused, loaded.notices
    )


def check_start(settings: CommandSettings) -> None:
    """Raises CannotStart for what the original finds out after it has read its command line."""
    if not settings.repositories:
        raise CannotStart("Invalid argument", "--model-repository must be specified")
    for path in settings.repositories:
        if path.startswith(("s3://", "gs://", "as://")):
            raise CannotStart(
                "Unsupported", f"{path}: nothing is downloaded here. Give a folder of this machine"
            )
    names = settings.values["--load-model"]
    if "*" in names and set(names) != {"*"}:
        raise CannotStart(
            "Invalid argument",
            "Wildcard model name '*' must be the ONLY startup model if specified at all.",
        )


def _startup(values: Mapping[str, Any]) -> tuple[str, ...] | None:
    names = values["--load-model"]
    return tuple(names) if values["--model-control-mode"] == "explicit" and "*" not in names else None


def _check(values: Mapping[str, Any]) -> None:
    for name, flag in FLAGS.items():
        if flag.support is Support.REFUSED and values[name]:
            raise ServeError(Code.UNSUPPORTED, ". ".join(refusal(flag, str(values[name]).lower())))
    if values["--load-model"] and values["--model-control-mode"] != "explicit":
        raise ServeError(
            Code.INVALID,
            "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.",
        )


def _config(schema: ConfigSchema, values: Mapping[str, Any]) -> LoadedConfig:
    fields = {
        **{field: values[flag] for flag, field in _SAME.items()},
        **{field: values[flag] / 1000 for flag, field in _SECONDS.items()},
        **{field: not values[flag] for flag, field in _OPPOSITE.items()},
        **_tls(values),
        **metrics_fields(values),
        **trace_fields(values),
        "profile": "triton",
        "open": True,
        "open_management": True,
        "unique_names": True,
        "no_completion": values["--disable-auto-complete-config"] or values["--strict-model-config"],
        "grpc_message_bytes": _LARGEST_MESSAGE,
        "grpc_compression": _COMPRESSION[values["--grpc-infer-response-compression-level"]],
        "forward_headers": lists.pattern(values, "--http-header-forward-pattern"),
        "forward_metadata": lists.pattern(values, "--grpc-header-forward-pattern"),
        "restricted_apis": lists.restrictions(values, "--http-restricted-api"),
        "restricted_rpcs": lists.restrictions(values, "--grpc-restricted-protocol"),
        "default_rows": lists.default_rows(values),
        "cache_bytes": lists.cache_bytes(values),
        "rate_limit_resources": ",".join(values["--rate-limit-resource"]),
        "log_format": "text",  # the lines are the original's
    }
    for name in ("run_timeout", "grpc_idle_timeout"):
        if schema.options[name].variable not in os.environ:
            fields[name] = 0.0  # the original sets no bound
    try:
        loaded = from_process(schema, None, fields)
        if loaded.config.security.keys:  # by its variable: the original has no flag for it
            loaded = from_process(schema, None, fields | {"open": False, "open_management": False})
        return loaded
    except ConfigError as error:
        raise ServeError(Code.INVALID, _by_flag(error)) from error


def _tls(values: Mapping[str, Any]) -> dict[str, str]:
    is_mutual = values["--grpc-use-ssl-mutual"]
    if not (values["--grpc-use-ssl"] or is_mutual):
        return {}
    names = ["--grpc-server-cert", "--grpc-server-key"] + ["--grpc-root-cert"] * is_mutual
    fields = ("grpc_tls_certificate", "grpc_tls_key", "grpc_tls_client_authorities")
    for name in names:
        if not values[name]:
            raise ServeError(Code.INVALID, f"TLS for gRPC needs {', '.join(names)}; {name} lacks.")
    return {field: values[name] for field, name in zip(fields, names, strict=False)}


OWN_WORDS: Mapping[str, str] = {
    f"--{field.replace('_', '-')}": flag
    for table in (_SAME, _SECONDS, _OPPOSITE)
    for flag, field in table.items()
}
"""Flag of our own -> the flag here that sets the same."""


def _by_flag(error: ConfigError) -> str:
    """Faults by the flags that set their fields."""
    return "; ".join(
        f"{OWN_WORDS.get(finding.key, f'{finding.file}, {finding.key}')}: {finding.found}; expected {finding.expected}"
        for finding in error.findings
    )


def _unused(given: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[str, ...]:
    flags = [f"{name} ({FLAGS[name].how})" for name in given if FLAGS[name].support is Support.REPORTED]
    return (*flags, *lists.unused_settings(values), *unused_traces(values))
