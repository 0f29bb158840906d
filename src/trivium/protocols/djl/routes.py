"""Finds the target of a method and path: the inference routes of DJL Serving.

Source: spec sheet `djl`, sections 4.1 and 4.2. Whether there is such a model the core knows.
"""

from collections.abc import Sequence
from enum import StrEnum

from trivium.codecs.path_segments import decoded, quoted
from trivium.protocols.djl.errors import ROUTE_TYPE, DjlRefusal
from trivium.types.access import AccessScope, Endpoint
from trivium.types.errors import Code
from trivium.types.wire import Head, Target


class DjlVerb(StrEnum):
    """The request that a target stands for; the value is `Target.verb`."""

    INFER = "infer"
    PING = "ping"
    OPTIONS = "options"


_INFER = AccessScope.INFER

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
)
"""All that this protocol answers."""

_ROUTES = "/predictions/MODEL[/VERSION], POST /invocations, POST /models/MODEL/invoke, /ping"


def find_target(head: Head) -> Target:
    """The target of a head. NOT_FOUND names the routes; METHOD says which method there is.

    Predictions and the health take any method but OPTIONS. A model that only query, headers or body name is found
    when the request is decoded.
    """
    match head.path.split("/"):
        case ["", "predictions", model, *rest] if model and len(rest) < 2:
            version = rest[0] if rest else ""
            if head.method == "OPTIONS":
                return Target(DjlVerb.OPTIONS, decoded(model), decoded(version), scope=_INFER)
            return Target(DjlVerb.INFER, decoded(model), decoded(version), True, scope=_INFER)
        case ["", "invocations"]:
            return _posted(head, Target(DjlVerb.INFER, takes_body=True, scope=_INFER))
        case ["", "models", model, "invoke"] if model:
            return _posted(head, Target(DjlVerb.INFER, decoded(model), takes_body=True, scope=_INFER))
        case ["", "ping"]:
            return Target(DjlVerb.PING, scope=AccessScope.OPEN)
        case ["", ""] if head.method == "OPTIONS":
            return Target(DjlVerb.OPTIONS, scope=_INFER)
    raise DjlRefusal(
        Code.NOT_FOUND, f"There is no route {quoted(head.path)}. There are: {_ROUTES}.", type_name=ROUTE_TYPE
    )


def _posted(head: Head, target: Target) -> Target:
    if head.method == "POST":
        return target
    raise DjlRefusal(
        Code.METHOD,
        f"{quoted(head.path)} is not served under the method {quoted(head.method)}; use POST.",
        b"Allow: POST\r\n",
    )
