"""The composition root: which formats, engines and protocols there are, and how a server is put together.

Adding one is a file in its folder and a row in a table here. Nothing else in the package knows them by name.
"""

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from os import PathLike

from trivium import profiles, tracing
from trivium.config import protocol_facts
from trivium.config.core_config import core_config
from trivium.config.options import ServerConfig
from trivium.core.models.inspector import ModelInspector
from trivium.core.models.lifecycle import Progress
from trivium.core.server import CoreServices, Server
from trivium.core.workers.host import program
from trivium.devices import count_gpus
from trivium.dialects.djl.metric_lines import read_metric
from trivium.dialects.torchserve.meter import SHARED as METER
from trivium.dialects.triton.backends import PRIVATE_REGIONS
from trivium.dialects.triton.call_texts import translate_error
from trivium.engines.hf.engine import ENGINE as HF
from trivium.engines.identity import ENGINE as IDENTITY
from trivium.engines.onnx.engine import ENGINE as ONNX
from trivium.engines.python import PythonEngine
from trivium.engines.torch.engine import ENGINE as TORCH
from trivium.environments.store import EnvironmentStore
from trivium.fetchers.gate import file_gate, gate
from trivium.fetchers.http import FETCHER as WEB
from trivium.fetchers.s3 import FETCHER as S3
from trivium.formats.bare import FORMAT as BARE
from trivium.formats.djl import repository as djl_format
from trivium.formats.huggingface.repository import FORMAT as HUGGING_FACE
from trivium.formats.torchserve import repository as torchserve_format
from trivium.formats.triton.repository import FORMAT as TRITON
from trivium.frontends.access_log import AnswerLog
from trivium.frontends.answer_counts import CountedProtocol
from trivium.frontends.entrance import Entrance
from trivium.frontends.h2.frontend import H2Frontend
from trivium.frontends.h2.state import grpc_limits
from trivium.frontends.http.frontend import HttpFrontend
from trivium.frontends.limits import http_limits
from trivium.frontends.renamed_service import RenamedService
from trivium.frontends.timestamps import TimestampedRpcs
from trivium.guard import ServerGuard
from trivium.machine.python_commands import own_module
from trivium.protocols.djl import grpc as djl_rpc
from trivium.protocols.djl import http as djl
from trivium.protocols.djl.own_metrics import own_metrics as djl_metrics
from trivium.protocols.kserve import grpc as kserve_rpc
from trivium.protocols.kserve import http as kserve
from trivium.protocols.openai import http as openai
from trivium.protocols.prometheus import http as prometheus
from trivium.protocols.torchserve import grpc as torchserve_rpc
from trivium.protocols.torchserve import http as torchserve
from trivium.protocols.torchserve import metrics as torchserve_metrics
from trivium.protocols.torchserve import own_metrics as torchserve_own
from trivium.translators.engine import engine_finder
from trivium.translators.kinds import kinds
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import (
    NO_OBSERVER,
    Engine,
    Fetcher,
    Format,
    RegionViews,
    RunObserver,
    WireProtocol,
)
from trivium.types.listeners import Listener, Transport
from trivium.types.payload import PayloadKind
from trivium.types.protocol_context import HttpProtocolEntry, ProtocolContext, RpcProtocolEntry, answer_counts
from trivium.types.recording import ServingRecorder
from trivium.types.sources import Place, located
from trivium.types.spec import InvalidModel, ModelSpec

VERSION = version("trivium")

_BOTH, _TENSORS = frozenset({PayloadKind.TENSORS, PayloadKind.RAW}), frozenset({PayloadKind.TENSORS})
_python = partial(PythonEngine, interpreter=sys.executable, environment=os.environ, store=EnvironmentStore())
_ENGINES: tuple[Engine, ...] = (
    *(ONNX, TORCH, HF, IDENTITY),
    _python("djl", _BOTH | {PayloadKind.LISTED}, read_metric=read_metric),
    _python("torchserve", _BOTH),
    _python("triton", _TENSORS, words=translate_error),
)
ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in _ENGINES}
FORMATS: Sequence[Format] = (
    *(BARE, TRITON, torchserve_format.made(os.environ)),
    *(HUGGING_FACE, djl_format.made(os.environ)),
)
FETCHERS: Sequence[Fetcher] = (WEB, S3)
TRANSLATORS = kinds(file_gate(FETCHERS, seconds=30.0))
FIND_ENGINE = engine_finder(ENGINES, TRANSLATORS)
HTTP_PROTOCOLS: Mapping[str, HttpProtocolEntry] = {
    "v2": kserve,
    "openai": openai,
    "djl": djl,
    "torchserve": torchserve,
    "prometheus": prometheus,
    "metrics of torchserve": torchserve_metrics,
}
RPC_PROTOCOLS: Mapping[str, RpcProtocolEntry] = {
    "v2": kserve_rpc,
    "djl": djl_rpc,
    "torchserve": torchserve_rpc,
    "v2 of torchserve": RenamedService(
        kserve_rpc,
        "inference.GRPCInferenceService",
        "org.pytorch.serve.grpc.openinference.GRPCInferenceService",
    ),
}
_NOT_READY = {"djl": 424}  # server that is stood in for -> its status for a probe of what is not ready
_OWN_METRICS = {"djl": djl_metrics, "torchserve": torchserve_own.own_metrics}
"""The same -> its metrics by their own names, beside ours."""

