"""Which wire protocol owns which routes: one row per profile, by the first segment of the path.

Part of the composition root. On shared routes the profile alone decides; `docs/profiles.md` is made from this.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from trivium.protocols.djl.http import DjlHttp
from trivium.protocols.kserve.abilities import Abilities
from trivium.protocols.kserve.http import KServeHttp
from trivium.protocols.torchserve.http import TorchServeHttp
from trivium.types.interfaces import WireProtocol

OWNERS: Mapping[str, Mapping[str, str]] = {
    "native": {"v2": "v2", "predictions": "djl", "invocations": "djl", "models": "djl", "ping": "djl"},
    "djl": {
        "": "djl",
        "v2": "v2",
        "predictions": "djl",
        "invocations": "djl",
        "models": "djl",
        "ping": "djl",
    },
    "torchserve": {
        "": "torchserve",
        "v2": "v2",
        "predictions": "torchserve",
        "explanations": "torchserve",
        "invocations": "torchserve",
        "models": "torchserve",
        "ping": "torchserve",
    },
}
"""Profile -> first segment of a path -> the protocol that owns it."""

FALLBACKS: Mapping[str, str] = {"native": "v2", "djl": "djl", "torchserve": "torchserve"}
"""Profile -> the protocol that words the refusals of all else."""


@dataclass(frozen=True, slots=True)
class Routes:
    """The protocols of one profile, made."""

    owners: Mapping[str, WireProtocol]
    fallback: WireProtocol


def routes(profile: str, version: str, abilities: Abilities) -> Routes:
    """Fresh protocols for one front end. `abilities` are those of the v2 protocol's clients."""
    tensors_as = "application/json" if profile == "native" else "tensor/ndlist"
    made: Mapping[str, WireProtocol] = {
        "v2": KServeHttp("trivium", version, abilities),
        "djl": DjlHttp(_make_id, tensors_as),
        "torchserve": TorchServeHttp(_make_id, exact_texts=profile == "torchserve"),
    }
    owners = {segment: made[owner] for segment, owner in OWNERS[profile].items()}
    return Routes(owners, made[FALLBACKS[profile]])


def _make_id() -> str:
    return str(uuid.uuid4())
