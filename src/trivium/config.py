"""The server's own configuration: the one place that reads files, the environment and flags.

A field here is a flag, an environment variable, a key of the file and a row of the manual at once: its name,
type, default and help are all there is to say.
"""

import difflib
import ipaddress
import os
import ssl
import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.findings import Finding, Severity

PREFIX = "TRIVIUM_"


def _option(
    default: Any, text: str, least: float = 0, most: float = 2**53, choices: tuple[str, ...] = ()
) -> Any:
    """A field: numbers lie within `least` and `most`, text is one of `choices`, if there are any."""
    bounds = {"least": least, "most": most, "choices": choices}
    return field(default=default, metadata={"help": text, **bounds})


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Everything that `trivium serve` can be told. Sizes are bytes, times seconds."""

    host: str = _option("127.0.0.1", "Address to listen on; one that is not loopback needs --open.")
    open: bool = _option(False, "Listen beyond loopback, for anybody who reaches this machine.")
    profile: str = _option(
        "native",
        "Whose routes, error bodies and headers: native, djl or torchserve.",
        choices=("native", "djl", "torchserve"),
    )
    http_port: int = _option(8080, "Port for HTTP; 0 takes a free one.", most=65535)
    no_grpc: bool = _option(False, "Do not serve gRPC.")
    grpc_port: int = _option(8001, "Port for gRPC; 0 takes a free one.", most=65535)
    grpc_tls_certificate: str = _option(
        "", "PEM file with the certificate chain; with --grpc-tls-key gRPC is served over TLS alone."
    )
    grpc_tls_key: str = _option("", "PEM file with that certificate's private key, not encrypted.")
    grpc_tls_client_authorities: str = _option(
        "", "PEM file with authorities: only clients that have a certificate of theirs may call gRPC."
    )
    grpc_keepalive_time: float = _option(
        7200.0, "Seconds of silence before a gRPC connection is pinged.", 1, 2**21
    )
    grpc_keepalive_timeout: float = _option(20.0, "Seconds in which that ping must be answered.", 0.1, 2**21)
    grpc_min_ping_interval: float = _option(
        300.0, "Seconds that gRPC clients must leave between their own pings.", 0, 2**21
    )
    grpc_pings_without_calls: bool = _option(
        False, "Ping gRPC connections that have no call, and let their clients do so."
    )
    queue_items: int = _option(1000, "Requests that may wait per model before new ones are refused.", 1)
    max_connections: int = _option(4096, "Open connections, and gRPC calls, before new ones are refused.", 1)
    worker_items: int = _option(0, "Requests after which a worker process is replaced; 0 for never.")
    worker_growth: int = _option(
        0, "Bytes by which a worker process may grow before it is replaced; 0 for any growth."
    )
    max_header_bytes: int = _option(32 * 2**10, "Largest request head.", 1)
    max_body_bytes: int = _option(256 * 2**20, "Largest request body, or gRPC message.")
    max_buffered_bytes: int = _option(
        2 * 2**30, "Request bodies held at once, over all connections, and as much again over gRPC."
    )
    client_shared_memory: bool = _option(
        False,
        "Let clients pass tensors in POSIX shared memory. For trusted ones only: one that shrinks its memory while "
        "it is read ends the server.",
    )
    forward_headers: str = _option(
        "",
        "Regular expression: v2 requests' HTTP headers whose whole name (lower case) it matches become parameters.",
    )
    restricted_apis: str = _option(
        "",
        "Groups of v2 routes over HTTP, and the header that opens them: 'model-repository,logging:admin-key=SECRET'. "
        "Beyond loopback models can be loaded and unloaded so alone.",
    )
    idle_timeout: float = _option(75.0, "Seconds before a connection without a request is closed.")
    header_timeout: float = _option(10.0, "Seconds in which a request head must have arrived.")
    body_timeout: float = _option(20.0, "Seconds for a body, plus its size at the slowest rate.")
    write_timeout: float = _option(
        30.0, "Seconds in which a client must take its answer at the slowest rate."
    )
    slowest_rate: int = _option(16 * 2**10, "Bytes per second below which a client is too slow.", 1)
    drain_timeout: float = _option(30.0, "Seconds that requests in work get to finish after SIGTERM.")
    access_log: str = _option(
        "", "File for a JSON line per request or gRPC call; '-' is standard output; empty is none."
    )
    log_level: str = _option(
        "warning", "debug, info, warning or error.", choices=("debug", "info", "warning", "error")
    )

    @property
    def is_loopback(self) -> bool:
        """Does nobody but this machine reach what listens on `host`?"""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(frozen=True, slots=True)
class Tls:
    """What TLS needs, in PEM. With `client_authorities` clients have to show a certificate of theirs."""

    certificate: bytes
    key: bytes
    client_authorities: bytes | None


def read_grpc_tls(config: ServerConfig) -> Tls | None:
    """The files that the options name; None where none is named. INVALID for files that do not make a pair."""
    certificate, key = config.grpc_tls_certificate, config.grpc_tls_key
    authorities = config.grpc_tls_client_authorities
    if not (certificate or key or authorities):
        return None
    if not (certificate and key):
        raise ServeError(
            Code.INVALID,
            "TLS for gRPC takes a certificate and its key. Give both --grpc-tls-certificate and --grpc-tls-key.",
        )
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key, password=lambda: "")
        if authorities:
            context.load_verify_locations(authorities)
        pems = [Path(path).read_bytes() for path in (certificate, key)]
        return Tls(pems[0], pems[1], Path(authorities).read_bytes() if authorities else None)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        named = ", ".join(filter(None, (certificate, key, authorities)))
        raise ServeError(
            Code.INVALID,
            f"The files for gRPC's TLS ({named}) cannot be used: {error}. Give PEM files, a certificate and the key "
            "that it was made for, not encrypted.",
        ) from error


def load_config(path: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]) -> ServerConfig:
    """Flags over environment over file over defaults. ConfigError names what is unknown or of a wrong type."""
    values: dict[str, Any] = {}
    faults: list[Finding] = []
    if path is not None:
        for key, value in _read(path).items():
            _put(values, faults, str(path), key, value)
    for name in environment:
        if name.startswith(PREFIX):
            _put(values, faults, "environment", name.removeprefix(PREFIX).lower(), environment[name])
    for key, value in flags.items():
        if value is not None:
            _put(values, faults, "command line", key, value)
    if faults:
        raise ConfigError(tuple(faults))
    return ServerConfig(**values)


def from_process(path: Path | None, flags: Mapping[str, Any]) -> ServerConfig:
    """`load_config` with this process's environment."""
    return load_config(path, os.environ, flags)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ServeError(
            Code.NOT_FOUND, f"Cannot read the configuration {path}: {error.strerror}."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fault = Finding(
            Severity.ERROR, str(path), None, "", f"not TOML: {error}", "lines like: http_port = 8080"
        )
        raise ConfigError((fault,)) from error


def _put(values: dict[str, Any], faults: list[Finding], file: str, key: str, value: Any) -> None:
    known = {option.name: option for option in fields(ServerConfig)}
    if key not in known:
        near = difflib.get_close_matches(key, known, 1)
        mend = f"Did you mean '{near[0]}'?" if near else "Remove it."
        faults.append(Finding(Severity.ERROR, file, None, key, "no such option", ", ".join(known), mend))
        return
    option = known[key]
    try:
        values[key] = _parse(option, value)
    except (ValueError, TypeError, KeyError, OverflowError):
        faults.append(Finding(Severity.ERROR, file, None, key, f"{value!r}", _expected(option)))


def _expected(option: Field[Any]) -> str:
    bounds = option.metadata
    if bounds["choices"]:
        return f"one of {', '.join(bounds['choices'])}"
    if option.type in (str, bool):
        return "text" if option.type is str else "true or false"
    return f"a {'whole ' if option.type is int else ''}number from {bounds['least']} to {bounds['most']}"


def _parse(option: Field[Any], value: Any) -> Any:
    kind, bounds = option.type, option.metadata
    assert isinstance(kind, type)
    if kind is bool:
        return {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]
    if isinstance(value, bool) or (kind is str and not isinstance(value, str)):
        raise ValueError
    if kind is int and isinstance(value, float):
        raise ValueError
    parsed = kind(value)
    if kind is str and (not bounds["choices"] or parsed in bounds["choices"]):
        return parsed
    if kind is not str and bounds["least"] <= parsed <= bounds["most"]:  # never so for NaN
        return parsed
    raise ValueError
