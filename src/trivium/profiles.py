"""Which wire protocol owns which routes: one row per profile, by the first segment of the path.

Part of the composition root. On shared routes the profile alone decides; `docs/profiles.md` is made from this.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from trivium.protocols.djl.http import DjlHttp
from trivium.protocols.kserve.abilities import KServeOptions
from trivium.protocols.kserve.http import KServeHttp
from trivium.protocols.prometheus.http import MetricsOptions, PrometheusHttp
from trivium.protocols.torchserve.http import TorchServeHttp
from trivium.types.interfaces import WireProtocol

OWNERS: Mapping[str, Mapping[str, str]] = {
    "native": {
        "v2": "v2",
        "predictions": "djl",
        "invocations": "djl",
        "models": "djl",
        "ping": "djl",
        "metrics": "prometheus",
    },
    "djl": {
        "": "djl",
        "v2": "v2",
        "predictions": "djl",
        "invocations": "djl",
        "models": "djl",
        "ping": "djl",
        "metrics": "prometheus",
    },
    "torchserve": {
        "": "torchserve",
        "v2": "v2",
        "predictions": "torchserve",
        "explanations": "torchserve",
        "invocations": "torchserve",
        "models": "torchserve",
        "ping": "torchserve",
        "metrics": "prometheus",
    },
    "triton": {"v2": "v2"},
}
"""Profile -> first segment of a path -> the protocol that owns it."""

FALLBACKS: Mapping[str, str] = {"native": "v2", "djl": "djl", "torchserve": "torchserve", "triton": "v2"}
"""Profile -> the protocol that words the refusals of all else."""

EVERYTHING = MetricsOptions()

TRITON = ("triton", "2.51.0")
"""Name and version of the original whose answers the profile `triton` gives."""


@dataclass(frozen=True, slots=True)
class Routes:
    """The protocols of one profile, made."""

    owners: Mapping[str, WireProtocol]
    fallback: WireProtocol


def routes(
    profile: str,
    version: str,
    abilities: KServeOptions,
    server_name: str = "",
    metrics: MetricsOptions = EVERYTHING,
) -> Routes:
    """Fresh protocols for one front end. `abilities` and `server_name` are those of the v2 protocol, `metrics` says
    which families Prometheus is told.
    """
    tensors_as = "application/json" if profile == "native" else "tensor/ndlist"
    made: Mapping[str, WireProtocol] = {
        "v2": KServeHttp(*identity(profile, version, server_name), abilities),
        "djl": DjlHttp(_make_id, tensors_as),
        "torchserve": TorchServeHttp(_make_id, exact_texts=profile == "torchserve"),
        "prometheus": PrometheusHttp(metrics),
    }
    owners = {segment: made[owner] for segment, owner in OWNERS[profile].items()}
    return Routes(owners, made[FALLBACKS[profile]])


def identity(profile: str, version: str, server_name: str = "") -> tuple[str, str]:
    """As what the v2 protocol presents the server: name, its own if it has one, and version. Clients of Triton look
    for its own.
    """
    name, told = TRITON if profile == "triton" else ("trivium", version)
    return server_name or name, told


def _make_id() -> str:
    return str(uuid.uuid4())
