"""Profiles as data: the listeners of each, and the protocols that own the routes there.

Part of the composition root. On shared routes the profile alone decides; `docs/profiles.md` is made from this.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from trivium.config.options import ServerConfig
from trivium.types.listeners import BindAddress, Listener, Profile, Role, Route, Transport
from trivium.types.protocol_context import HttpProtocolEntry, RpcProtocolEntry

HTTP, GRPC, METRICS, MANAGEMENT = "HTTP", "gRPC", "metrics", "management"
GRPC_MANAGEMENT = "gRPC management"
"""The listeners of every profile, by name."""

_SCRAPED = "prometheus"
_SERVED: Mapping[str, Sequence[str]] = {
    "djl": ("v2", "openai", "djl", _SCRAPED),
    "torchserve": ("v2", "openai", "torchserve", "v2 of torchserve", _SCRAPED),
    "torchserve-command": ("openai", "torchserve", "v2", "v2 of torchserve", _SCRAPED),
    "triton": ("v2",),
}
"""Profile that stands in for another server -> its protocols; the first to claim a route owns it."""

_ORIGINALS = {
    "native": "",
    "djl": "djl",
    "torchserve": "torchserve",
    "torchserve-command": "torchserve",
    "triton": "v2",
}
"""Profile -> the protocol that is spoken as its original does; empty for ours."""

_MANAGED_BY = {HTTP: MANAGEMENT, GRPC: GRPC_MANAGEMENT}
"""Listener that infers -> the one that manages models in its place, where that is on."""

_SAYS_KEEP_ALIVE = ("torchserve",)
"""Originals that say of each connection whether it stays open."""

_SCRAPED_APART = ("torchserve",)
"""Originals that do not serve metrics with inference once they have a listener of their own."""

_PATIENT = ("torchserve",)
"""Originals in which a request waits for a model whose workers are being started."""

_OPEN_INFERENCE = {"torchserve-command": "v2 of torchserve"}
"""Profile -> the protocol that is served there only where open inference is switched on."""

_NOT_NATIVE = (
    *("", "explanations", "token", "api-description", "wfpredict"),
    *("v1/...:predict", "v1/...:explain", ".../predict"),
)
"""Paths that nobody owns in the native profile, where every protocol of the tables is served, in their order."""


def profiles(
    http: Mapping[str, HttpProtocolEntry], rpc: Mapping[str, RpcProtocolEntry]
) -> Mapping[str, Profile]:
    """Every profile, over these protocols."""
    return {name: _profile(name, http, rpc) for name in _ORIGINALS}


def _profile(
    name: str, http: Mapping[str, HttpProtocolEntry], rpc: Mapping[str, RpcProtocolEntry]
) -> Profile:
    original = _ORIGINALS[name]
    served, withheld = (_SERVED[name], ()) if original else ((*http, *rpc), _NOT_NATIVE)
    claims = [
        Route(prefix, each, role)
        for each in served
        if each in http
        for role, prefixes in http[each].ROUTES.items()
        for prefix in prefixes
        if prefix not in withheld
    ]
    routes = _first_claims(claims)
    services = _first_claims(
        Route(service, each, role)
        for each in served
        if each in rpc
        for role, names in rpc[each].SERVICES.items()
        for service in names
    )
    scraped = tuple(Route(prefix, _SCRAPED, Role.METRICS) for prefix in http[_SCRAPED].ROUTES[Role.METRICS])
    managed = _first_claims(route for route in claims if route.role is Role.MANAGEMENT)
    managed_calls = tuple(route for route in services if route.role is Role.MANAGEMENT)
    over_http = partial(Listener, transport=Transport.HTTP, says_keep_alive=original in _SAYS_KEEP_ALIVE)
    listeners = (
        over_http(HTTP, Role.INFERENCE, routes=routes, fallback=original or "v2"),
        Listener(GRPC, Role.INFERENCE, Transport.GRPC, services, "v2"),
        over_http(METRICS, Role.METRICS, routes=scraped, fallback=_SCRAPED, is_logged=False),
        over_http(MANAGEMENT, Role.MANAGEMENT, routes=managed, fallback=original or "v2"),
        Listener(GRPC_MANAGEMENT, Role.MANAGEMENT, Transport.GRPC, managed_calls, "v2"),
    )
    presents = ("triton", "2.51.0") if name == "triton" else None
    return Profile(name, listeners, original, presents, original in _PATIENT)


def _first_claims(claims: Iterable[Route]) -> tuple[Route, ...]:
    """Return those routes whose prefix is their protocol's: that of the first protocol to claim it."""
    owners: dict[str, str] = {}
    return tuple(
        route
        for route in dict.fromkeys(claims)
        if owners.setdefault(route.prefix, route.protocol) == route.protocol
    )


