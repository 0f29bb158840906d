"""The composition root: which formats, engines and protocols there are, and how a server is put together.

Adding one is a file in its folder and a row in a table here. Nothing else in the package knows them by name.
"""

import os
import re
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from os import PathLike
from pathlib import Path

from trivium import tracing
from trivium.config.options import MetricsConfig, ServerConfig
from trivium.core.instances.rate_policy import parse_limits
from trivium.core.models.inspector import ModelInspector
from trivium.core.models.lifecycle import Progress
from trivium.core.observability.quantiles import parse_quantiles
from trivium.core.server import CoreServices, Server
from trivium.core.workers.host import program
from trivium.dialects.triton.backends import PRIVATE_REGIONS
from trivium.dialects.triton.call_texts import translate_error
from trivium.engines.identity import ENGINE as IDENTITY
from trivium.engines.onnx.engine import ENGINE as ONNX
from trivium.engines.python import PythonEngine
from trivium.engines.torch.engine import ENGINE as TORCH
from trivium.formats.bare import FORMAT as BARE
from trivium.formats.djl.repository import FORMAT as DJL
from trivium.formats.torchserve.repository import FORMAT as TORCHSERVE
from trivium.formats.triton.repository import FORMAT as TRITON
from trivium.frontends.h2.frontend import H2Frontend
from trivium.frontends.h2.state import GrpcLimits
from trivium.frontends.http.frontend import HttpFrontend
from trivium.frontends.limits import HttpLimits
from trivium.frontends.timestamps import TimestampedRpcs
from trivium.profiles import GRPC, HTTP, METRICS, PROFILES
from trivium.protocols.djl.http import DjlHttp
from trivium.protocols.kserve.abilities import KServeOptions
from trivium.protocols.kserve.grpc import KServeGrpc
from trivium.protocols.kserve.grpc_restricted import parse_rpc_restrictions
from trivium.protocols.kserve.http import KServeHttp
from trivium.protocols.kserve.restricted import parse_restrictions
from trivium.protocols.prometheus.http import MetricsOptions, PrometheusHttp
from trivium.protocols.torchserve.http import TorchServeHttp
from trivium.tls import read_tls
from trivium.types.core_config import CoreConfig, ModelControlMode
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import NO_OBSERVER, Engine, Format, RpcProtocol, RunObserver, WireProtocol
from trivium.types.listeners import Listener
from trivium.types.metrics import Measurements
from trivium.types.payload import PayloadKind
from trivium.types.running import unchanged
from trivium.types.spec import Defaults, InvalidModel, ModelSpec

VERSION = version("trivium")

RAW, TENSORS = PayloadKind.RAW, PayloadKind.TENSORS
_DIALECTS = {"djl": {TENSORS, RAW}, "torchserve": {TENSORS, RAW}, "triton": {TENSORS}}
_WORDS = {"triton": translate_error}
_HANDLERS = [
    PythonEngine(dialect, frozenset(takes), sys.executable, os.environ, _WORDS.get(dialect, unchanged))
    for dialect, takes in _DIALECTS.items()
]

_ENGINES: tuple[Engine, ...] = (ONNX, TORCH, IDENTITY, *_HANDLERS)
ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in _ENGINES}
FORMATS: Sequence[Format] = (BARE, TRITON, TORCHSERVE, DJL)
PROBE_COMMAND = (sys.executable, "-m", "trivium.cli.probe")
WORKER_COMMAND = (sys.executable, "-m", "trivium.cli.worker")

AnyPath = str | PathLike[str]


def count_gpus(devices: Path = Path("/dev")) -> int:
    """NVIDIA GPUs that this process may use, by their device files; whether an engine can is its own to say."""
    return len(list(devices.glob("nvidia[0-9]*")))


def build(config: ServerConfig, observer: RunObserver = NO_OBSERVER) -> Server:
    """Make a server with nothing in it, on the loop that will run it. It removes its scratch folder itself."""
    host = partial(program, WORKER_COMMAND, os.environ)
    inspector = ModelInspector(PROBE_COMMAND)
    services = CoreServices(inspector.facts, host, observer, tracing.exporter(config))
    return Server(FORMATS, ENGINES, services, _core_config(config))


