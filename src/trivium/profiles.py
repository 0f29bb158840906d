"""Which profile listens for what, and which protocol owns which routes there: data only.

Part of the composition root. On shared routes the profile alone decides; `docs/profiles.md` is made from this.
"""

from collections.abc import Mapping, Sequence

from trivium.protocols.kserve.grpc import SERVICES
from trivium.types.listeners import Listener, Profile, Role, Route, Transport

HTTP, GRPC, METRICS = "HTTP", "gRPC", "metrics"
"""The listeners of every profile, by name."""

_V2, _SCRAPE = Route("v2", "v2"), Route("metrics", "prometheus")
_DJL = ("predictions", "invocations", "models", "ping")
_TORCHSERVE = ("", "predictions", "explanations", "invocations", "models", "ping")


def _owned(protocol: str, prefixes: Sequence[str]) -> tuple[Route, ...]:
    return tuple(Route(prefix, protocol) for prefix in prefixes)


def _profile(name: str, fallback: str, *routes: Route) -> Profile:
    return Profile(
        name,
        (
            Listener(HTTP, Role.INFERENCE, Transport.HTTP, routes, fallback),
            Listener(GRPC, Role.INFERENCE, Transport.GRPC, _owned("v2", SERVICES), "v2"),
            Listener(METRICS, Role.METRICS, Transport.HTTP, (_SCRAPE,), "prometheus", is_logged=False),
        ),
    )


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        _profile("native", "v2", _V2, *_owned("djl", _DJL), _SCRAPE),
        _profile("djl", "djl", _V2, *_owned("djl", ("", *_DJL)), _SCRAPE),
        _profile("torchserve", "torchserve", _V2, *_owned("torchserve", _TORCHSERVE), _SCRAPE),
        _profile("triton", "v2", _V2),
    )
}
