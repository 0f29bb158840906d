"""Finds the target of a method and path: the inference routes of TorchServe, and how they are described.

Source: spec sheet `torchserve`, section 4.1: any method predicts; what stands behind a version is the handler's own.
OPTIONS asks for the description of what would be called. Whether there is such a model the core knows.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from urllib.parse import parse_qsl

from trivium.codecs.openapi import ANYTHING, ApiOperation, ApiRoute, content_of
from trivium.codecs.path_segments import decoded, quoted
from trivium.servers.torchserve.wire.errors import TABLE, ErrorRow, ExactRefusal, RouteRefusal
from trivium.types.access import AccessScope, Endpoint
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head, Target


class TorchServeVerb(StrEnum):
    """The request that a target stands for; the value is `Target.verb`.

    INVOKE is a prediction whose query the handler sees, too; KServe's are those without a path behind the model.
    """

    PREDICT = "predict"
    EXPLAIN = "explain"
    INVOKE = "invoke"
    KSERVE_PREDICT = "KServe predict"
    KSERVE_EXPLAIN = "KServe explain"
    PING = "ping"
    DESCRIBE_API = "describe the API"
    DESCRIBE_MODEL_API = "describe the API of a model"
    OPEN_SERVER = "open inference: server"
    OPEN_LIVE = "open inference: live"
    OPEN_READY = "open inference: ready"
    OPEN_VERSIONS = "open inference: versions"


_INFER, _OPEN = AccessScope.INFER, AccessScope.OPEN
_STATUS = content_of({"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}})
_FAILURES: Mapping[int, str] = {
    400: "The request cannot be read.",
    404: "There is no such model, or no such version of it.",
    500: "The worker died, or did not answer in time.",
    503: "The handler failed, or no worker can take the request.",
    507: "Memory ran out.",
}
_DESCRIBED = content_of(
    {
        "type": "object",
        "required": ["openapi", "info", "paths"],
        "properties": {
            "openapi": {"type": "string"},
            "info": {"type": "object"},
            "paths": {"type": "object"},
        },
    }
)


def _prediction(path: str, name: str, what: str, is_deprecated: bool = False) -> ApiOperation:
    says = f"{what} Any method but OPTIONS does the same; what is sent and answered is up to the handler."
    return ApiOperation("POST", path, name, says, ANYTHING, ANYTHING, (), _FAILURES, is_deprecated)


def _route(
    path: str, *operations: ApiOperation, scope: AccessScope = _INFER, has_slash: bool = True
) -> ApiRoute:
    """Return what is answered at a path under any method, also with a slash behind it."""
    paths = (path, f"{path}/") if has_slash else (path,)
    return ApiRoute(
        [Endpoint(method, each, scope) for each in paths for method in ("*", "OPTIONS")], operations
    )


_DEFAULT, _NAMED = "the version of a model that requests without one get.", "a version of a model."
DESCRIPTIONS: Sequence[ApiRoute] = (
    ApiRoute(
        (Endpoint("OPTIONS", "/", _OPEN),),
        (ApiOperation("OPTIONS", "/", "apiDescription", "Describe what is served here.", None, _DESCRIBED),),
    ),
    _route(
        "/api-description",
        ApiOperation(
            "GET",
            "/api-description",
            "api-description",
            "Describe what is served here.",
            None,
            _DESCRIBED,
            is_deprecated=True,
        ),
        scope=_OPEN,
    ),
)
"""The routes that describe the others, on every listener."""

PREDICTIONS: Sequence[ApiRoute] = (
    _route(
        "/predictions/{model}/...",
        _prediction("/predictions/{model_name}", "predictions", f"Predict with {_DEFAULT}"),
        _prediction(
            "/predictions/{model_name}/{model_version}", "version_predictions", f"Predict with {_NAMED}"
        ),
        has_slash=False,
    ),
    _route(
        "/explanations/{model}/...",
        _prediction("/explanations/{model_name}", "explanations", f"Explain with {_DEFAULT}"),
        _prediction(
            "/explanations/{model_name}/{model_version}", "version_explanations", f"Explain with {_NAMED}"
        ),
        has_slash=False,
    ),
    _route(
        "/invocations",
        _prediction(
            "/invocations", "invocations", "Predict with the model that model_name names, or the only one."
        ),
    ),
    _route("/models//invoke"),  # the model is said elsewhere
    _route(
        "/models/{model}/invoke",
        _prediction("/models/{model_name}/invoke", "invoke", f"Predict with {_DEFAULT}"),
    ),
    _route(
        "/v1/models/{model}:predict",
        _prediction("/v1/models/{model_name}:predict", "v1_predict", f"Predict with {_DEFAULT}"),
    ),
    _route(
        "/v1/models/{model}:explain",
        _prediction("/v1/models/{model_name}:explain", "v1_explain", f"Explain with {_DEFAULT}"),
    ),
    _route(
        "/v2/models/{model}/infer",
        _prediction("/v2/models/{model_name}/infer", "v2_infer", f"Predict with {_DEFAULT}"),
    ),
    _route(
        "/v2/models/{model}/explain",
        _prediction("/v2/models/{model_name}/explain", "v2_explain", f"Explain with {_DEFAULT}"),
    ),
    _route(
        "/{model}/predict",
        _prediction("/{model_name}/predict", "legacy_predict", f"Predict with {_DEFAULT}", True),
    ),
    _route(
        "/{model}/{version}/predict",
        _prediction(
            "/{model_name}/{model_version}/predict", "legacy_version_predict", f"Predict with {_NAMED}", True
        ),
    ),
)
"""The routes by which models are called."""

OPEN_INFERENCE: Sequence[ApiRoute] = (
    _route("/v2", ApiOperation("GET", "/v2", "open_server", "Say who serves.")),
    _route(
        "/v2/health/live",
        ApiOperation("GET", "/v2/health/live", "open_live", "Say that the server is there."),
        scope=_OPEN,
    ),
    _route(
        "/v2/health/ready",
        ApiOperation("GET", "/v2/health/ready", "open_ready", "Say that the server is ready."),
        scope=_OPEN,
    ),
    _route("/v2/models/{model}/versions/{version}/...", has_slash=False),  # refused
)
"""The routes of the open inference protocol that TorchServe answers by itself, where that is switched on."""

PING = _route(
    "/ping/...",
    ApiOperation(
        "GET", "/ping", "ping", "Say how the server is.", None, _STATUS, (), {500: "It is unhealthy."}
    ),
    scope=_OPEN,
    has_slash=False,
)
ENDPOINTS: Sequence[Endpoint] = tuple(
    endpoint for route in (*DESCRIPTIONS, PING, *PREDICTIONS, *OPEN_INFERENCE) for endpoint in route.endpoints
)
"""All that this protocol answers."""

MAX_ARGUMENTS = 1000
_ROUTES = (
    "/predictions/MODEL[/VERSION[/PATH]], /explanations/MODEL[/VERSION], /invocations, "
    "/models/MODEL/invoke, /MODEL[/VERSION]/predict, /v1/models/MODEL:predict, /ping and OPTIONS /"
)


def find_target(head: Head, has_open_inference: bool = True) -> Target:
    """The target of a head. NOT_FOUND names the routes, UNSUPPORTED says what to do instead."""
    if (description := find_description(head)) is not None:
        return description
    match head.path.split("/"):
        case ["", ""]:
            raise RouteRefusal(Code.METHOD, "The server's root answers OPTIONS only.", b"Allow: OPTIONS\r\n")
        case ["", "ping", *_]:
            return Target(TorchServeVerb.PING, scope=_OPEN)
        case ["", "wfpredict", *_]:
            raise ServeError(
                Code.UNSUPPORTED,
                "Workflows are not supported in this version. Call their models one after another.",
            )
    called = _called(head) or _called_as_kserve(head)
    if called is None and has_open_inference:
        called = _open_inference(head)
    called = called or _called_as_before(head)
    if called is None:
        raise RouteRefusal(Code.NOT_FOUND, f"There is no route {quoted(head.path)}. There are: {_ROUTES}.")
    if head.method == "OPTIONS" and called.takes_body:
        return Target(TorchServeVerb.DESCRIBE_MODEL_API, called.model, called.version, scope=_INFER)
    return called


def find_description(head: Head) -> Target | None:
    """The target of a head that asks what is served; None for another."""
    match head.path.split("/"):
        case ["", ""] if head.method == "OPTIONS":
            return Target(TorchServeVerb.DESCRIBE_API, scope=_OPEN)
        case ["", "api-description"] | ["", "api-description", ""]:
            return Target(TorchServeVerb.DESCRIBE_API, scope=_OPEN)
    return None


def _called(head: Head) -> Target | None:
    match head.path.split("/"):
        case ["", "predictions", model, *rest] if model:
            return _calls(TorchServeVerb.PREDICT, model, rest[0] if rest else "")
        case ["", "explanations", model, *rest] if model:
            return _calls(TorchServeVerb.EXPLAIN, model, rest[0] if rest else "")
        case ["", "invocations"] | ["", "invocations", ""]:
            return Target(
                TorchServeVerb.INVOKE,
                dict(arguments(head)).get("model_name", ""),
                takes_body=True,
                scope=_INFER,
            )
        case ["", "models", model, "invoke"] | ["", "models", model, "invoke", ""]:
            return _calls(TorchServeVerb.INVOKE, model)
    return None


def _called_as_kserve(head: Head) -> Target | None:
    """KServe's two protocols; the second one's verbs are those of the first under other names."""
    match head.path.removesuffix("/").split("/"):
        case ["", "v1", "models", named] if named.endswith(("predict", "explain")) and ":" in named:
            model, _, verb = named.rpartition(":")
        case ["", "v2", "models", model, ("infer" | "explain") as verb]:
            pass
        case _:
            return None
    verbs = {
        "predict": TorchServeVerb.KSERVE_PREDICT,
        "infer": TorchServeVerb.KSERVE_PREDICT,
        "explain": TorchServeVerb.KSERVE_EXPLAIN,
    }
    if verb not in verbs:
        return None
    if not model:
        row = ErrorRow(404, TABLE[Code.NOT_FOUND].type_name, "Model not found: ")
        raise ExactRefusal(Code.NOT_FOUND, f"{quoted(head.path)} names no model.", row)
    return _calls(verbs[verb], model)


def _open_inference(head: Head) -> Target | None:
    match head.path.removesuffix("/").split("/"):
        case ["", "v2"]:
            return Target(TorchServeVerb.OPEN_SERVER, scope=_INFER)
        case ["", "v2", "health", "live"]:
            return Target(TorchServeVerb.OPEN_LIVE, scope=_OPEN)
        case ["", "v2", "health", "ready"]:
            return Target(TorchServeVerb.OPEN_READY, scope=_OPEN)
        case ["", "v2", "models", model, "versions", version, *_] if model and version:
            return Target(TorchServeVerb.OPEN_VERSIONS, scope=_INFER)
    return None


_NO_MODELS = frozenset({"", "predictions", "explanations", "invocations", "models", "ping", "v1", "v2"})
"""First segments that are no model's name."""


def _called_as_before(head: Head) -> Target | None:
    """The oldest routes, which begin with the model's name."""
    match head.path.removesuffix("/").split("/"):
        case ["", model, "predict"] if model not in _NO_MODELS:
            return _calls(TorchServeVerb.INVOKE, model)
        case ["", model, version, "predict"] if model not in _NO_MODELS and version:
            return _calls(TorchServeVerb.INVOKE, model, version)
    return None


def _calls(verb: TorchServeVerb, model: str, version: str = "") -> Target:
    return Target(verb, decoded(model), decoded(version), takes_body=True, scope=_INFER)


def is_invocation(head: Head) -> bool:
    """Tell whether a path below the models, or KServe's, runs one."""
    segments = head.path.split("/")
    return (segments[1:2] == ["models"] and segments[3:4] == ["invoke"]) or (
        segments[1:2] == ["v1"] and _called_as_kserve(head) is not None
    )


def url_path(head: Head) -> str:
    """Return the part of a prediction's path behind the version, without slashes at its end."""
    return "/".join(map(decoded, head.path.rstrip("/").split("/")[4:]))


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
