"""Profiles as data: the listeners of each server, and the protocols that own the routes there.

On shared routes the server's record alone decides; `docs/profiles.md` is made from this. Knows no server by name.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from trivium.config.options import ServerConfig
from trivium.server_record import CONSOLE, SCRAPED, ServerRecord
from trivium.types.listeners import BindAddress, Listener, Role, Route, Transport
from trivium.types.protocol_context import HttpProtocolEntry, RpcProtocolEntry

HTTP, GRPC, METRICS, MANAGEMENT, OWN_CONSOLE = "HTTP", "gRPC", "metrics", "management", "console"
GRPC_MANAGEMENT = "gRPC management"
"""The listeners of every profile, by name."""

_MANAGED_BY = {HTTP: MANAGEMENT, GRPC: GRPC_MANAGEMENT}
"""Listener that infers -> the one that manages models in its place, where that is on."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A server, and its listeners with the routes that are served there when all is switched on."""

    server: ServerRecord
    listeners: Sequence[Listener]


def profile(
    server: ServerRecord, http: Mapping[str, HttpProtocolEntry], rpc: Mapping[str, RpcProtocolEntry]
) -> Profile:
    """Return the profile of a server over these protocols."""
    served = (*http, *rpc) if server.protocols is None else (*server.protocols, CONSOLE)
    claims = [
        Route(prefix, each, role)
        for each in served
        if each in http
        for role, prefixes in http[each].ROUTES.items()
        for prefix in prefixes
        if prefix not in server.withheld or each == CONSOLE
    ]
    routes = _first_claims(claims)
    services = _first_claims(
        Route(service, each, role)
        for each in served
        if each in rpc
        for role, names in rpc[each].SERVICES.items()
        for service in names
    )
    scraped = tuple(Route(prefix, SCRAPED, Role.METRICS) for prefix in http[SCRAPED].ROUTES[Role.METRICS])
    managed = _first_claims(route for route in claims if route.role is Role.MANAGEMENT)
    shown = _first_claims(
        (
            *(route for route in claims if route.protocol == CONSOLE),
            *(route for route in routes if route.role is Role.INFERENCE),
        )
    )
    managed_calls = tuple(route for route in services if route.role is Role.MANAGEMENT)
    over_http = partial(Listener, transport=Transport.HTTP, says_keep_alive=server.says_keep_alive)
    return Profile(
        server,
        (
            over_http(HTTP, Role.INFERENCE, routes=routes, fallback=server.fallback),
            Listener(GRPC, Role.INFERENCE, Transport.GRPC, services, "v2"),
            over_http(METRICS, Role.METRICS, routes=scraped, fallback=SCRAPED, is_logged=False),
            over_http(MANAGEMENT, Role.MANAGEMENT, routes=managed, fallback=server.fallback),
            over_http(OWN_CONSOLE, Role.MANAGEMENT, routes=shown, fallback=server.fallback),
            Listener(GRPC_MANAGEMENT, Role.MANAGEMENT, Transport.GRPC, managed_calls, "v2"),
        ),
    )


def _first_claims(claims: Iterable[Route]) -> tuple[Route, ...]:
    """Return those routes whose prefix is their protocol's: that of the first protocol to claim it."""
    owners: dict[str, str] = {}
    return tuple(
        route
        for route in dict.fromkeys(claims)
        if owners.setdefault(route.prefix, route.protocol) == route.protocol
    )


def listeners(profile: Profile, config: ServerConfig) -> list[Listener]:
    """The listeners of a profile that have routes and are switched on, at the addresses that the configuration gives.
    Those that share one address are one, with the routes of all; a server that presents itself as another refuses that,
    as that does. Models are managed where they infer, unless that has a listener of its own.
    """
    found: dict[tuple[Transport, object], Listener] = {}
    binds, server = _binds(config), profile.server
    are_on = {name for name, each in binds.items() if each is not None}
    scrapes_apart = METRICS in are_on and server.scrapes_apart
    off = {each.protocol for each in server.switches if not each.is_on(config)}
    if not (server.has_console or config.server.console or OWN_CONSOLE in are_on):
        off.add(CONSOLE)
    for listener in profile.listeners:
        bind = binds[listener.name]
        if bind is None or not listener.routes:
            continue
        listener = _without(listener, are_on, config.metrics.no_metrics or scrapes_apart, off)
        may_share = server.presents is None and (bind.port or bind.path)
        key = (listener.transport, replace(bind, is_shared=False) if may_share else listener.name)
        first = found.get(key)
        if first is None:
            found[key] = replace(listener, bind=bind)
        else:
            found[key] = replace(first, routes=_first_claims((*first.routes, *listener.routes)))
    return list(found.values())


def _without(
    listener: Listener, are_on: Collection[str], scrapes_apart: bool, off: Collection[str]
) -> Listener:
    """Return a listener without the routes that have a listener of their own, or none, or a protocol that is `off`."""
    kept = tuple(route for route in listener.routes if route.protocol not in off)
    if OWN_CONSOLE in are_on and listener.name != OWN_CONSOLE:
        kept = tuple(route for route in kept if route.protocol != CONSOLE)
    if _MANAGED_BY.get(listener.name) in are_on:
        kept = tuple(route for route in kept if route.role is not Role.MANAGEMENT)
    if listener.name == HTTP and scrapes_apart:
        kept = tuple(route for route in kept if route.protocol != SCRAPED)
    return replace(listener, routes=kept)


def _binds(config: ServerConfig) -> Mapping[str, BindAddress | None]:
    """Return the address of each listener by its name; None for one that is switched off."""
    host, http, grpc, metrics = config.server.host, config.http, config.grpc, config.metrics
    own = config.management
    return {
        HTTP: None if http.no_http else _bind(host, http.port, http.socket, http.reuse_http_port),
        MANAGEMENT: _bind(own.host or host, own.port, own.socket),
        OWN_CONSOLE: _bind(host, config.server.console_port),
        GRPC: None if grpc.no_grpc else _bind(grpc.host or host, grpc.port, "", grpc.reuse_grpc_port),
        METRICS: None if metrics.no_metrics else _bind(metrics.host or host, metrics.port),
        GRPC_MANAGEMENT: _bind(own.grpc_host or host, own.grpc_port),
    }


def _bind(host: str, port: int, socket: str = "", is_shared: bool = False) -> BindAddress | None:
    if socket:
        return BindAddress(path=socket)
    return None if port < 0 else BindAddress(host, port, is_shared=is_shared)
