"""Finds the target of a method and path: the inference and management routes of DJL Serving.

Source: spec sheet `djl`, sections 4.1, 4.2 and 5.1 to 5.3. Whether there is such a model the core knows.
"""

from collections.abc import Mapping, Sequence, Set
from enum import StrEnum

from trivium.codecs.path_segments import decoded, quoted
from trivium.servers.djl.wire.errors import DjlRefusal, ExactText, no_route
from trivium.types.access import AccessScope, Endpoint
from trivium.types.errors import Code, ServeError
from trivium.types.listeners import Role
from trivium.types.wire import Head, Target


class DjlVerb(StrEnum):
    """The request that a target stands for; the value is `Target.verb`."""

    INFER = "infer"
    PING = "ping"
    OPTIONS = "options"
    REGISTER = "register"
    LIST = "list"
    DESCRIBE = "describe"
    SCALE = "scale"
    UNREGISTER = "unregister"
    LOGGING = "logging"
    METRICS = "metrics"
    ADAPTER_REGISTER = "adapter register"
    ADAPTER_LIST = "adapter list"
    ADAPTER_DESCRIBE = "adapter describe"
    ADAPTER_UPDATE = "adapter update"
    ADAPTER_UNREGISTER = "adapter unregister"


_INFER, _OBSERVE, _MANAGE = AccessScope.INFER, AccessScope.OBSERVE, AccessScope.MANAGE
_MANAGED = ("models", "workflows")
"""First segments of the paths at which models are managed."""

_COLLECTION: Mapping[str, DjlVerb] = {"POST": DjlVerb.REGISTER, "GET": DjlVerb.LIST}
_MEMBER: Mapping[str, DjlVerb] = {
    "GET": DjlVerb.DESCRIBE,
    "PUT": DjlVerb.SCALE,
    "DELETE": DjlVerb.UNREGISTER,
}
"""Method -> what it does to all models, and to one."""

_ADAPTERS: Mapping[str, DjlVerb] = {"POST": DjlVerb.ADAPTER_REGISTER, "GET": DjlVerb.ADAPTER_LIST}
_ADAPTER: Mapping[str, DjlVerb] = {"GET": DjlVerb.ADAPTER_DESCRIBE, "DELETE": DjlVerb.ADAPTER_UNREGISTER}
_UPDATE: Mapping[str, DjlVerb] = {"POST": DjlVerb.ADAPTER_UPDATE}
"""The same, to all adapters of a model, to one, and to what one is."""

ENDPOINTS: Sequence[Endpoint] = (
    Endpoint("*", "/ping", AccessScope.OPEN),
    Endpoint("OPTIONS", "/ping", AccessScope.OPEN),
    Endpoint("OPTIONS", "/", _INFER),
    *(
        Endpoint(method, f"/predictions/{{model}}{end}", _INFER)
        for method in ("*", "OPTIONS")
        for end in ("", "/", "/{version}")
    ),
    Endpoint("POST", "/invocations", _INFER),
    Endpoint("POST", "/models/{model}/invoke", _INFER),
    *(
        Endpoint(method, f"/{what}", _OBSERVE if method == "GET" else _MANAGE)
        for what in _MANAGED
        for method in _COLLECTION
    ),
    *(
        Endpoint(method, f"/{what}/{{model}}{end}", _OBSERVE if method == "GET" else _MANAGE)
        for what in _MANAGED
        for method in _MEMBER
        for end in ("", "/{version}")
    ),
    *(
        Endpoint(method, f"{where}/adapters{end}", _OBSERVE if method == "GET" else _MANAGE)
        for where in ("", "/models/{model}")
        for end, verbs in (("", _ADAPTERS), ("/{adapter}", _ADAPTER), ("/{adapter}/update", _UPDATE))
        for method in verbs
    ),
    Endpoint("GET", "/server/metrics", _OBSERVE),
    Endpoint("*", "/server/logging", _MANAGE),
    Endpoint("OPTIONS", "/server/logging", _MANAGE),
)
"""All that this protocol answers."""

_INFERENCE = "/predictions/MODEL[/VERSION], POST /invocations, POST /models/MODEL/invoke"
_MANAGEMENT = (
    "/models[/MODEL[/VERSION]], /workflows[/MODEL[/VERSION]], [/models/MODEL]/adapters[/ADAPTER[/update]], "
    "/server/logging, /server/metrics"
)
_NOT_ALLOWED = "Requested method is not allowed, please refer to API document."


