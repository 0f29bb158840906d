"""Finds the target of a method and path: the routes at which TorchServe's models are managed.

Source: spec sheet `torchserve`, section 5, and what 0.12.0 answers: a slash at the end is no segment. Whether there is
such a model the core knows.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from trivium.codecs.path_segments import decoded, quoted
from trivium.protocols.torchserve.errors import RouteRefusal
from trivium.types.access import AccessScope, Endpoint
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head, Target


class ManagementVerb(StrEnum):
    """The request that a target stands for; the value is `Target.verb`."""

    REGISTER = "register"
    LIST = "list"
    DESCRIBE = "describe"
    SCALE = "scale"
    SET_DEFAULT = "set default"
    UNREGISTER = "unregister"
    READY = "ready"


_SET_DEFAULT = "set-default"
_OBSERVE, _MANAGE = AccessScope.OBSERVE, AccessScope.MANAGE
_COLLECTION: Mapping[str, ManagementVerb] = {
    "GET": ManagementVerb.LIST,
    "POST": ManagementVerb.REGISTER,
}
_MEMBER: Mapping[str, ManagementVerb] = {
    "GET": ManagementVerb.DESCRIBE,
    "PUT": ManagementVerb.SCALE,
    "DELETE": ManagementVerb.UNREGISTER,
}
_DEFAULT: Mapping[str, ManagementVerb] = {**_MEMBER, "PUT": ManagementVerb.SET_DEFAULT}
_READY: Mapping[str, ManagementVerb] = {"GET": ManagementVerb.READY}
"""Method -> what it does: to all models, to one, to the version that is to be the default one, to KServe's v1 model."""

_DEFAULT_PATH = f"/{{version}}/{_SET_DEFAULT}"
ENDPOINTS: Sequence[Endpoint] = tuple(
    Endpoint(method, f"{path}{slash}", _OBSERVE if method == "GET" else _MANAGE)
    for path, methods in (
        ("/models", _COLLECTION),
        *((f"/models/{{model}}{end}", _MEMBER) for end in ("", "/{version}", _DEFAULT_PATH)),
        ("/v1/models/{model}", _READY),
    )
    for method in methods
    for slash in ("", "/")
)
"""All that is answered."""

ROUTES = "/models, /models/MODEL[/VERSION[/set-default]], /v1/models/MODEL"


def find_management(head: Head) -> Target | None:
    """The target of a head; None for a path that is not for management. METHOD says which methods there are,
    UNSUPPORTED what to do instead.
    """
    segments = head.path.removesuffix("/").split("/")[1:]
    if segments[:1] == ["models"] and head.method == "OPTIONS" and len(segments) == 2:
        raise ServeError(
            Code.UNSUPPORTED,
            "The description of a model's management as OpenAPI is not supported in this version. The routes are "
            f"{ROUTES}.",
        )
    match segments:
        case ["models"]:
            return _managing(head, _COLLECTION, "", "")
        case ["models", model, *rest] if model and len(rest) < 2 and all(rest):
            return _managing(head, _MEMBER, decoded(model), decoded(rest[0]) if rest else "")
        case ["models", model, version, "set-default"] if model and version:
            return _managing(head, _DEFAULT, decoded(model), decoded(version))
        case ["v1", "models", model] if model:
            return _managing(head, _READY, decoded(model), "")
    return None


def no_management_route(head: Head) -> RouteRefusal:
    """Return the refusal of a path that is served nowhere on a listener for management alone."""
    if head.path == "/" and head.method != "OPTIONS":
        return RouteRefusal(Code.METHOD, "The server's root answers OPTIONS only.", b"Allow: OPTIONS\r\n")
    return RouteRefusal(Code.NOT_FOUND, f"There is no route {quoted(head.path)}. There are: {ROUTES}.")


def _managing(head: Head, verbs: Mapping[str, ManagementVerb], model: str, version: str) -> Target:
    verb = verbs.get(head.method)
    if verb is None:
        there = ", ".join(verbs)
        raise RouteRefusal(
            Code.METHOD,
            f"{quoted(head.path)} is not served under the method {quoted(head.method)}; use {there}.",
            f"Allow: {there}\r\n".encode(),
        )
    scope = _OBSERVE if head.method == "GET" else _MANAGE
    return Target(verb, model, version, verb is ManagementVerb.REGISTER, scope=scope, is_served=False)
