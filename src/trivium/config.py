"""The server's own configuration: the one place that reads files, the environment and flags.

A field here is a flag, an environment variable, a key of the file and a row of the manual at once: its name,
type, default and help are all there is to say.
"""

import difflib
import ipaddress
import os
import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from trivium.tls import Tls, read_tls
from trivium.types.errors import Code, ConfigError, ServeError
from trivium.types.findings import Finding, Severity

PREFIX = "TRIVIUM_"
_LONG = (2**31 - 1) / 1000  # gRPC counts milliseconds in 32 bits

REMOVED = {"grpc_layer": "gRPC is served by Trivium's own HTTP/2 alone"}
"""Options that earlier versions had, each with the reason why it is gone. Whoever sets one is asked to drop it."""


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
        "Whose routes, error bodies and headers: native, djl, torchserve or triton.",
        choices=("native", "djl", "torchserve", "triton"),
    )
    server_name: str = _option("", "Name in the v2 protocol's metadata; the profile's own if empty.")
    no_http: bool = _option(False, "Do not serve HTTP.")
    http_port: int = _option(8080, "Port for HTTP; 0 takes a free one.", most=65535)
    reuse_http_port: bool = _option(False, "Share the HTTP port with other servers that do so, too.")
    no_grpc: bool = _option(False, "Do not serve gRPC.")
    grpc_host: str = _option("", "Address to listen on for gRPC, where it is not that of --host.")
    grpc_port: int = _option(8001, "Port for gRPC; 0 takes a free one.", most=65535)
    reuse_grpc_port: bool = _option(False, "Share the gRPC port with other servers that do so, too.")
    grpc_tls_certificate: str = _option(
        "", "PEM file with the certificate chain; with --grpc-tls-key gRPC is served over TLS alone."
    )
    grpc_tls_key: str = _option("", "PEM file with that certificate's private key, not encrypted.")
    grpc_tls_client_authorities: str = _option(
        "", "PEM file with authorities: only clients that have a certificate of theirs may call gRPC."
    )
    grpc_keepalive_time: float = _option(
        7200.0, "Seconds of silence before a gRPC connection is pinged.", 0.001, _LONG
    )
    grpc_keepalive_timeout: float = _option(
        20.0, "Seconds in which that ping must be answered.", 0.001, _LONG
    )
    grpc_min_ping_interval: float = _option(
        300.0, "Seconds that gRPC clients must leave between their own pings.", 0, _LONG
    )
    grpc_pings_without_calls: bool = _option(
        False, "Ping gRPC connections that have no call, and let their clients do so."
    )
    grpc_pings_without_data: int = _option(
        2, "Pings in a row on a gRPC connection without data between; 0 for any.", most=2**31 - 1
    )
    grpc_ping_strikes: int = _option(
        2, "Pings too early that cut a gRPC client off; 0 for none.", 0, 2**31 - 1
    )
    grpc_connection_age: float = _option(0.0, "Seconds that a gRPC connection lasts; 0 for ever.", 0, _LONG)
    grpc_connection_grace: float = _option(0.0, "Seconds for its calls to finish; 0 for ever.", 0, _LONG)
    grpc_compression: str = _option(
        "none", "How gRPC responses are packed.", choices=("none", "gzip", "deflate")
    )
    grpc_message_bytes: int = _option(
        0, "Largest gRPC message, where it is not --max-body-bytes; 0 if it is.", most=2**31 - 1
    )
    metrics_host: str = _option("", "Address to listen on for metrics alone, where it is not that of --host.")
    metrics_port: int = _option(
        -1, "Port for metrics alone; 0 takes a free one, -1 has none: then they are at /metrics.", -1, 65535
    )
    metrics_interval: float = _option(2.0, "Seconds for which a reading of the machine is good.")
    metrics_quantiles: str = _option("", "Quantiles of latencies to measure, like 0.5,0.99; costs time.")
    metrics_first_part: bool = _option(False, "Measure the time to the first of several answers.")
    no_duration_metrics: bool = _option(False, "No sums of latencies among the metrics.")
    no_cpu_metrics: bool = _option(False, "No metrics of the machine.")
    no_gpu_metrics: bool = _option(False, "No metrics of GPUs.")
    model_control: str = _option(
        "explicit",
        "Who changes what is served: clients (explicit), the folders as they change (poll), nobody (none).",
        choices=("explicit", "poll", "none"),
    )
    poll_seconds: float = _option(15.0, "Seconds between two looks at the folders, with poll.", 0.01)
    model_config_name: str = _option("", "Configuration to prefer in a Triton model's folder configs.")
    queue_items: int = _option(1000, "Requests that may wait per model before new ones are refused.", 1)
    max_connections: int = _option(4096, "Open connections, and gRPC calls, before new ones are refused.", 1)
    worker_items: int = _option(0, "Requests after which a worker process is replaced; 0 for never.")
    worker_growth: int = _option(
        0, "Bytes by which a worker process may grow before it is replaced; 0 for any growth."
    )
    no_shared_processor: bool = _option(
        False, "Never put instances on the event loop's processor, even where the two take turns."
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
    forward_metadata: str = _option("", "Regular expression: as --forward-headers, for gRPC's metadata.")
    open_management: bool = _option(
        False, "Let whoever reaches this server load, unload and change settings, beyond loopback, too."
    )
    restricted_rpcs: str = _option("", "As --restricted-apis, for gRPC: groups of RPCs that metadata open.")
    restricted_apis: str = _option(
        "",
        "Groups of v2 routes over HTTP, and the header that opens them: 'model-repository,logging:admin-key=SECRET'. "
        "Beyond loopback models can be loaded and unloaded so alone.",
    )
    ready_despite_failures: bool = _option(
        False, "Be ready as soon as the server answers, whatever did not load."
    )
    unique_names: bool = _option(False, "Serve none of several models of one name, instead of the first.")
    default_rows: int = _option(4, "Largest batch of a model whose file alone says that it batches.", 0)
    no_completion: bool = _option(False, "Complete no Triton configuration: what lacks is an error.")
    load_threads: int = _option(4, "Models that are opened at the same time.", 1, 1024)
    load_retries: int = _option(0, "How often loading a version is tried again after it failed.", most=1000)
    cache_bytes: int = _option(
        0, "Bytes of answers that are kept and given again, for models that ask for it; 0 for none."
    )
    rate_limit: str = _option(
        "off",
        "Do instances run only while the resources that their models claim are free? off or execution_count.",
        choices=("off", "execution_count"),
    )
    rate_limit_resources: str = _option(
        "", "How much there is of them: 'NAME:COUNT' or, on one GPU, 'NAME:COUNT:GPU', with commas between."
    )
    idle_timeout: float = _option(75.0, "Seconds before a connection without a request is closed.")
    header_timeout: float = _option(10.0, "Seconds in which a request head must have arrived.")
    body_timeout: float = _option(20.0, "Seconds for a body, plus its size at the slowest rate.")
    write_timeout: float = _option(
        30.0, "Seconds in which a client must take its answer at the slowest rate."
    )
    slowest_rate: int = _option(16 * 2**10, "Bytes per second below which a client is too slow.", 1)
    drain_timeout: float = _option(30.0, "Seconds that requests in work get to finish after SIGTERM.")
    trace_file: str = _option(
        "", "File for traces of requests, in Triton's JSON; which are traced --trace-levels and clients say."
    )
    trace_endpoint: str = _option(
        "", "URL of a collector that takes traces by OTLP over HTTP; not together with --trace-file."
    )
    trace_resource: str = _option(
        "service.name=trivium", "What such traces say of this server: KEY=VALUE, with commas between."
    )
    trace_queue: int = _option(2048, "Spans that may wait for the collector.", 1)
    trace_delay: float = _option(5.0, "Seconds between two deliveries to the collector.", 0.001, _LONG)
    trace_batch: int = _option(512, "Spans that are delivered at once.", 1)
    trace_levels: str = _option(
        "", "What is traced from the start: timestamps, tensors, or both with a comma."
    )
    trace_rate: int = _option(
        1000, "One request in so many is traced; 0: those with a trace context.", 0, 2**31 - 1
    )
    trace_count: int = _option(
        -1, "How many requests are traced until clients say more; -1: any number.", -1, 2**31 - 1
    )
    trace_frequency: int = _option(
        0, "Traces after which a numbered file is begun; 0 puts all into one.", most=2**31 - 1
    )
    access_log: str = _option(
        "", "File for a JSON line per request or gRPC call; '-' is standard output; empty is none."
    )
    log_level: str = _option(
        "warning", "debug, info, warning or error.", choices=("debug", "info", "warning", "error")
    )

    @property
    def is_loopback(self) -> bool:
        """Does nobody but this machine reach what listens?"""
        return not self.wide

    @property
    def wide(self) -> str:
        """The first option that has something listen beyond this machine, with its value; empty if none does."""
        own = {"--grpc-host": self.grpc_host or self.host, "--metrics-host": self.metrics_host or self.host}
        hosts = {"--host": self.host, **own}
        return next((f"{name} {host}" for name, host in hosts.items() if not _is_loopback(host)), "")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_grpc_tls(config: ServerConfig) -> Tls | None:
    """The files that the options name; None where none is named. INVALID for files that do not make a pair."""
    return read_tls(config.grpc_tls_certificate, config.grpc_tls_key, config.grpc_tls_client_authorities)


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
    if key in REMOVED:
        found = f"was removed: {REMOVED[key]}"
        faults.append(Finding(Severity.ERROR, file, None, key, found, mend="Drop it."))
        return
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