def find_target(head: Head, roles: Set[Role] = frozenset(Role)) -> Target:
    """The target of a head, among the routes for these roles. NOT_FOUND names the routes; METHOD says which method
    there is.

    Predictions and the health take any method but OPTIONS. A model that only query, headers or body name is found
    when the request is decoded.
    """
    segments = head.path.split("/")[1:]
    target = _inference(head, segments) if Role.INFERENCE in roles else None
    if target is None and Role.MANAGEMENT in roles:
        target = _management(head, segments)
    if target is not None:
        return target
    routes = [
        text for role, text in ((Role.INFERENCE, _INFERENCE), (Role.MANAGEMENT, _MANAGEMENT)) if role in roles
    ]
    words = f"There is no route {quoted(head.path)}. There are: {', '.join(routes)}, /ping."
    raise no_route(ServeError(Code.NOT_FOUND, words), "")


def _inference(head: Head, segments: Sequence[str]) -> Target | None:
    match segments:
        case ["predictions", model, *rest] if model and len(rest) < 2:
            version = rest[0] if rest else ""
            if head.method == "OPTIONS":
                return Target(DjlVerb.OPTIONS, decoded(model), decoded(version), scope=_INFER)
            return Target(DjlVerb.INFER, decoded(model), decoded(version), True, scope=_INFER)
        case ["invocations"]:
            return _posted(head, Target(DjlVerb.INFER, takes_body=True, scope=_INFER))
        case ["models", model, "invoke"] if model:
            return _posted(head, Target(DjlVerb.INFER, decoded(model), takes_body=True, scope=_INFER))
        case ["ping"]:
            return Target(DjlVerb.PING, scope=AccessScope.OPEN)
        case [""] if head.method == "OPTIONS":
            return Target(DjlVerb.OPTIONS, scope=_INFER)
    return None


def _management(head: Head, segments: Sequence[str]) -> Target | None:
    match segments:
        case ["models" | "workflows"]:
            return _managing(head, _COLLECTION, Target(""))
        case ["models", model, "adapters", *rest] if model and all(rest):
            return _adapters(head, decoded(model), rest)
        case ["adapters", *rest] if all(rest):
            return _adapters(head, "", rest)
        case ["models" | "workflows", model, *rest] if model and len(rest) < 2 and all(rest):
            version = decoded(rest[0]) if rest else ""
            return _managing(head, _MEMBER, Target("", decoded(model), version, is_served=False))
        case ["server", "metrics"]:
            return _managing(head, {"GET": DjlVerb.METRICS}, Target("", is_served=False))
        case ["server", "logging"]:
            return Target(DjlVerb.LOGGING, scope=_MANAGE)
        case ["ping"]:
            return Target(DjlVerb.PING, scope=AccessScope.OPEN)
        case [""] if head.method == "OPTIONS":
            return Target(DjlVerb.OPTIONS, scope=_INFER)
    return None


def _adapters(head: Head, model: str, rest: Sequence[str]) -> Target | None:
    match rest:
        case []:
            return _managing(head, _ADAPTERS, Target("", model))
        case [_]:
            return _managing(head, _ADAPTER, Target("", model))
        case [_, "update"]:
            return _managing(head, _UPDATE, Target("", model))
    return None


def _managing(head: Head, verbs: Mapping[str, DjlVerb], target: Target) -> Target:
    method = "GET" if head.method == "HEAD" else head.method
    verb = verbs.get(method)
    if verb is None:
        raise _not_allowed(head, verbs)
    takes_body = verb is DjlVerb.REGISTER
    return Target(
        verb,
        target.model,
        target.version,
        takes_body,
        scope=_OBSERVE if method == "GET" else _MANAGE,
        is_served=False,
    )


def _posted(head: Head, target: Target) -> Target:
    if head.method == "POST":
        return target
    raise _not_allowed(head, {"POST": DjlVerb.INFER})


def _not_allowed(head: Head, verbs: Mapping[str, DjlVerb]) -> DjlRefusal:
    there = ", ".join((*verbs, *(["HEAD"] if "GET" in verbs else [])))
    return DjlRefusal(
        Code.METHOD,
        f"{quoted(head.path)} is not served under the method {quoted(head.method)}; use {there}.",
        f"Allow: {there}\r\n".encode(),
        exact=ExactText(_NOT_ALLOWED),
    )
