"""The inference and management routes of DJL Serving.

Source: spec sheet `djl`, sections 4.1, 4.2 and 5.1 to 5.3. Whether there is such a model the core knows.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache

from trivium.codecs.path_segments import quoted
from trivium.codecs.routes import ANY, HttpRoute, RouteTree, endpoints, prefixes
from trivium.types.access import AccessScope, Endpoint
from trivium.types.listeners import Role
from trivium.types.wire import Head


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


_OPEN, _INFER, _OBSERVE = AccessScope.OPEN, AccessScope.INFER, AccessScope.OBSERVE


def _managing(path: str, **verbs: DjlVerb) -> Sequence[HttpRoute]:
    """Return what each of these methods does at a path."""
    return [
        HttpRoute(
            method,
            path,
            verb,
            _OBSERVE if method == "GET" else AccessScope.MANAGE,
            takes_body=verb is DjlVerb.REGISTER,
            is_served=False,
        )
        for method, verb in verbs.items()
    ]


def _adapting(where: str) -> Sequence[HttpRoute]:
    return (
        *_managing(where, POST=DjlVerb.ADAPTER_REGISTER, GET=DjlVerb.ADAPTER_LIST),
        *_managing(f"{where}/{{adapter}}", GET=DjlVerb.ADAPTER_DESCRIBE, DELETE=DjlVerb.ADAPTER_UNREGISTER),
        *_managing(f"{where}/{{adapter}}/update", POST=DjlVerb.ADAPTER_UPDATE),
    )


_PREDICTED = ("/predictions/{model}", "/predictions/{model}/", "/predictions/{model}/{version}")
_MANAGED = ("/models", "/workflows")
_ROOT = "/"
_SERVER = (
    HttpRoute("OPTIONS", _ROOT, DjlVerb.OPTIONS, _INFER),
    HttpRoute(f"{ANY} OPTIONS", "/ping", DjlVerb.PING, _OPEN),
)
ROWS: Mapping[Role, Sequence[HttpRoute]] = {
    Role.INFERENCE: (
        *_SERVER,
        *(HttpRoute(ANY, path, DjlVerb.INFER, _INFER, takes_body=True) for path in _PREDICTED),
        *(HttpRoute("OPTIONS", path, DjlVerb.OPTIONS, _INFER) for path in _PREDICTED),
        HttpRoute("POST", "/invocations", DjlVerb.INFER, _INFER, takes_body=True),
        HttpRoute("POST", "/models/{model}/invoke", DjlVerb.INFER, _INFER, takes_body=True),
    ),
    Role.MANAGEMENT: (
        *_SERVER,
        *(row for at in _MANAGED for row in _managing(at, POST=DjlVerb.REGISTER, GET=DjlVerb.LIST)),
        *(
            row
            for at in _MANAGED
            for end in ("/{model}", "/{model}/{version}")
            for row in _managing(
                f"{at}{end}", GET=DjlVerb.DESCRIBE, PUT=DjlVerb.SCALE, DELETE=DjlVerb.UNREGISTER
            )
        ),
        *_adapting("/adapters"),
        *_adapting("/models/{model}/adapters"),
        *_managing("/server/metrics", GET=DjlVerb.METRICS),
        HttpRoute(f"{ANY} OPTIONS", "/server/logging", DjlVerb.LOGGING),
    ),
}
"""All that this protocol answers, by the role of the listener. A model that only query, headers or body name is found
when the request is decoded.
"""

ROUTES: Mapping[Role, Sequence[str]] = {role: prefixes(rows) for role, rows in ROWS.items()}
ENDPOINTS: Sequence[Endpoint] = endpoints(dict.fromkeys(row for rows in ROWS.values() for row in rows))
_TOLD: Mapping[Role, str] = {
    Role.INFERENCE: "/predictions/MODEL[/VERSION], POST /invocations, POST /models/MODEL/invoke",
    Role.MANAGEMENT: (
        "/models[/MODEL[/VERSION]], /workflows[/MODEL[/VERSION]], [/models/MODEL]/adapters[/ADAPTER[/update]], "
        "/server/logging, /server/metrics"
    ),
}


@cache
def tree_of(roles: frozenset[Role]) -> RouteTree:
    """The routes of a listener with these roles."""
    known = [role for role in ROWS if role in roles]
    routes = ", ".join(_TOLD[role] for role in known)

    def advice(head: Head, allow: str) -> str:
        if allow:
            return f"{quoted(head.path)} is not served under the method {quoted(head.method)}; use {allow}."
        return f"There is no route {quoted(head.path)}. There are: {routes}, /ping."

    return RouteTree([row for role in known for row in ROWS[role]], advice, _listed)


def _listed(methods: Sequence[str]) -> Sequence[str]:
    """Return the methods that a refusal lists: none at the root, which is not there for them."""
    return () if methods == ["OPTIONS"] else (*methods, *(["HEAD"] if "GET" in methods else []))