def _core_config(config: ServerConfig) -> CoreConfig:
    models, workers = config.models, config.workers
    return CoreConfig(
        version=VERSION,
        defaults=Defaults(
            config_name=_config_name(models.config_name),
            queue_items=models.queue_items,
            gpus=count_gpus(),
            cpus=len(os.sched_getaffinity(0)),
            scratch=Path(tempfile.mkdtemp(prefix="trivium-")),
            max_rows=models.default_rows,
            completes=not models.no_completion,
        ),
        loads_at_once=models.load_threads,
        load_retries=models.load_retries,
        unique_names=models.unique_names,
        is_lenient=models.ready_despite_failures,
        control=ModelControlMode(models.control),
        poll_seconds=models.poll_seconds,
        cache_bytes=models.cache_bytes,
        resources=None if workers.rate_limit == "off" else parse_limits(workers.rate_limit_resources),
        recycle_items=workers.items or None,
        recycle_bytes=workers.growth or None,
        measures=_measures(config.metrics),
        traces=tracing.settings(config),
        client_shared_memory=config.security.client_shared_memory,
        reserved_regions=PRIVATE_REGIONS,
    )


@asynccontextmanager
async def serving(
    *paths: AnyPath, config: ServerConfig | None = None, progress: Progress | None = None
) -> AsyncIterator[Server]:
    """Serve model folders and files inside this program, without HTTP, until the block ends.

    Raises ServeError (NOT_FOUND) for a path in which nothing is recognised, and LOAD_FAILED if a model fails.
    """
    server = build(config or ServerConfig())
    async with server:
        add_all(server, map(Path, paths))
        listing = await server.start(progress)
        for row in listing.versions:
            if row.reason:
                raise ServeError(Code.LOAD_FAILED, f"Model '{row.model}' did not load. {row.reason}")
        yield server


def http_frontend(server: Server, config: ServerConfig) -> HttpFrontend:
    """Every protocol over HTTP, by the routes of the profile."""
    abilities = _abilities(server, config, _pattern("--forward-headers", config.http.forward_headers))
    return _over_http(server, config, HTTP, abilities)


def metrics_frontend(server: Server, config: ServerConfig) -> HttpFrontend:
    """Metrics alone, for a port of their own. What is asked there is not in the access log."""
    return _over_http(server, config, METRICS, KServeOptions())


def _over_http(server: Server, config: ServerConfig, name: str, abilities: KServeOptions) -> HttpFrontend:
    listener = _listener(config, name)
    limits = _limits(config) if listener.is_logged else replace(_limits(config), access_log=None)
    return HttpFrontend(server, *http_routes(listener, config, abilities), limits, listener.role)


def http_routes(
    listener: Listener, config: ServerConfig, abilities: KServeOptions
) -> tuple[Mapping[str, WireProtocol], WireProtocol]:
    """Make the protocols of one listener: by the first segment of the path, and the one that refuses all else."""
    names = {route.protocol for route in listener.routes} | {listener.fallback}
    made = {each: _HTTP_PROTOCOLS[each](config, abilities) for each in names}
    return {route.prefix: made[route.protocol] for route in listener.routes}, made[listener.fallback]


def _listener(config: ServerConfig, name: str) -> Listener:
    return next(each for each in PROFILES[config.server.profile].listeners if each.name == name)


def _identity(config: ServerConfig) -> tuple[str, str]:
    """Name and version that the v2 protocol tells; clients of Triton look for its own."""
    name, told = _TRITON if config.server.profile == "triton" else ("trivium", VERSION)
    return config.server.name or name, told


def _make_id() -> str:
    return str(uuid.uuid4())


def _djl(config: ServerConfig, abilities: KServeOptions) -> WireProtocol:
    return DjlHttp(_make_id, "application/json" if config.server.profile == "native" else "tensor/ndlist")


_TRITON = ("triton", "2.51.0")
_HTTP_PROTOCOLS: Mapping[str, Callable[[ServerConfig, KServeOptions], WireProtocol]] = {
    "v2": lambda config, abilities: KServeHttp(*_identity(config), abilities),
    "djl": _djl,
    "torchserve": lambda config, _: TorchServeHttp(_make_id, config.server.profile == "torchserve"),
    "prometheus": lambda config, _: PrometheusHttp(_shown(config.metrics)),
}
"""Name of a protocol in the profiles -> how one is made for a front end."""


