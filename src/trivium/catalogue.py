"""The one list of all that there is: what reads and runs models, by `model_catalogue`, and protocols and servers.

Adding one is a file in its folder and a row here. Nothing else in the package knows them by name.
"""

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from os import PathLike
from typing import Any

from trivium import app
from trivium.app import Catalogue
from trivium.commands.asgi_application import AsgiApplication
from trivium.commands.life import ServerParts
from trivium.config import called, loading
from trivium.config.options import ServerConfig
from trivium.core.models.lifecycle import Progress
from trivium.core.server import Server
from trivium.frontends.renamed_service import RenamedService
from trivium.machine.python_commands import own_module
from trivium.model_catalogue import MODELS
from trivium.server_record import CONSOLE, REFLECTION, SCRAPED, ServerRecord
from trivium.servers.djl.server import SERVER as DJL
from trivium.servers.djl.wire import grpc as djl_rpc
from trivium.servers.djl.wire import http as djl
from trivium.servers.native.server import SERVER as NATIVE
from trivium.servers.torchserve.server import COMMAND as TORCHSERVE_COMMAND
from trivium.servers.torchserve.server import METERED, OPEN_INFERENCE
from trivium.servers.torchserve.server import SERVER as TORCHSERVE
from trivium.servers.torchserve.wire import grpc as torchserve_rpc
from trivium.servers.torchserve.wire import http as torchserve
from trivium.servers.torchserve.wire import metrics as torchserve_metrics
from trivium.servers.triton.server import SERVER as TRITONSERVER
from trivium.servers.triton.words.backends import PRIVATE_REGIONS
from trivium.servers.triton.words.trace_text import text as trace_text
from trivium.servers.triton.words.v2 import V2
from trivium.types.by_type import ByType
from trivium.types.errors import Code, ServeError
from trivium.types.protocol_context import HttpProtocolEntry, RpcProtocolEntry
from trivium.types.sources import located
from trivium.wires.openai import http as openai
from trivium.wires.operate import http as operate
from trivium.wires.prometheus import http as prometheus
from trivium.wires.reflection import grpc as reflection
from trivium.wires.v1 import http as rows
from trivium.wires.v2 import grpc as kserve_rpc
from trivium.wires.v2 import http as kserve

_HTTP: Mapping[str, HttpProtocolEntry] = {
    "v2": kserve,
    "v1": rows,
    "openai": openai,
    "djl": djl,
    "torchserve": torchserve,
    SCRAPED: prometheus,
    METERED: torchserve_metrics,
    CONSOLE: operate,
}
_RPC: Mapping[str, RpcProtocolEntry] = {
    "v2": kserve_rpc,
    "djl": djl_rpc,
    "torchserve": torchserve_rpc,
    OPEN_INFERENCE: RenamedService(
        kserve_rpc,
        "inference.GRPCInferenceService",
        "org.pytorch.serve.grpc.openinference.GRPCInferenceService",
    ),
    REFLECTION: reflection,
}
_SERVERS: Sequence[ServerRecord] = (
    NATIVE,
    DJL,
    TORCHSERVE,
    TORCHSERVE_COMMAND,
    TRITONSERVER,
)

TRANSLATORS = MODELS.translators
CATALOGUE = Catalogue(
    name="trivium",
    version=version("trivium"),
    engines=MODELS.engines,
    find_engine=MODELS.find_engine,
    formats=MODELS.formats,
    translators=MODELS.translators,
    fetchers=MODELS.fetchers,
    probe=MODELS.probe,
    http=_HTTP,
    rpc=_RPC,
    servers={each.name: each for each in _SERVERS},
    words=ByType(V2),
    trace_text=trace_text,
    worker=own_module("trivium.cli.worker"),
    reserved_regions=PRIVATE_REGIONS,
)


def configured(**options: Any) -> ServerConfig:
    """Make a configuration from options by name, like `configured(http_port=0, profile="triton")`.

    Raises ConfigError for an unknown option, which suggests the near one, and for a value that does not fit.
    """
    return loading.configured(CATALOGUE.schema, **options)


def asgi(*paths: str | PathLike[str] | Iterable[str | PathLike[str]], **options: Any) -> AsgiApplication:
    """Make an ASGI 3 application of model folders and files, which answers all HTTP routes that `trivium serve` would.

    `options` are those of `trivium serve` by their Python names, like `profile="triton"` or `max_body_bytes=2**20`;
    the environment is not read. Without `keys` or `open=True` only requests that come to an address of this machine
    alone are served. Nothing is loaded yet: see `AsgiApplication`. Raises ConfigError for an option that there is not,
    or whose value does not fit, and INVALID for one of sockets, which are the calling server's.
    """
    config = configured(**options)
    if without_effect := called.without_effect(CATALOGUE.schema, config):
        raise ServeError(Code.INVALID, without_effect)
    listed = [path for each in paths for path in ([each] if isinstance(each, str | PathLike) else each)]
    if not listed:
        raise ServeError(
            Code.INVALID, 'trivium.asgi was given no models. Give folders or files: asgi("models").'
        )
    places = [located(os.fspath(path)) for path in listed]
    return AsgiApplication(ServerParts(catalogue=CATALOGUE, config=called.as_reached(config)), places)


@asynccontextmanager
async def serving(
    *paths: str | PathLike[str], config: ServerConfig | None = None, progress: Progress | None = None
) -> AsyncIterator[Server]:
    """Serve model folders and files inside this program, without HTTP, until the block ends.

    Raises ServeError (NOT_FOUND) for a path in which nothing is recognised, and LOAD_FAILED if a model fails.
    """
    server = app.build(CATALOGUE, config or ServerConfig())
    async with server:
        app.add_all(server, (located(os.fspath(path)) for path in paths))
        listing = await server.start(progress)
        for row in listing.versions:
            if row.reason:
                raise ServeError(Code.LOAD_FAILED, f"Model '{row.model}' did not load. {row.reason}")
        yield server
