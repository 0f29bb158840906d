"""The inference routes of TorchServe, and how they are described.

Source: spec sheet `torchserve`, section 4.1: any method predicts; what stands behind a version is the handler's own.
OPTIONS asks for the description of what would be called. Whether there is such a model the core knows.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from urllib.parse import parse_qsl

import msgspec

from trivium.codecs.error_table import Refusal, Wording
from trivium.codecs.openapi import ANYTHING, ApiOperation, ApiRoute, content_of
from trivium.codecs.path_segments import decoded, quoted
from trivium.codecs.routes import ANY, HttpRoute, prefixes, with_slash
from trivium.servers.torchserve.wire.errors import NOT_THERE
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


def _route(path: str, verb: TorchServeVerb, *operations: ApiOperation, has_slash: bool = True) -> ApiRoute:
    """Return what calls a model under any method, also with a slash behind its path; OPTIONS describes the model."""
    rows = (
        HttpRoute(ANY, path, verb, _INFER, takes_body=True),
        HttpRoute("OPTIONS", path, TorchServeVerb.DESCRIBE_MODEL_API, _INFER),
    )
    return ApiRoute(tuple(with_slash(rows)) if has_slash else rows, operations)


def _said(
    path: str,
    verb: TorchServeVerb,
    *operations: ApiOperation,
    scope: AccessScope = _INFER,
    has_slash: bool = True,
) -> ApiRoute:
    """Return what the server says of itself under every method, also with a slash behind its path."""
    row = HttpRoute(f"{ANY} OPTIONS", path, verb, scope)
    return ApiRoute(tuple(with_slash([row])) if has_slash else (row,), operations)


_DEFAULT, _NAMED = "the version of a model that requests without one get.", "a version of a model."
DESCRIPTIONS: Sequence[ApiRoute] = (
    ApiRoute(
        (HttpRoute("OPTIONS", "/", TorchServeVerb.DESCRIBE_API, _OPEN),),
        (ApiOperation("OPTIONS", "/", "apiDescription", "Describe what is served here.", None, _DESCRIBED),),
    ),
    _said(
        "/api-description",
        TorchServeVerb.DESCRIBE_API,
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
        "/predictions/{model}/{version}...",
        TorchServeVerb.PREDICT,
        _prediction("/predictions/{model_name}", "predictions", f"Predict with {_DEFAULT}"),
        _prediction(
            "/predictions/{model_name}/{model_version}", "version_predictions", f"Predict with {_NAMED}"
        ),
        has_slash=False,
    ),
    _route(
        "/explanations/{model}/{version}...",
        TorchServeVerb.EXPLAIN,
        _prediction("/explanations/{model_name}", "explanations", f"Explain with {_DEFAULT}"),
        _prediction(
            "/explanations/{model_name}/{model_version}", "version_explanations", f"Explain with {_NAMED}"
        ),
        has_slash=False,
    ),
    _route(
        "/invocations",
        TorchServeVerb.INVOKE,
        _prediction(
            "/invocations", "invocations", "Predict with the model that model_name names, or the only one."
        ),
    ),
    _route("/models//invoke", TorchServeVerb.INVOKE),  # the model is said elsewhere
    _route(
        "/models/{model}/invoke",
        TorchServeVerb.INVOKE,
        _prediction("/models/{model_name}/invoke", "invoke", f"Predict with {_DEFAULT}"),
    ),
    _route(
        "/v1/models/{model}:predict",
        TorchServeVerb.KSERVE_PREDICT,
        _prediction("/v1/models/{model_name}:predict", "v1_predict", f"Predict with {_DEFAULT}"),
    ),
    _route(
        "/v1/models/{model}:explain",
        TorchServeVerb.KSERVE_EXPLAIN,
        _prediction("/v1/models/{model_name}:explain", "v1_explain", f"Explain with {_DEFAULT}"),
    ),
    _route(
        "/v2/models/{model}/infer",
        TorchServeVerb.KSERVE_PREDICT,
        _prediction("/v2/models/{model_name}/infer", "v2_infer", f"Predict with {_DEFAULT}"),
    ),
    _route(
        "/v2/models/{model}/explain",
        TorchServeVerb.KSERVE_EXPLAIN,
        _prediction("/v2/models/{model_name}/explain", "v2_explain", f"Explain with {_DEFAULT}"),
    ),
    _route(
        "/{model}/predict",
        TorchServeVerb.INVOKE,
        _prediction("/{model_name}/predict", "legacy_predict", f"Predict with {_DEFAULT}", True),
    ),
    _route(
        "/{model}/{version}/predict",
        TorchServeVerb.INVOKE,
        _prediction(
            "/{model_name}/{model_version}/predict", "legacy_version_predict", f"Predict with {_NAMED}", True
        ),
    ),
)
"""The routes by which models are called."""

OPEN_INFERENCE: Sequence[ApiRoute] = (
    _said("/v2", TorchServeVerb.OPEN_SERVER, ApiOperation("GET", "/v2", "open_server", "Say who serves.")),
    _said(
        "/v2/health/live",
        TorchServeVerb.OPEN_LIVE,
        ApiOperation("GET", "/v2/health/live", "open_live", "Say that the server is there."),
        scope=_OPEN,
    ),
    _said(
        "/v2/health/ready",
        TorchServeVerb.OPEN_READY,
        ApiOperation("GET", "/v2/health/ready", "open_ready", "Say that the server is ready."),
        scope=_OPEN,
    ),
    ApiRoute(
        [
            HttpRoute(
                f"{ANY} OPTIONS",
                "/v2/models/{model}/versions/{version}/...",
                TorchServeVerb.OPEN_VERSIONS,
                _INFER,
                subject="",
            )
        ]
    ),  # refused
)
"""The routes of the open inference protocol that TorchServe answers by itself, where that is switched on."""

PING = _said(
    "/ping/...",
    TorchServeVerb.PING,
    ApiOperation(
        "GET", "/ping", "ping", "Say how the server is.", None, _STATUS, (), {500: "It is unhealthy."}
    ),
    scope=_OPEN,
    has_slash=False,
)
_SERVED = (*DESCRIPTIONS, *PREDICTIONS, *OPEN_INFERENCE, PING)
ENDPOINTS: Sequence[Endpoint] = tuple(endpoint for route in _SERVED for endpoint in route.endpoints)
"""All that this protocol answers."""

_WORKFLOW, _NAMELESS = "workflow", "nameless"
_WORKFLOWS = HttpRoute(f"{ANY} OPTIONS", "/wfpredict/...", _WORKFLOW, AccessScope.ANY)
_NO_MODELS = ("predictions", "explanations", "invocations", "models", "models/{model}/invoke", "v1", "v2")
"""Begins of paths that belong to no model of that name, nor to its management."""

REFUSED: Sequence[HttpRoute] = (
    _WORKFLOWS,
    *with_slash(
        HttpRoute(f"{ANY} OPTIONS", path, _NAMELESS, AccessScope.ANY)
        for path in ("/v1/models/:predict", "/v1/models/:explain", "/v2/models//infer", "/v2/models//explain")
    ),
    *(HttpRoute("", f"/{first}/...") for first in _NO_MODELS),
)
"""The routes that are refused in words of their own, and those that are not there, whatever a model is called."""

PREFIXES: Sequence[str] = prefixes((*(row for route in _SERVED for row in route.rows), _WORKFLOWS))
TOLD = (
    "/predictions/MODEL[/VERSION[/PATH]], /explanations/MODEL[/VERSION], /invocations, "
    "/models/MODEL/invoke, /MODEL[/VERSION]/predict, /v1/models/MODEL:predict, /ping and OPTIONS /"
)
_DESCRIBED = {row.path: row.methods for route in DESCRIPTIONS for row in route.rows}
MAX_ARGUMENTS = 1000


def check_served(head: Head, target: Target) -> Target:
    """Return the target of a head whose path names no model; where its query does, with that. UNSUPPORTED or NOT_FOUND
    for one that is refused.
    """
    if target.verb is _WORKFLOW:
        raise ServeError(
            Code.UNSUPPORTED,
            "Workflows are not supported in this version. Call their models one after another.",
        )
    if target.verb is _NAMELESS:
        told = Wording(404, NOT_THERE.type_name, "Model not found: ")
        raise Refusal(Code.NOT_FOUND, f"{quoted(head.path)} names no model.", told)
    if head.path.startswith("/invocations"):
        return msgspec.structs.replace(target, model=dict(arguments(head)).get("model_name", ""))
    return target


def is_description(head: Head) -> bool:
    """Tell whether a head asks what is served."""
    methods = _DESCRIBED.get(head.path)
    return methods is not None and (methods[:1] == ANY or methods == head.method)


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
