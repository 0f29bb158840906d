"""The routes that manage TorchServe's models, and how they are described.

Source: spec sheet `torchserve`, section 5, and what 0.12.0 answers: a slash at the end is no segment. Whether there is
such a model the core knows.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from trivium.codecs.openapi import OBJECT, ApiArgument, ApiOperation, ApiRoute, content_of
from trivium.codecs.routes import HttpRoute, with_slash
from trivium.types.access import AccessScope, Endpoint


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


def _route(path: str, verbs: Mapping[str, ManagementVerb], *operations: ApiOperation) -> ApiRoute:
    """Return what is answered at a path, also with a slash behind it."""
    rows = [
        HttpRoute(
            method,
            path,
            verb,
            _MANAGE if method in ("POST", "PUT", "DELETE") else _OBSERVE,
            takes_body=verb is ManagementVerb.REGISTER,
            is_served=False,
        )
        for method, verb in verbs.items()
    ]
    return ApiRoute(tuple(with_slash(rows)), operations)


_AT_ONE, _AT_VERSION = "/models/{model}", "/models/{model}/{version}"
_AT_DEFAULT = f"{_AT_VERSION}/{_SET_DEFAULT}"
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
    _route(_AT_ONE, _MEMBER, *_of_versions(_ONE, "")),
    _route(_AT_VERSION, _MEMBER, *_of_versions(_VERSION, "version_")),
    _route(
        _AT_DEFAULT,
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
            row
            for path in (_AT_ONE, _AT_VERSION, _AT_DEFAULT)
            for row in _route(path, {"OPTIONS": ManagementVerb.DESCRIBE_API}).rows
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

TOLD = "/models, /models/MODEL[/VERSION[/set-default]], /v1/models/MODEL"
