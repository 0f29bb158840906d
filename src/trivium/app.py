"""The composition root: builds a server, and what listens for it, from a catalogue of all that there is.

Knows no engine, format, protocol or server by name.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path

from trivium import profiles, tracing
from trivium.codecs.openapi import ServerTitle
from trivium.config import protocol_facts
from trivium.config.core_config import core_config
from trivium.config.engine_parameters import trusts_code
from trivium.config.options import ServerConfig
from trivium.config.schema import ConfigSchema
from trivium.core.models.inspector import ModelInspector
from trivium.core.server import Server
from trivium.core.services import CoreServices
from trivium.core.workers.host import program
from trivium.described_api import ListenerDescription, descriptors_of
from trivium.devices import count_gpus
from trivium.examination import ModelCatalogue, check_engines
from trivium.example_requests import example_request, example_requests
from trivium.exporters.trace_files import TraceText
from trivium.fetchers.gate import gate
from trivium.frontends.access_log import AnswerLog
from trivium.frontends.answer_counts import CountedProtocol
from trivium.frontends.asgi.frontend import AsgiFrontend
from trivium.frontends.entrance import Entrance
from trivium.frontends.h2.frontend import H2Frontend
from trivium.frontends.h2.state import grpc_limits
from trivium.frontends.http.frontend import HttpFrontend
from trivium.frontends.limits import http_limits
from trivium.frontends.timestamps import TimestampedRpcs
from trivium.guard import ServerGuard
from trivium.profiles import Profile
from trivium.server_record import CONSOLE, REFLECTION, SCRAPED, ServerRecord
from trivium.types.by_type import ByType
from trivium.types.console_facts import ConsoleFacts, ShownSetting
from trivium.types.interfaces import (
    NO_OBSERVER,
    Format,
    RegionViews,
    RunObserver,
    WireProtocol,
)
from trivium.types.listeners import BindAddress, Listener, Role, Transport
from trivium.types.protocol_context import (
    AnswerCounts,
    FindMetric,
    HttpProtocolEntry,
    ProtocolContext,
    RpcProtocolEntry,
    no_metric,
)
from trivium.types.recording import ServingRecorder
from trivium.types.sources import Place

FrontEnd = HttpFrontend | H2Frontend | AsgiFrontend


@dataclass(frozen=True, kw_only=True)
class Catalogue(ModelCatalogue):
    """Holds all that a server can be made of. Tables have the names by which their rows are asked for."""

    name: str
    version: str
    http: Mapping[str, HttpProtocolEntry]
    rpc: Mapping[str, RpcProtocolEntry]
    servers: Mapping[str, ServerRecord]
    worker: Sequence[str]
    """The command that runs a model in a process of its own."""

    words: ByType = field(default_factory=ByType)
    """What servers hand over to protocols, by its class."""

    trace_text: TraceText
    """Writes traces as the records of a file."""

    reserved_regions: tuple[str, ...] = ()
    """Names of shared memory that clients may not use."""

    @cached_property
    def schema(self) -> ConfigSchema:
        """The options of all servers."""
        own = {name: each for server in self.servers.values() for name, each in server.sections.items()}
        return ConfigSchema(own, {name: server.note for name, server in self.servers.items()})

    @cached_property
    def profiles(self) -> Mapping[str, Profile]:
        """Every server's listeners and routes."""
        return {name: profiles.profile(server, self.http, self.rpc) for name, server in self.servers.items()}

    def server(self, config: ServerConfig) -> ServerRecord:
        """Return the server that a configuration asks for."""
        return self.servers[config.server.profile]


def build(
    catalogue: Catalogue,
    config: ServerConfig,
    observer: RunObserver = NO_OBSERVER,
    formats: Sequence[Format] | None = None,
    recorder: ServingRecorder | None = None,
    *,
    follows_files: bool = False,
) -> Server:
    """Make a server with nothing in it, on the loop that will run it. It is closed in the end. `formats` go in place of
    the catalogue's. `follows_files`: what it serves may be exchanged, whatever the configuration says.
    """
    record = catalogue.server(config)
    traces = tracing.settings(config, record)
    settings = core_config(config, catalogue.version, count_gpus(), traces, catalogue.reserved_regions)
    check_engines(catalogue.engines, settings.defaults.engine_parameters)
    guard, exporter = ServerGuard(), tracing.exporter(config, record, catalogue.trace_text)
    host = partial(program, catalogue.worker, os.environ)
    models = config.models
    trusts = trusts_code(settings.defaults.engine_parameters)
    fetch = gate(
        catalogue.fetchers, models.fetch_from, models.fetch_bytes, models.fetch_seconds, with_code=trusts
    )
    settings = replace(
        settings.in_folder(guard.scratch),
        is_patient=record.is_patient,
        binds_answers=record.binds_answers,
        follows_files=settings.follows_files or follows_files,
    )
    inspector = ModelInspector(catalogue.probe, guard, catalogue.find_engine)
    services = CoreServices(
        inspector.facts,
        host,
        observer,
        exporter,
        guard,
        fetch,
        recorder,
        inspector.close,
        inspector.try_model,
    )
    server = Server(
        catalogue.formats if formats is None else formats, catalogue.find_engine, services, settings
    )
    inspector.hears = server.view.note_line
    return server


