"""All routes of a listener of TorchServe's protocol together: for inference, for management, or both."""

from collections.abc import Sequence
from functools import cache

from trivium.codecs.path_segments import quoted
from trivium.codecs.routes import HttpRoute, RouteTree, prefixes
from trivium.servers.torchserve.wire import management_routes, routes, token_renewal
from trivium.servers.torchserve.wire.config import TorchServeConfig
from trivium.servers.torchserve.wire.kserve import PROBES
from trivium.servers.torchserve.wire.management_routes import MANAGEMENT
from trivium.servers.torchserve.wire.routes import DESCRIPTIONS, OPEN_INFERENCE, PING, PREDICTIONS, REFUSED
from trivium.types.listeners import Role
from trivium.types.wire import Head


@cache
def tree_of(roles: frozenset[Role], own: TorchServeConfig, renews: bool) -> RouteTree:
    """The routes for these roles, by its own options; with `renews` keys can be renewed where models are managed."""
    manages = Role.MANAGEMENT in roles
    infers = Role.INFERENCE in roles or not manages
    rows = [*served(roles, own, renews), *(REFUSED if infers else ())]
    told = routes.TOLD if infers else management_routes.TOLD

    def advice(head: Head, allow: str) -> str:
        if head.path == "/":
            return f"Nothing is served at the root. There are: {told}."
        if allow:
            return f"{quoted(head.path)} is not served under the method {quoted(head.method)}; use {allow}."
        return f"There is no route {quoted(head.path)}. There are: {told}."

    return RouteTree(rows, advice, _listed)


def _listed(methods: Sequence[str]) -> Sequence[str]:
    """Return the methods that a refusal lists: OPTIONS describes others, and is listed where there is none."""
    return [method for method in methods if method != "OPTIONS"] or methods


def served(roles: frozenset[Role], own: TorchServeConfig, renews: bool) -> Sequence[HttpRoute]:
    """Return all that is answered there, without what is refused by name."""
    rows = [*DESCRIPTIONS]
    manages = Role.MANAGEMENT in roles
    if manages:
        rows += MANAGEMENT
        rows += token_renewal.ROWS if renews else ()
    if Role.INFERENCE in roles or not manages:
        rows += [PING, *PREDICTIONS]
        rows += dict.fromkeys(
            (*(OPEN_INFERENCE if own.open_inference else ()), *(PROBES if own.kserve else ()))
        )
    return rows


MANAGEMENT_PREFIXES = prefixes([*DESCRIPTIONS, *MANAGEMENT, *token_renewal.ROWS])