def listeners(profile: Profile, config: ServerConfig) -> list[Listener]:
    """The listeners of a profile that are switched on, at the addresses that the configuration gives. Those that share
    one address are one, with the routes of all; a server that presents itself as another refuses that, as that does.
    Models are managed where they infer, unless that has a listener of its own.
    """
    found: dict[tuple[Transport, object], Listener] = {}
    binds = _binds(config)
    for listener in profile.listeners:
        bind = binds[listener.name]
        if bind is None:
            continue
        are_on = {name for name, each in binds.items() if each is not None}
        scrapes_apart = METRICS in are_on and profile.original in _SCRAPED_APART
        listener = _without(listener, are_on, config.metrics.no_metrics or scrapes_apart)
        listener = _switched(listener, profile, config)
        may_share = profile.presents is None and (bind.port or bind.path)
        key = (listener.transport, replace(bind, is_shared=False) if may_share else listener.name)
        first = found.get(key)
        if first is None:
            found[key] = replace(listener, bind=bind)
        else:
            found[key] = replace(first, routes=_first_claims((*first.routes, *listener.routes)))
    return list(found.values())


def _without(listener: Listener, are_on: Collection[str], scrapes_apart: bool) -> Listener:
    """Return a listener without the routes that have a listener of their own, or none."""
    kept = listener.routes
    if _MANAGED_BY.get(listener.name) in are_on:
        kept = tuple(route for route in kept if route.role is not Role.MANAGEMENT)
    if listener.name == HTTP and scrapes_apart:
        kept = tuple(route for route in kept if route.protocol != _SCRAPED)
    return replace(listener, routes=kept)


def _switched(listener: Listener, profile: Profile, config: ServerConfig) -> Listener:
    """Return a listener without the routes of a protocol that is switched off."""
    if profile.name not in _OPEN_INFERENCE or config.torchserve.open_inference:
        return listener
    off = _OPEN_INFERENCE[profile.name]
    return replace(listener, routes=tuple(route for route in listener.routes if route.protocol != off))


def _binds(config: ServerConfig) -> Mapping[str, BindAddress | None]:
    """Return the address of each listener by its name; None for one that is switched off."""
    host, http, grpc, metrics = config.server.host, config.http, config.grpc, config.metrics
    own = config.management
    return {
        HTTP: None if http.no_http else _bind(host, http.port, http.socket, http.reuse_http_port),
        MANAGEMENT: _bind(own.host or host, own.port, own.socket),
        GRPC: None if grpc.no_grpc else _bind(grpc.host or host, grpc.port, "", grpc.reuse_grpc_port),
        METRICS: None if metrics.no_metrics else _bind(metrics.host or host, metrics.port),
        GRPC_MANAGEMENT: _bind(own.grpc_host or host, own.grpc_port),
    }


def _bind(host: str, port: int, socket: str = "", is_shared: bool = False) -> BindAddress | None:
    if socket:
        return BindAddress(path=socket)
    return None if port < 0 else BindAddress(host, port, is_shared=is_shared)
