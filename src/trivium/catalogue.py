"""The one list of all that there is: engines, formats, protocols, servers, translators and fetchers.

Adding one is a file in its folder and a row here. Nothing else in the package knows them by name.
"""

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from os import PathLike
from typing import Any

from trivium import app
from trivium.app import Catalogue
from trivium.config import loading
from trivium.config.options import ServerConfig
from trivium.core.models.lifecycle import Progress
from trivium.core.server import Server
from trivium.engines.hf.engine import ENGINE as HF
from trivium.engines.identity import ENGINE as IDENTITY
from trivium.engines.onnx.engine import ENGINE as ONNX
from trivium.engines.python import PythonEngine
from trivium.engines.torch.engine import ENGINE as TORCH
from trivium.environments.store import EnvironmentStore
from trivium.fetchers.gate import file_gate
from trivium.fetchers.http import FETCHER as WEB
from trivium.fetchers.s3 import FETCHER as S3
from trivium.formats.bare import FORMAT as BARE
from trivium.formats.huggingface.repository import FORMAT as HUGGING_FACE
from trivium.frontends.renamed_service import RenamedService
from trivium.machine.python_commands import own_module
from trivium.server_record import SCRAPED, ServerRecord
from trivium.servers.djl.folder import repository as djl_format
from trivium.servers.djl.server import SERVER as DJL
from trivium.servers.djl.wire import grpc as djl_rpc
from trivium.servers.djl.wire import http as djl
from trivium.servers.djl.words.metric_lines import read_metric
from trivium.servers.native.server import SERVER as NATIVE
from trivium.servers.torchserve.archive import repository as torchserve_format
from trivium.servers.torchserve.server import COMMAND as TORCHSERVE_COMMAND
from trivium.servers.torchserve.server import METERED, OPEN_INFERENCE
from trivium.servers.torchserve.server import SERVER as TORCHSERVE
from trivium.servers.torchserve.wire import grpc as torchserve_rpc
from trivium.servers.torchserve.wire import http as torchserve
from trivium.servers.torchserve.wire import metrics as torchserve_metrics
from trivium.servers.triton.repository.repository import FORMAT as TRITON
from trivium.servers.triton.server import SERVER as TRITONSERVER
from trivium.servers.triton.words.backends import PRIVATE_REGIONS
from trivium.servers.triton.words.call_texts import translate_error
from trivium.servers.triton.words.trace_text import text as trace_text
from trivium.servers.triton.words.v2 import V2
from trivium.translators.engine import engine_finder
from trivium.translators.kinds import kinds
from trivium.types.by_type import ByType
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Engine, Fetcher, Format
from trivium.types.payload import PayloadKind
from trivium.types.protocol_context import HttpProtocolEntry, RpcProtocolEntry
from trivium.types.sources import located
from trivium.wires.openai import http as openai
from trivium.wires.prometheus import http as prometheus
from trivium.wires.v2 import grpc as kserve_rpc
from trivium.wires.v2 import http as kserve

_BOTH, _TENSORS = frozenset({PayloadKind.TENSORS, PayloadKind.RAW}), frozenset({PayloadKind.TENSORS})
_python = partial(PythonEngine, interpreter=sys.executable, environment=os.environ, store=EnvironmentStore())
_ENGINES: tuple[Engine, ...] = (
    *(ONNX, TORCH, HF, IDENTITY),
    _python("djl", _BOTH | {PayloadKind.LISTED}, read_metric=read_metric),
    _python("torchserve", _BOTH),
    _python("triton", _TENSORS, words=translate_error),
)
_FORMATS: Sequence[Format] = (
    *(BARE, TRITON, torchserve_format.made(os.environ)),
    *(HUGGING_FACE, djl_format.made(os.environ)),
)
_FETCHERS: Sequence[Fetcher] = (
    WEB,
    S3,
)
_HTTP: Mapping[str, HttpProtocolEntry] = {
    "v2": kserve,
    "openai": openai,
    "djl": djl,
    "torchserve": torchserve,
    SCRAPED: prometheus,
    METERED: torchserve_metrics,
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
}
_SERVERS: Sequence[ServerRecord] = (
    NATIVE,
    DJL,
    TORCHSERVE,
    TORCHSERVE_COMMAND,
    TRITONSERVER,
)

TRANSLATORS = kinds(file_gate(_FETCHERS, seconds=30.0))
_BY_NAME = {engine.name: engine for engine in _ENGINES}
CATALOGUE = Catalogue(
    name="trivium",
    version=version("trivium"),
    engines=_BY_NAME,
    find_engine=engine_finder(_BY_NAME, TRANSLATORS),
    formats=_FORMATS,
    fetchers=_FETCHERS,
    http=_HTTP,
    rpc=_RPC,
    servers={each.name: each for each in _SERVERS},
    words=ByType(V2),
    trace_text=trace_text,
    probe=own_module("trivium.cli.probe"),
    worker=own_module("trivium.cli.worker"),
    reserved_regions=PRIVATE_REGIONS,
)


def configured(**options: Any) -> ServerConfig:
    """Make a configuration from options by name, like `configured(http_port=0, profile="triton")`.

    Raises ConfigError for an unknown option, which suggests the near one, and for a value that does not fit.
    """
    return loading.configured(CATALOGUE.schema, **options)


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
