"""Finds the target of a method and path: the routes that manage TorchServe's models, and how they are described.

Source: spec sheet `torchserve`, section 5, and what 0.12.0 answers: a slash at the end is no segment. Whether there is
such a model the core knows.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from trivium.codecs.openapi import OBJECT, ApiArgument, ApiOperation, ApiRoute, content_of
from trivium.codecs.path_segments import decoded, quoted
from trivium.servers.torchserve.wire.errors import RouteRefusal
from trivium.types.access import AccessScope, Endpoint
from trivium.types.errors import Code
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
    DESCRIBE_API = "describe the API of management"


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

_STATUS = content_of({"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}})
_LISTED = content_of(
    {
        "type": "object",
        "required": ["models"],
        "properties": {
            "nextPageToken": {"type": "string"},
            "models": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["modelName", "modelUrl"],
                    "properties": {"modelName": {"type": "string"}, "modelUrl": {"type": "string"}},
                },
            },
        },
    }
)
_MODELS = content_of({"type": "array", "items": {"type": "object"}})
_UNKNOWN: Mapping[int, str] = {404: "There is no such model, or no such version of it."}
_WORKERS: Mapping[int, str] = {
    202: "The workers are being started or stopped.",
    **_UNKNOWN,
    400: "An argument is missing, or its value cannot be.",
    500: "The workers did not start.",
    507: "The workers did not start: memory ran out.",
}
_SYNCHRONOUS = ApiArgument("synchronous", "boolean", "Whether the answer waits for the workers.", False)
_OF_REGISTRATION = (
    ApiArgument("url", "string", "Where the model is: a name in the model store, or a URL.", is_needed=True),
    ApiArgument("model_name", "string", "The model's name; without it that of its manifest."),
    ApiArgument("handler", "string", "The handler; without it that of the manifest."),
    ApiArgument("runtime", "string", "python or python3; without it that of the manifest."),
    ApiArgument("batch_size", "integer", "Requests in one call of the handler.", 1),
    ApiArgument("max_batch_delay", "integer", "Milliseconds that a batch waits to be full.", 100),
    ApiArgument("initial_workers", "integer", "Workers to start.", 0),
    ApiArgument("response_timeout", "integer", "Seconds that a worker has for an answer.", 120),
    ApiArgument("startup_timeout", "integer", "Seconds that a worker has to start.", 120),
    ApiArgument("synchronous", "boolean", "Whether the answer waits for the workers.", True),
)
_OF_LIST = (
    ApiArgument("limit", "integer", "Models on one page, 100 at most.", 100),
    ApiArgument("next_page_token", "string", "The page to go on with: the token of the one before."),
)
_OF_SCALING = (
    ApiArgument("min_worker", "integer", "The least number of workers.", 1),
    ApiArgument("max_worker", "integer", "The greatest number of workers; without it the least."),
    _SYNCHRONOUS,
)
_CUSTOMIZED = ApiArgument(
    "customized", "boolean", "Whether the model is asked, too, what it says of itself.", False
)


def _of_versions(path: str, prefix: str) -> Sequence[ApiOperation]:
    """Return what is done to a model, or to one of its versions; `prefix` tells their names apart."""
    return (
        ApiOperation(
            "GET", path, f"{prefix}describeModel", "Describe it.", None, _MODELS, (_CUSTOMIZED,), _UNKNOWN
        ),
        ApiOperation(
            "PUT",
            path,
            f"{prefix}setAutoScale",
            "Say how many workers it has.",
            None,
            _STATUS,
            _OF_SCALING,
            _WORKERS,
        ),
        ApiOperation(
            "DELETE",
            path,
            f"{prefix}unregisterModel",
            "Unregister it: what it has begun is finished.",
            None,
            _STATUS,
            (),
            {**_UNKNOWN, 403: "It is the default version, and there are others."},
        ),
    )


def _route(path: str, methods: Iterable[str], *operations: ApiOperation) -> ApiRoute:
    """Return what is answered at a path, also with a slash behind it."""
    endpoints = [
        Endpoint(method, f"{path}{end}", _OBSERVE if method == "GET" else _MANAGE)
        for method in methods
        for end in ("", "/")
    ]
    return ApiRoute(endpoints, operations)


_ONE, _VERSION = "/models/{model_name}", "/models/{model_name}/{model_version}"
MANAGEMENT: Sequence[ApiRoute] = (
    _route(
        "/models",
        _COLLECTION,
        ApiOperation("GET", "/models", "listModels", "List the models.", None, _LISTED, _OF_LIST),
        ApiOperation(
            "POST",
            "/models",
            "registerModel",
            "Register a model. The arguments may also be members of a JSON object that is the body.",
            OBJECT,
            _STATUS,
            _OF_REGISTRATION,
            {**_WORKERS, 409: "This version is registered already."},
        ),
    ),
    _route("/models/{model}", _MEMBER, *_of_versions(_ONE, "")),
    _route("/models/{model}/{version}", _MEMBER, *_of_versions(_VERSION, "version_")),
    _route(
        f"/models/{{model}}/{{version}}/{_SET_DEFAULT}",
        _DEFAULT,
        ApiOperation(
            "PUT",
            f"{_VERSION}/{_SET_DEFAULT}",
            "setDefault",
            "Have requests that name no version go to this one.",
            None,
            _STATUS,
            (),
            _UNKNOWN,
        ),
    ),
    _route(
        "/v1/models/{model}",
        _READY,
        ApiOperation(
            "GET", "/v1/models/{model_name}", "v1_ready", "Say whether it has workers.", others=_UNKNOWN
        ),
    ),
    ApiRoute(
        [
            Endpoint("OPTIONS", f"/models/{{model}}{end}{slash}", _OBSERVE)
            for end in ("", "/{version}", f"/{{version}}/{_SET_DEFAULT}")
            for slash in ("", "/")
        ],
        (
            ApiOperation(
                "OPTIONS",
                _ONE,
                "describeModelApi",
                "Describe how this model is managed.",
                None,
                OBJECT,
                (),
                _UNKNOWN,
            ),
        ),
    ),
)
"""The routes by which models are managed."""

ENDPOINTS: Sequence[Endpoint] = tuple(endpoint for route in MANAGEMENT for endpoint in route.endpoints)
"""All that is answered."""

ROUTES = "/models, /models/MODEL[/VERSION[/set-default]], /v1/models/MODEL"


def find_management(head: Head) -> Target | None:
    """The target of a head; None for a path that is not for management. METHOD says which methods there are."""
    segments = head.path.removesuffix("/").split("/")[1:]
    match segments:
        case ["models", model, *rest] if model and head.method == "OPTIONS" and _is_of_version(rest):
            version = decoded(rest[0]) if rest else ""
            return Target(
                ManagementVerb.DESCRIBE_API, decoded(model), version, scope=_OBSERVE, is_served=False
            )
        case ["models"]:
            return _managing(head, _COLLECTION, "", "")
        case ["models", model, *rest] if model and len(rest) < 2 and all(rest):
            return _managing(head, _MEMBER, decoded(model), decoded(rest[0]) if rest else "")
        case ["models", model, version, "set-default"] if model and version:
            return _managing(head, _DEFAULT, decoded(model), decoded(version))
        case ["v1", "models", model] if model:
            return _managing(head, _READY, decoded(model), "")
    return None


def _is_of_version(segments: Sequence[str]) -> bool:
    return all(segments) and (len(segments) < 2 or segments[1:] == [_SET_DEFAULT])


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