_COUNTED = ("torchserve",)  # the same, where answers over HTTP are counted by status
_SCRAPED_BY = {"torchserve": ("metrics of torchserve", METER)}
"""Server that is stood in for -> its own way to be scraped, and where it keeps its metrics, if it does."""
PROFILES = profiles.profiles(HTTP_PROTOCOLS, RPC_PROTOCOLS)
PROBE_COMMAND = own_module("trivium.cli.probe")
WORKER_COMMAND = own_module("trivium.cli.worker")


def build(
    config: ServerConfig,
    observer: RunObserver = NO_OBSERVER,
    formats: Sequence[Format] = FORMATS,
    recorder: ServingRecorder | None = None,
) -> Server:
    """Make a server with nothing in it, on the loop that will run it. It is closed in the end."""
    settings = core_config(config, VERSION, count_gpus(), tracing.settings(config), PRIVATE_REGIONS)
    _check_engines(settings.defaults.engine_parameters)
    guard, exporter = ServerGuard(), tracing.exporter(config)
    host = partial(program, WORKER_COMMAND, os.environ)
    fetch = gate(FETCHERS, config.models.fetch_from, config.models.fetch_bytes, config.models.fetch_seconds)
    settings = replace(
        settings.in_folder(guard.scratch), is_patient=PROFILES[config.server.profile].is_patient
    )
    services = CoreServices(
        ModelInspector(PROBE_COMMAND, guard).facts, host, observer, exporter, guard, fetch, recorder
    )
    return Server(formats, FIND_ENGINE, services, settings)


def _check_engines(parameters: Iterable[str]) -> None:
    """Refuse a parameter of an engine that there is not: it would be ignored in silence."""
    for name in parameters:
        engine = name.partition(".")[0]
        if engine not in ENGINES:
            raise ServeError(
                Code.INVALID,
                f"--engine-parameters: there is no engine '{engine}' ({name}); there are {', '.join(sorted(ENGINES))}.",
            )


@asynccontextmanager
async def serving(
    *paths: str | PathLike[str], config: ServerConfig | None = None, progress: Progress | None = None
) -> AsyncIterator[Server]:
    """Serve model folders and files inside this program, without HTTP, until the block ends.

    Raises ServeError (NOT_FOUND) for a path in which nothing is recognised, and LOAD_FAILED if a model fails.
    """
    server = build(config or ServerConfig())
    async with server:
        add_all(server, (located(os.fspath(path)) for path in paths))
        listing = await server.start(progress)
        for row in listing.versions:
            if row.reason:
                raise ServeError(Code.LOAD_FAILED, f"Model '{row.model}' did not load. {row.reason}")
        yield server


FrontEnd = HttpFrontend | H2Frontend


def listeners(config: ServerConfig) -> list[Listener]:
    """List where a server of this configuration listens, with the routes served there. Raises INVALID for an option
    that has no effect under its profile.
    """
    if config.torchserve.open_inference and config.server.profile != "torchserve-command":
        raise ServeError(
            Code.INVALID,
            "--torchserve-open-inference has no effect here: under --profile "
            f"{config.server.profile} /v2 is not TorchServe's. Give --profile torchserve-command, or leave it out.",
        )
    return profiles.listeners(PROFILES[config.server.profile], config)


def front_end(
    server: Server, config: ServerConfig, listener: Listener, entrance: Entrance, log: AnswerLog | None = None
) -> FrontEnd:
    """Make what serves one listener, and writes all that is asked there into `log`, if there is one. Raises INVALID for
    options that cannot be used.
    """
    return _FRONT_ENDS[listener.transport](server, config, listener, entrance, log)