def listeners(catalogue: Catalogue, config: ServerConfig) -> list[Listener]:
    """List where a server of this configuration listens, with the routes served there. Raises INVALID for an option
    that has no effect under its profile.
    """
    for server in catalogue.servers.values():
        server.check(config)
    return profiles.listeners(catalogue.profiles[config.server.profile], config)


def called_listener(catalogue: Catalogue, config: ServerConfig) -> Listener:
    """Return what is served where another program's server calls this one: all that would be served over HTTP."""
    found = listeners(catalogue, config)
    served = next(each for each in found if each.transport is Transport.HTTP and each.role is Role.INFERENCE)
    return replace(served, bind=BindAddress(), is_called=True)


@dataclass(frozen=True, slots=True)
class Site:
    """Holds what the listeners of one server are made of: the server, its configuration, and what they share."""

    catalogue: Catalogue
    config: ServerConfig
    regions: RegionViews | None = None
    """Clients' shared memory."""

    states: ByType = field(default_factory=ByType)
    """What protocols keep, one for all listeners."""

    metric: FindMetric = no_metric
    """Finds a metric that models make themselves."""

    @property
    def context(self) -> ProtocolContext:
        """The facts that the configuration has for protocols, the same for every listener."""
        record = self.catalogue.server(self.config)
        name, version = record.presents or (self.catalogue.name, self.catalogue.version)
        facts = protocol_facts.protocol_context(self.config, name, version)
        not_ready = facts.not_ready if record.not_ready is None else record.not_ready
        return replace(facts, not_ready=not_ready, words=self.catalogue.words)

    def tell_console(self) -> None:
        """Say what the console shows of how this server was started."""
        config, catalogue = self.config, self.catalogue
        record = catalogue.server(config)
        facts = self.states.of(ConsoleFacts)
        facts.profile, facts.has_keys = record.name, bool(config.security.keys)
        facts.hosts = config.security.allowed_hosts
        facts.settings = tuple(_shown_settings(catalogue.schema, config))
        facts.example = partial(example_request, record=record, translators=catalogue.translators)
        facts.files = page_files()

    def description(self, listener: Listener) -> ListenerDescription:
        """Return what describes a listener to programs. Raises as `on`."""
        catalogue, context = self.catalogue, self.context
        title = ServerTitle(context.server_name, context.server_version, bool(self.config.security.keys))
        examples = partial(
            example_requests, record=catalogue.server(self.config), translators=catalogue.translators
        )
        order = {name: number for number, name in enumerate(catalogue.http)}
        entries = sorted(http_entries(self, listener), key=lambda each: order[each[0]])
        return ListenerDescription(title, listener, entries, examples)

    def on(self, listener: Listener) -> ProtocolContext:
        """Return the facts of one listener. Raises INVALID for options that cannot be used."""
        context = replace(self.context, metric=self.metric)
        return protocol_facts.on_listener(context, self.config, listener, self.regions, self.states)


def _shown_settings(schema: ConfigSchema, config: ServerConfig) -> Iterator[ShownSetting]:
    """Yield all options with their values, those first that somebody has set; what is secret is not shown."""
    for name, option in sorted(schema.options.items(), key=lambda each: each[0] not in config.origins):
        value, origin = schema.value(config, name), config.origins.get(name)
        shown = "(not shown)" if option.is_secret and value else str(value)
        yield ShownSetting(name, shown, "" if origin is None else f"{origin.file}, {origin.key}")


@cache
def page_files() -> Mapping[str, bytes]:
    """Read the files of the console's pages, by their names below its folder; none where this installation has none."""
    folder = Path(__file__).with_name("console")
    if not folder.is_dir():
        return {}
    files = (each for each in sorted(folder.rglob("*")) if each.is_file())
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in files}


