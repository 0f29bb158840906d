"""The routes of the Open Inference Protocol v2 over HTTP.

Source: the protocol's HTTP/REST part and spec sheet `triton`, section 4.1; HEAD and 405 by RFC 9110, sections 9.3.2 and
15.5.6. A version is any segment: whether there is such a version the core knows. The word `version` stands for
`versions`, too: DJL Serving has that.
"""

from collections.abc import Sequence
from enum import StrEnum

from trivium.codecs.near_names import LONGEST, nearest
from trivium.codecs.path_segments import LONGEST_SHOWN, quoted
from trivium.codecs.routes import ANY, HttpRoute, RouteTree, endpoints
from trivium.types.access import AccessScope, Endpoint
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head
from trivium.wires.v2 import request_reasons


class Verb(StrEnum):
    """The request that a target stands for; the value is `Target.verb`."""

    INFER = "infer"
    LIVE = "live"
    READY = "ready"
    METADATA = "metadata"
    CONFIG = "config"
    STATISTICS = "stats"
    GENERATE = "generate"
    GENERATE_STREAM = "generate_stream"
    INDEX = "index"
    LOAD = "load"
    UNLOAD = "unload"
    REGIONS = "regions"
    REGISTER = "register"
    UNREGISTER = "unregister"
    DEVICE_REGIONS = "device regions"
    DEVICE_REGISTER = "device register"
    DEVICE_UNREGISTER = "device unregister"
    LOG_SETTINGS = "logging"
    TRACE_SETTINGS = "trace"


_INFER, _OBSERVE = AccessScope.INFER, AccessScope.OBSERVE
_OF_MODEL = (
    "/v2/models/{model}",
    "/v2/models/{model}/versions/{version}",
    "/v2/models/{model}/version/{version}",
)
_OF_MEMORY = (
    ("/v2/systemsharedmemory", Verb.REGIONS, Verb.REGISTER, Verb.UNREGISTER),
    ("/v2/cudasharedmemory", Verb.DEVICE_REGIONS, Verb.DEVICE_REGISTER, Verb.DEVICE_UNREGISTER),
)
_SETTINGS = (
    ("/v2/logging", Verb.LOG_SETTINGS),
    ("/v2/trace/setting", Verb.TRACE_SETTINGS),
    ("/v2/models/{model}/trace/setting", Verb.TRACE_SETTINGS),
)


def _post(
    path: str, verb: Verb, scope: AccessScope = AccessScope.MANAGE, subject: str = "model"
) -> HttpRoute:
    return HttpRoute("POST", path, verb, scope, takes_body=True, is_served=False, subject=subject)


ROWS: Sequence[HttpRoute] = (
    HttpRoute("GET", "/v2/health/live", Verb.LIVE, AccessScope.OPEN),
    HttpRoute("GET", "/v2/health/ready", Verb.READY, AccessScope.OPEN),
    HttpRoute("GET", "/v2", Verb.METADATA, _INFER),
    *(HttpRoute("GET", model, Verb.METADATA, _INFER) for model in _OF_MODEL),
    *(HttpRoute("GET", f"{model}/ready", Verb.READY, _INFER) for model in _OF_MODEL),
    *(HttpRoute("POST", f"{model}/infer", Verb.INFER, _INFER, takes_body=True) for model in _OF_MODEL),
    *(HttpRoute("POST", f"{model}/generate", Verb.GENERATE, _INFER, takes_body=True) for model in _OF_MODEL),
    *(
        HttpRoute("POST", f"{model}/generate_stream", Verb.GENERATE_STREAM, _INFER, takes_body=True)
        for model in _OF_MODEL
    ),
    *(HttpRoute("GET", f"{model}/config", Verb.CONFIG, _OBSERVE) for model in _OF_MODEL),
    *(HttpRoute("GET", f"{model}/stats", Verb.STATISTICS, _OBSERVE) for model in _OF_MODEL),
    HttpRoute("GET", "/v2/models/stats", Verb.STATISTICS, _OBSERVE),
    _post("/v2/repository/index", Verb.INDEX, _OBSERVE),
    _post("/v2/repository/{repository}/index", Verb.INDEX, _OBSERVE),
    *(HttpRoute("GET", path, verb, _OBSERVE, is_served=False) for path, verb in _SETTINGS),
    *(_post(path, verb) for path, verb in _SETTINGS),
    _post("/v2/repository/models/{model}/load", Verb.LOAD),
    _post("/v2/repository/models/{model}/unload", Verb.UNLOAD),
    *(HttpRoute("GET", f"{memory}/status", status) for memory, status, _, _ in _OF_MEMORY),
    *(
        HttpRoute("GET", f"{memory}/region/{{region}}/status", status, subject="region")
        for memory, status, _, _ in _OF_MEMORY
    ),
    *(
        _post(f"{memory}/region/{{region}}/register", register, subject="region")
        for memory, _, register, _ in _OF_MEMORY
    ),
    *(
        _post(f"{memory}/region/{{region}}/unregister", unregister, subject="region")
        for memory, _, _, unregister in _OF_MEMORY
    ),
    *(_post(f"{memory}/unregister", unregister) for memory, _, _, unregister in _OF_MEMORY),
)
"""All that this protocol answers."""

NAMED_REPOSITORY = "named repository"
_REFUSED: Sequence[HttpRoute] = tuple(
    HttpRoute(
        f"{ANY} OPTIONS",
        f"/v2/repository/{{repository}}/models/{{model}}/{verb}",
        NAMED_REPOSITORY,
        subject="",
    )
    for verb in (Verb.LOAD, Verb.UNLOAD)
)
ENDPOINTS: Sequence[Endpoint] = endpoints(ROWS)
_SERVER_PATHS = (
    "/v2",
    "/v2/health/live",
    "/v2/health/ready",
    "/v2/models/stats",
    "/v2/repository/index",
    "/v2/repository/models/MODEL/load",
    "/v2/systemsharedmemory/status",
    "/v2/logging",
    "/v2/trace/setting",
)
_MODEL_PATHS = ("", "/infer", "/generate", "/ready", "/config", "/stats", "/versions/1", "/versions/1/infer")


def named_repository(path: str) -> ServeError:
    """Return the refusal of a path that names one repository among several."""
    _, _, _, name, _, model, verb = path.split("/")
    return ServeError(
        Code.UNSUPPORTED,
        f"The repository {quoted(name)} cannot be chosen: a model's name is unique over all paths served. "
        f"Use /v2/repository/models/{quoted(model)[1:-1]}/{verb}.",
        info=ErrorInfo.of(request_reasons.NAMED_REPOSITORY),
    )


def _advice(head: Head, allow: str) -> str:
    if allow:
        return f"{quoted(head.path)} is not served under the method {quoted(head.method)}; use {allow}."
    path = head.path[:LONGEST_SHOWN]
    segments = path.split("/")
    model = segments[3] if segments[1:3] == ["v2", "models"] and len(segments) > 3 else ""
    model = model if 0 < len(model) < LONGEST // 2 else "MODEL"
    routes = [f"/v2/models/{model}{end}" for end in _MODEL_PATHS]
    close = nearest(path, (*_SERVER_PATHS, *routes), 3, 0.0)
    return f"There is no route {quoted(head.path)}. Routes near it: {', '.join(close)}."


TREE = RouteTree((*ROWS, *_REFUSED), _advice)