def _over_http(
    server: Server, config: ServerConfig, listener: Listener, entrance: Entrance, log: AnswerLog | None
) -> FrontEnd:
    limits = replace(http_limits(config), says_keep_alive=listener.says_keep_alive)
    if not listener.is_logged:
        limits = replace(limits, access_log=None)
    return HttpFrontend(
        server, *http_routes(listener, config, server.regions, server.shared), limits, entrance, log
    )


def http_routes(
    listener: Listener,
    config: ServerConfig,
    regions: RegionViews | None = None,
    shared: dict[str, object] | None = None,
) -> tuple[Mapping[str, WireProtocol], WireProtocol]:
    """Make the protocols of one listener: by the first segment of the path, and the one that refuses all else."""
    context = protocol_facts.on_listener(protocol_context(config), config, listener, regions, shared)
    made: dict[str, WireProtocol] = {}
    for name in listener.protocols:
        owned = frozenset(route.prefix for route in listener.routes if route.protocol == name)
        protocol = HTTP_PROTOCOLS[_scraped_by(name, context, config)]
        made[name] = protocol.make(replace(_for(context, name, config), prefixes=owned))
    if _are_counted(context, config):
        counts = answer_counts(context.shared)
        made = {name: CountedProtocol(protocol, counts) for name, protocol in made.items()}
    return {route.prefix: made[route.protocol] for route in listener.routes}, made[listener.fallback]


def _over_grpc(
    server: Server, config: ServerConfig, listener: Listener, entrance: Entrance, log: AnswerLog | None
) -> FrontEnd:
    own = protocol_context(config)
    context = protocol_facts.on_listener(own, config, listener, server.regions, server.shared)
    made = {name: RPC_PROTOCOLS[name].make(_for(context, name, config)) for name in listener.protocols}
    if config.tracing.has_place or server.is_recorded:
        made = {name: TimestampedRpcs(protocol) for name, protocol in made.items()}
    services = {route.prefix: made[route.protocol] for route in listener.routes}
    return H2Frontend(
        server, services, grpc_limits(config, listener.role), made[listener.fallback], entrance, log
    )


_FRONT_ENDS: Mapping[
    Transport, Callable[[Server, ServerConfig, Listener, Entrance, AnswerLog | None], FrontEnd]
] = {
    Transport.HTTP: _over_http,
    Transport.GRPC: _over_grpc,
}


def protocol_context(config: ServerConfig) -> ProtocolContext:
    """Gather the facts that the configuration has for protocols, the same for every listener."""
    return protocol_facts.protocol_context(
        config, *(PROFILES[config.server.profile].presents or ("trivium", VERSION))
    )


def _scraped_by(protocol: str, context: ProtocolContext, config: ServerConfig) -> str:
    """Return the protocol that serves in place of one: of a server that keeps metrics in its own words, these."""
    own, place = _SCRAPED_BY.get(PROFILES[config.server.profile].original, ("", ""))
    return own if protocol == "prometheus" and own and place in context.shared else protocol


def _are_counted(context: ProtocolContext, config: ServerConfig) -> bool:
    """Return whether answers are counted for metrics that are shown; a server that keeps its own counts by itself."""
    is_shown = _scraped_by("prometheus", context, config) == "prometheus" and not config.metrics.no_metrics
    return is_shown and PROFILES[config.server.profile].original in _COUNTED


def _for(context: ProtocolContext, protocol: str, config: ServerConfig) -> ProtocolContext:
    original = PROFILES[config.server.profile].original
    own = {
        "djl": asdict(config.djl),
        "openai": {"takes_only": original == "djl"},
        "torchserve": asdict(config.torchserve),
    }
    context = replace(context, own=own.get(protocol, {}))
    is_original = protocol == original or _scraped_by(protocol, context, config) != protocol
    if protocol == "prometheus" and original in _OWN_METRICS and not is_original:
        return replace(context, own_metrics=_OWN_METRICS[original](_for(context, original, config)))
    not_ready = _NOT_READY.get(original, context.not_ready)
    return replace(context, as_original=is_original, not_ready=not_ready)


async def examine(
    paths: Iterable[Place], config: ServerConfig, formats: Sequence[Format] = FORMATS
) -> tuple[list[ModelSpec], list[InvalidModel]]:
    """Read these paths without serving them: return the specs as they would run, and what would not run."""
    async with build(config, formats=formats) as server:
        add_all(server, paths)
        return await server.examine()


def add_all(server: Server, paths: Iterable[Place]) -> None:
    """Raises the first path's NOT_FOUND."""
    for path in paths:
        server.add(path)
