"""Finds the target of a method and path: the inference routes of TorchServe.

Source: spec sheet `torchserve`, section 4.1: any method predicts; what stands behind a version is the handler's own,
behind the other routes nobody's (observed on 0.12.0: it is not looked at).
Whether there is such a model the core knows.
"""

from collections.abc import Sequence
from enum import StrEnum
from urllib.parse import parse_qsl

from trivium.codecs.path_segments import decoded, quoted
from trivium.protocols.torchserve.errors import RouteRefusal
from trivium.types.access import AccessScope, Endpoint
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head, Target


class TorchServeVerb(StrEnum):
    """The request that a target stands for; the value is `Target.verb`.

    INVOKE is a prediction whose query the handler sees, too.
    """

    PREDICT = "predict"
    EXPLAIN = "explain"
    INVOKE = "invoke"
    PING = "ping"


_INFER = AccessScope.INFER

ENDPOINTS: Sequence[Endpoint] = (
    Endpoint("*", "/ping/...", AccessScope.OPEN),
    Endpoint("OPTIONS", "/ping/...", AccessScope.OPEN),
    Endpoint("*", "/predictions/{model}/...", _INFER),
    Endpoint("*", "/explanations/{model}/...", _INFER),
    Endpoint("*", "/invocations/...", _INFER),
    Endpoint("OPTIONS", "/invocations/...", _INFER),
    Endpoint("*", "/models/{model}/invoke/...", _INFER),
    Endpoint("*", "/models//invoke/...", _INFER),  # the model is said elsewhere
)
"""All that this protocol answers."""

MAX_ARGUMENTS = 1000
_ROUTES = (
    "/predictions/MODEL[/VERSION[/PATH]], /explanations/MODEL[/VERSION], /invocations, "
    "/models/MODEL/invoke and /ping"
)


def find_target(head: Head) -> Target:
    """The target of a head. NOT_FOUND names the routes, UNSUPPORTED says what to do instead."""
    match head.path.split("/"):
        case ["", "predictions" | "explanations" | "models", _, *_] if head.method == "OPTIONS":
            raise ServeError(
                Code.UNSUPPORTED,
                "The description of a model as OpenAPI is not supported in this version. Call the model at "
                "/predictions/MODEL.",
            )
        case ["", "predictions", model, *rest] if model:
            return Target(
                TorchServeVerb.PREDICT, decoded(model), decoded(rest[0]) if rest else "", True, scope=_INFER
            )
        case ["", "explanations", model, *rest] if model:
            return Target(
                TorchServeVerb.EXPLAIN, decoded(model), decoded(rest[0]) if rest else "", True, scope=_INFER
            )
        case ["", "invocations", *_]:
            return Target(
                TorchServeVerb.INVOKE,
                dict(arguments(head)).get("model_name", ""),
                takes_body=True,
                scope=_INFER,
            )
        case ["", "models", model, "invoke", *_]:
            return Target(TorchServeVerb.INVOKE, decoded(model), takes_body=True, scope=_INFER)
        case ["", "ping", *_]:
            return Target(TorchServeVerb.PING, scope=AccessScope.OPEN)
        case ["", ""] if head.method != "OPTIONS":
            raise RouteRefusal(Code.METHOD, "The server's root answers OPTIONS only.", b"Allow: OPTIONS\r\n")
        case ["", "" | "api-description"]:
            raise ServeError(
                Code.UNSUPPORTED,
                f"The description of the server as OpenAPI is not supported in this version. Its routes are {_ROUTES}.",
            )
        case ["", "wfpredict", *_]:
            raise ServeError(
                Code.UNSUPPORTED,
                "Workflows are not supported in this version. Call their models one after another.",
            )
    raise RouteRefusal(Code.NOT_FOUND, f"There is no route {quoted(head.path)}. There are: {_ROUTES}.")


def is_invocation(head: Head) -> bool:
    """Tell whether a path below the models runs one."""
    return head.path.split("/")[1:2] == ["models"] and head.path.split("/")[3:4] == ["invoke"]


def url_path(head: Head) -> str:
    """Return the part of a prediction's path behind the version."""
    return "/".join(map(decoded, head.path.split("/")[4:]))


def arguments(head: Head) -> tuple[tuple[str, str], ...]:
    """The query's arguments in their order. INVALID where it cannot be read."""
    try:
        return tuple(
            parse_qsl(head.query, keep_blank_values=True, errors="strict", max_num_fields=MAX_ARGUMENTS)
        )
    except ValueError as error:
        raise ServeError(
            Code.INVALID,
            f"The query is not at most {MAX_ARGUMENTS} percent-encoded UTF-8 arguments. Encode them so.",
        ) from error