def front_end(
    server: Server, site: Site, listener: Listener, entrance: Entrance, log: AnswerLog | None = None
) -> FrontEnd:
    """Make what serves one listener, and writes all that is asked there into `log`, if there is one. Raises INVALID for
    options that cannot be used.
    """
    return _FRONT_ENDS[listener.transport](server, site, listener, entrance, log)


def _over_http(
    server: Server, site: Site, listener: Listener, entrance: Entrance, log: AnswerLog | None
) -> FrontEnd:
    limits = replace(http_limits(site.config), says_keep_alive=listener.says_keep_alive)
    if not listener.is_logged:
        limits = replace(limits, access_log=None)
    if listener.is_called:
        security = site.config.security
        is_guarded = not (security.keys or security.open)
        routes = http_routes(site, listener)
        return AsgiFrontend(server, routes, limits, entrance, log, is_guarded=is_guarded)
    return HttpFrontend(server, *http_routes(site, listener), limits, entrance, log)


def http_routes(site: Site, listener: Listener) -> tuple[Mapping[str, WireProtocol], WireProtocol]:
    """Make the protocols of one listener: by the first segment of the path, and the one that refuses all else."""
    if CONSOLE in listener.protocols:
        site.tell_console()
    record = site.catalogue.server(site.config)
    entries = {name: (entry, context) for name, entry, context in http_entries(site, listener)}
    if CONSOLE in entries:
        entry, context = entries[CONSOLE]
        entries[CONSOLE] = entry, replace(context, describe=site.description(listener).document)
    made: dict[str, WireProtocol] = {name: entry.make(context) for name, (entry, context) in entries.items()}
    scraped_by = record.scraped_by(site.states)
    if record.counts_answers and scraped_by == SCRAPED and not site.config.metrics.no_metrics:
        counts = site.states.of(
            AnswerCounts
        ).by_digit  # a server that keeps metrics in its own words counts itself
        made = {name: CountedProtocol(protocol, counts) for name, protocol in made.items()}
    return {route.prefix: made[route.protocol] for route in listener.routes}, made[listener.fallback]


def http_entries(site: Site, listener: Listener) -> Iterator[tuple[str, HttpProtocolEntry, ProtocolContext]]:
    """Yield the protocols of one listener, by name, each with the facts that it is made of."""
    context, record = site.on(listener), site.catalogue.server(site.config)
    scraped_by = record.scraped_by(site.states)
    for name in listener.protocols:
        owned = frozenset(route.prefix for route in listener.routes if route.protocol == name)
        entry = site.catalogue.http[scraped_by if name == SCRAPED else name]
        yield name, entry, _for(replace(context, prefixes=owned), name, record, scraped_by)


def _over_grpc(
    server: Server, site: Site, listener: Listener, entrance: Entrance, log: AnswerLog | None
) -> FrontEnd:
    context, record = site.on(listener), site.catalogue.server(site.config)
    if REFLECTION in listener.protocols:
        context = replace(
            context,
            services=tuple(dict.fromkeys(route.prefix for route in listener.routes)),
            descriptors=descriptors_of(site.catalogue.rpc[name] for name in sorted(listener.protocols)),
        )
    made = {
        name: site.catalogue.rpc[name].make(_for(context, name, record, SCRAPED))
        for name in listener.protocols
    }
    takes_facts = log is None and bool(site.config.server.access_log)
    if site.config.tracing.has_place or server.is_recorded or takes_facts:
        made = {name: TimestampedRpcs(protocol, takes_facts) for name, protocol in made.items()}
    services = {route.prefix: made[route.protocol] for route in listener.routes}
    return H2Frontend(
        server, services, grpc_limits(site.config, listener.role), made[listener.fallback], entrance, log
    )


_FRONT_ENDS: Mapping[Transport, Callable[[Server, Site, Listener, Entrance, AnswerLog | None], FrontEnd]] = {
    Transport.HTTP: _over_http,
    Transport.GRPC: _over_grpc,
}


def _for(context: ProtocolContext, protocol: str, record: ServerRecord, scraped_by: str) -> ProtocolContext:
    """Return the facts of one protocol: whether it is the server's own, and what makes further metrics."""
    is_original = protocol == record.original or (protocol == SCRAPED and scraped_by != SCRAPED)
    if protocol == SCRAPED and record.own_metrics is not None and not is_original:
        return replace(context, own_metrics=record.own_metrics(context))
    return replace(context, as_original=is_original)


def add_all(server: Server, paths: Iterable[Place]) -> None:
    """Raises the first path's NOT_FOUND."""
    for path in paths:
        server.add(path)
