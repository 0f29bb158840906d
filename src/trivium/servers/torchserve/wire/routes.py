"""The inference routes of TorchServe.

Source: spec sheet `torchserve`, section 4.1: any method but OPTIONS predicts; what stands behind a version is the
handler's own. Whether there is such a model the core knows.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from urllib.parse import parse_qsl

import msgspec

from trivium.codecs.error_table import Refusal, Wording
from trivium.codecs.path_segments import decoded, quoted
from trivium.codecs.routes import ANY, HttpRoute, endpoints, prefixes, with_slash
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
    OPEN_SERVER = "open inference: server"
    OPEN_LIVE = "open inference: live"
    OPEN_READY = "open inference: ready"
    OPEN_VERSIONS = "open inference: versions"


_INFER, _OPEN = AccessScope.INFER, AccessScope.OPEN
_ALL = f"{ANY} OPTIONS"
_WORKFLOW, _NAMELESS = "workflow", "nameless"


def descriptions(paths: Iterable[str], scope: AccessScope) -> tuple[HttpRoute, ...]:
    """Return the routes by which OPTIONS asks how what is at these paths is called; the answer refuses it."""
    return tuple(HttpRoute("OPTIONS", path, TorchServeVerb.DESCRIBE_API, scope) for path in paths)


DESCRIPTIONS: Sequence[HttpRoute] = (
    *descriptions(("/",), _OPEN),
    *with_slash([HttpRoute(_ALL, "/api-description", TorchServeVerb.DESCRIBE_API, _OPEN)]),
)
"""The routes by which the others are asked for, on every listener."""

_CALLS = (
    ("/invocations", TorchServeVerb.INVOKE),
    ("/models//invoke", TorchServeVerb.INVOKE),  # the model is said elsewhere
    ("/models/{model}/invoke", TorchServeVerb.INVOKE),
    ("/v1/models/{model}:predict", TorchServeVerb.KSERVE_PREDICT),
    ("/v1/models/{model}:explain", TorchServeVerb.KSERVE_EXPLAIN),
    ("/v2/models/{model}/infer", TorchServeVerb.KSERVE_PREDICT),
    ("/v2/models/{model}/explain", TorchServeVerb.KSERVE_EXPLAIN),
    ("/{model}/predict", TorchServeVerb.INVOKE),
    ("/{model}/{version}/predict", TorchServeVerb.INVOKE),
)
_OPEN_ENDED = (
    ("/predictions/{model}/{version}...", TorchServeVerb.PREDICT),
    ("/explanations/{model}/{version}...", TorchServeVerb.EXPLAIN),
)
_CALLING = (
    *(HttpRoute(ANY, path, verb, _INFER, takes_body=True) for path, verb in _OPEN_ENDED),
    *with_slash(HttpRoute(ANY, path, verb, _INFER, takes_body=True) for path, verb in _CALLS),
)
PREDICTIONS: Sequence[HttpRoute] = (*_CALLING, *descriptions((row.path for row in _CALLING), _INFER))
"""The routes by which models are called, under any method but OPTIONS."""

SERVER_PROBES: Sequence[HttpRoute] = tuple(
    with_slash(
        (
            HttpRoute(_ALL, "/v2", TorchServeVerb.OPEN_SERVER, _INFER),
            HttpRoute(_ALL, "/v2/health/live", TorchServeVerb.OPEN_LIVE, _OPEN),
            HttpRoute(_ALL, "/v2/health/ready", TorchServeVerb.OPEN_READY, _OPEN),
        )
    )
)
"""The routes of the open inference protocol that are about the server."""

OPEN_INFERENCE: Sequence[HttpRoute] = (
    *SERVER_PROBES,
    HttpRoute(
        _ALL,
        "/v2/models/{model}/versions/{version}/...",
        TorchServeVerb.OPEN_VERSIONS,
        _INFER,
        subject="",
    ),  # refused
)
"""The routes of the open inference protocol that TorchServe answers by itself, where that is switched on."""

PING = HttpRoute(_ALL, "/ping/...", TorchServeVerb.PING, _OPEN)
_SERVED = (*DESCRIPTIONS, *PREDICTIONS, *OPEN_INFERENCE, PING)
ENDPOINTS: Sequence[Endpoint] = endpoints(_SERVED)
"""All that this protocol answers."""

_WORKFLOWS = HttpRoute(_ALL, "/wfpredict/...", _WORKFLOW, AccessScope.ANY)
_NO_MODELS = ("predictions", "explanations", "invocations", "models", "models/{model}/invoke", "v1", "v2")
"""Begins of paths that belong to no model of that name, nor to its management."""

REFUSED: Sequence[HttpRoute] = (
    _WORKFLOWS,
    *with_slash(
        HttpRoute(_ALL, path, _NAMELESS, AccessScope.ANY)
        for path in ("/v1/models/:predict", "/v1/models/:explain", "/v2/models//infer", "/v2/models//explain")
    ),
    *(HttpRoute("", f"/{first}/...") for first in _NO_MODELS),
)
"""The routes that are refused in words of their own, and those that are not there, whatever a model is called."""

PREFIXES: Sequence[str] = prefixes((*_SERVED, _WORKFLOWS))
TOLD = (
    "/predictions/MODEL[/VERSION[/PATH]], /explanations/MODEL[/VERSION], /invocations, "
    "/models/MODEL/invoke, /MODEL[/VERSION]/predict, /v1/models/MODEL:predict and /ping"
)
_OF_DESCRIPTIONS = {row.path: row.methods for row in DESCRIPTIONS}
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
    methods = _OF_DESCRIPTIONS.get(head.path)
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