def _limits(config: ServerConfig) -> HttpLimits:
    return HttpLimits(
        connections=config.server.max_connections,
        header_bytes=config.http.max_header_bytes,
        body_bytes=config.server.max_body_bytes,
        total_body_bytes=config.server.max_buffered_bytes,
        idle_seconds=config.http.idle_timeout,
        header_seconds=config.http.header_timeout,
        body_seconds=config.http.body_timeout,
        write_seconds=config.http.write_timeout,
        slowest_rate=config.http.slowest_rate,
        access_log=config.server.access_log or None,
        record_timestamps=tracing.can_trace(config),
    )


def _shown(metrics: MetricsConfig) -> MetricsOptions:
    return MetricsOptions(not metrics.no_duration_metrics, bool(metrics.quantiles), metrics.first_part)


def _measures(metrics: MetricsConfig) -> Measurements:
    return Measurements(
        parse_quantiles(metrics.quantiles),
        metrics.first_part,
        metrics.interval,
        not metrics.no_cpu_metrics,
        not metrics.no_gpu_metrics,
    )


def _config_name(name: str) -> str:
    if "/" in name or name.startswith(".") or any(map(str.isspace, name)):
        raise ServeError(
            Code.INVALID,
            f"--model-config-name {name!r} is no name of a file without its ending. Give one like 'fast', which "
            "stands for configs/fast.pbtxt in a model's folder.",
        )
    return name


def _pattern(option: str, text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise ServeError(
            Code.INVALID, f"{option} {text!r} is no regular expression: {error}. Correct it."
        ) from error


def _abilities(server: Server, config: ServerConfig, forwards: re.Pattern[str] | None) -> KServeOptions:
    return KServeOptions(
        may_change=config.is_loopback or config.security.open_management,
        regions=server.regions,
        shares_memory=config.security.client_shared_memory,
        forwards=forwards,
        most_unpacked=config.server.max_body_bytes,
        most_unpacked_together=config.server.max_buffered_bytes,
        restricted=parse_restrictions(config.security.restricted_apis),
        as_triton=config.server.profile == "triton",
        restricted_rpcs=parse_rpc_restrictions(config.security.restricted_rpcs),
    )


def grpc_frontend(server: Server, config: ServerConfig) -> H2Frontend:
    """Make the front end for the v2 protocol over gRPC. Raises INVALID for TLS files that cannot be used."""
    names = _identity(config)
    abilities = _abilities(server, config, _pattern("--forward-metadata", config.grpc.forward_metadata))
    protocol: RpcProtocol = KServeGrpc(*names, abilities)
    if tracing.can_trace(config):
        protocol = TimestampedRpcs(protocol)
    tls = read_tls(config.grpc.tls_certificate, config.grpc.tls_key, config.grpc.tls_client_authorities)
    return H2Frontend(
        server,
        {route.prefix: protocol for route in _listener(config, GRPC).routes},
        _grpc_limits(config),
        tls,
    )


def _grpc_limits(config: ServerConfig) -> GrpcLimits:
    return GrpcLimits(
        calls=config.server.max_connections,
        message_bytes=config.grpc.message_bytes or config.server.max_body_bytes,
        total_message_bytes=config.server.max_buffered_bytes,
        keepalive_seconds=config.grpc.keepalive_time,
        keepalive_timeout=config.grpc.keepalive_timeout,
        ping_seconds=config.grpc.min_ping_interval,
        pings_without_calls=config.grpc.pings_without_calls,
        pings_without_data=config.grpc.pings_without_data,
        ping_strikes=config.grpc.ping_strikes,
        age_seconds=config.grpc.connection_age or None,
        grace_seconds=config.grpc.connection_grace or None,
        compression=config.grpc.compression,
        access_log=config.server.access_log or None,
    )


async def examine(paths: Iterable[Path], config: ServerConfig) -> tuple[list[ModelSpec], list[InvalidModel]]:
    """What serving these paths would mean, without serving: specs as they would run, and what would not."""
    async with build(config) as server:
        add_all(server, paths)
        return await server.examine()


def add_repository(server: Server, path: Path) -> None:
    """A folder of Triton's model folders; it may be empty still."""
    server.add(path, TRITON)


def presented(config: ServerConfig) -> tuple[str, str, tuple[str, ...]]:
    """Name, version and extensions, as the v2 protocol's clients are told."""
    profile, shares_memory = config.server.profile, config.security.client_shared_memory
    abilities = KServeOptions(shares_memory=shares_memory, as_triton=profile == "triton")
    return *_identity(config), abilities.extensions


def add_all(server: Server, paths: Iterable[Path]) -> None:
    """Raises the first path's NOT_FOUND."""
    for path in paths:
        server.add(path)
