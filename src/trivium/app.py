"""The composition root: which formats, engines and protocols there are, and how a server is put together.

Adding one is a file in its folder and a row in a table here. Nothing else in the package knows them by name.
"""

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from os import PathLike
from pathlib import Path

from trivium.config import ServerConfig
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
from trivium.frontends.http import HttpFrontend
from trivium.frontends.limits import HttpLimits
from trivium.profiles import routes
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Engine, Format
from trivium.types.payload import PayloadKind
from trivium.types.spec import Defaults, ModelSpec, Unreadable

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
    table = routes(config.profile, VERSION)
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


async def examine(paths: Iterable[Path], config: ServerConfig) -> tuple[list[ModelSpec], list[Unreadable]]:
    """What serving these paths would mean, without serving: specs as they would run, and what would not."""
    async with build(config) as server:
        add_all(server, paths)
        return await server.examine()


def add_all(server: Server, paths: Iterable[Path]) -> None:
    """Raises the first path's NOT_FOUND."""
    for path in paths:
        server.add(path)
