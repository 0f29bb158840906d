"""The composition root: which formats, engines and protocols there are, and how a server is put together.

Adding one is a file in its folder and a row in a table here. Nothing else in the package knows them by name.
"""

import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from trivium.config import ServerConfig, read_grpc_tls
from trivium.core.lifecycle import Progress
from trivium.core.probe import Probe
from trivium.core.server import Server
from trivium.core.workers.host import program
from trivium.engines.identity import ENGINE as IDENTITY
from trivium.engines.onnx.engine import ENGINE as ONNX
from trivium.engines.python import PythonEngine
from trivium.engines.torch.engine import ENGINE as TORCH
from trivium.formats.bare import FORMAT as BARE
from trivium.formats.djl.repository import FORMAT as DJL
from trivium.formats.torchserve.repository import FORMAT as TORCHSERVE
from trivium.formats.triton.repository import FORMAT as TRITON
from trivium.frontends.grpc_site import GrpcLimits
from trivium.frontends.http import HttpFrontend
from trivium.frontends.limits import HttpLimits
from trivium.profiles import routes
from trivium.protocols.kserve.abilities import Abilities
from trivium.protocols.kserve.grpc import KServeGrpc
from trivium.protocols.kserve.restricted import parse_restrictions
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Engine, Format
from trivium.types.payload import PayloadKind
from trivium.types.spec import Defaults, ModelSpec, Unreadable

if TYPE_CHECKING:
    from trivium.frontends.grpc_server import GrpcFrontend

VERSION = version("trivium")

RAW, TENSORS = PayloadKind.RAW, PayloadKind.TENSORS
_DIALECTS = {"djl": {TENSORS, RAW}, "torchserve": {TENSORS, RAW}, "triton": {TENSORS}}
_HANDLERS = [
    PythonEngine(dialect, frozenset(takes), sys.executable, os.environ)
    for dialect, takes in _DIALECTS.items()
]

_ENGINES: tuple[Engine, ...] = (ONNX, TORCH, IDENTITY, *_HANDLERS)
ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in _ENGINES}
FORMATS: Sequence[Format] = (BARE, TRITON, TORCHSERVE, DJL)
PROBE_COMMAND = (sys.executable, "-m", "trivium.cli.probe")
WORKER_COMMAND = (sys.executable, "-m", "trivium.cli.worker")

_FORK_SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"

AnyPath = str | PathLike[str]


def count_gpus(devices: Path = Path("/dev")) -> int:
    """NVIDIA GPUs that this process may use, by their device files; whether an engine can is its own to say."""
    return len(list(devices.glob("nvidia[0-9]*")))


def build(config: ServerConfig) -> Server:
    """A server with nothing in it; call it on the loop that will run it. It removes its scratch folder itself."""
    probe = Probe(PROBE_COMMAND)
    defaults = Defaults(
        queue_items=config.queue_items,
        gpus=count_gpus(),
        cpus=len(os.sched_getaffinity(0)),
        scratch=Path(tempfile.mkdtemp(prefix="trivium-")),
        recycle_items=config.worker_items or None,
        recycle_bytes=config.worker_growth or None,
    )
    host = partial(program, WORKER_COMMAND, os.environ)
    return Server(FORMATS, ENGINES, probe.facts, defaults, VERSION, host)


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
    table = routes(config.profile, VERSION, _abilities(server, config))
    limits = HttpLimits(
        connections=config.max_connections,
        header_bytes=config.max_header_bytes,
        body_bytes=config.max_body_bytes,
        total_body_bytes=config.max_buffered_bytes,
        idle_seconds=config.idle_timeout,
        header_seconds=config.header_timeout,
        body_seconds=config.body_timeout,
        write_seconds=config.write_timeout,
        slowest_rate=config.slowest_rate,
        access_log=config.access_log or None,
    )
    return HttpFrontend(
        server,
        table.owners,
        table.fallback,
        lambda target, size: server.lend(target.model, target.version, size),
        limits,
    )


def _abilities(server: Server, config: ServerConfig) -> Abilities:
    server.regions.is_allowed = config.client_shared_memory
    try:
        forwards = re.compile(config.forward_headers) if config.forward_headers else None
    except re.error as error:
        raise ServeError(
            Code.INVALID,
            f"--forward-headers {config.forward_headers!r} is no regular expression: {error}. Correct it.",
        ) from error
    return Abilities(
        may_change=config.is_loopback,
        regions=server.regions,
        shares_memory=config.client_shared_memory,
        forwards=forwards,
        most_unpacked=config.max_body_bytes,
        most_unpacked_together=config.max_buffered_bytes,
        restricted=parse_restrictions(config.restricted_apis),
    )


def grpc_frontend(server: Server, config: ServerConfig) -> "GrpcFrontend":
    """The v2 protocol over gRPC. UNSUPPORTED, with the install command, where grpcio lacks; INVALID for files of TLS
    that cannot be used.
    """
    tls = read_grpc_tls(config)
    try:
        with _without_fork_handlers():
            from trivium.frontends.grpc_server import GrpcFrontend
    except ImportError as error:
        raise ServeError(
            Code.UNSUPPORTED, f"grpcio cannot be imported ({error}). Install it: pip install 'grpcio>=1.66'"
        ) from error
    limits = GrpcLimits(
        calls=config.max_connections,
        message_bytes=config.max_body_bytes,
        total_message_bytes=config.max_buffered_bytes,
        keepalive_seconds=config.grpc_keepalive_time,
        keepalive_timeout=config.grpc_keepalive_timeout,
        ping_seconds=config.grpc_min_ping_interval,
        pings_without_calls=config.grpc_pings_without_calls,
        access_log=config.access_log or None,
    )
    return GrpcFrontend(server, KServeGrpc("trivium", VERSION, _abilities(server, config)), limits, tls)


@contextmanager
def _without_fork_handlers() -> Iterator[None]:
    """gRPC would prepare for every fork of this process, and say so each time; workers are started by exec, which
    needs none of that. It reads this variable when it is first imported; workers shall not inherit it.
    """
    before = os.environ.get(_FORK_SUPPORT)
    os.environ.setdefault(_FORK_SUPPORT, "0")
    try:
        yield
    finally:
        if before is None:
            del os.environ[_FORK_SUPPORT]


async def examine(paths: Iterable[Path], config: ServerConfig) -> tuple[list[ModelSpec], list[Unreadable]]:
    """What serving these paths would mean, without serving: specs as they would run, and what would not."""
    async with build(config) as server:
        add_all(server, paths)
        return await server.examine()


def add_all(server: Server, paths: Iterable[Path]) -> None:
    """Raises the first path's NOT_FOUND."""
    for path in paths:
        server.add(path)
