"""Finds the target of a method and path: the routes of the Open Inference Protocol v2 over HTTP.

Source: the protocol's HTTP/REST part and spec sheet `triton`, section 4.1; HEAD and 405 by RFC 9110,
sections 9.3.2 and 15.5.6. A version is any segment: whether there is such a version the core knows.
On the path of every request: no regular expression, no formatting unless it refuses. Each route says the right that it
needs, in `find_target` and in the table `ENDPOINTS`; tests hold the two against each other.
"""

from collections.abc import Sequence
from enum import StrEnum

from trivium.codecs.near_names import LONGEST, nearest
from trivium.codecs.path_segments import LONGEST_SHOWN, decoded, quoted
from trivium.types.access import AccessScope, Endpoint
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head, Target
from trivium.wires.v2 import request_reasons
from trivium.wires.v2.errors import WireRefusal


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


_OPEN, _INFER, _OBSERVE, _MANAGE = (
    AccessScope.OPEN,
    AccessScope.INFER,
    AccessScope.OBSERVE,
    AccessScope.MANAGE,
)

_OF_MODEL = (
    "/v2/models/{model}",
    "/v2/models/{model}/versions/{version}",
    "/v2/models/{model}/version/{version}",
)
_OF_MEMORY = ("/v2/systemsharedmemory", "/v2/cudasharedmemory")
ENDPOINTS: Sequence[Endpoint] = (
    Endpoint("GET", "/v2/health/live", _OPEN),
    Endpoint("GET", "/v2/health/ready", _OPEN),
    Endpoint("GET", "/v2", _INFER),
    *(Endpoint("GET", model, _INFER) for model in _OF_MODEL),
    *(Endpoint("GET", f"{model}/ready", _INFER) for model in _OF_MODEL),
    *(Endpoint("POST", f"{model}/infer", _INFER) for model in _OF_MODEL),
    *(Endpoint("POST", f"{model}/generate", _INFER) for model in _OF_MODEL),
    *(Endpoint("POST", f"{model}/generate_stream", _INFER) for model in _OF_MODEL),
    *(Endpoint("GET", f"{model}/config", _OBSERVE) for model in _OF_MODEL),
    *(Endpoint("GET", f"{model}/stats", _OBSERVE) for model in _OF_MODEL),
    Endpoint("GET", "/v2/models/stats", _OBSERVE),
    Endpoint("POST", "/v2/repository/index", _OBSERVE),
    Endpoint("POST", "/v2/repository/{repository}/index", _OBSERVE),
    Endpoint("GET", "/v2/logging", _OBSERVE),
    Endpoint("GET", "/v2/trace/setting", _OBSERVE),
    Endpoint("GET", "/v2/models/{model}/trace/setting", _OBSERVE),
    Endpoint("POST", "/v2/logging"),
    Endpoint("POST", "/v2/trace/setting"),
    Endpoint("POST", "/v2/models/{model}/trace/setting"),
    Endpoint("POST", "/v2/repository/models/{model}/load"),
    Endpoint("POST", "/v2/repository/models/{model}/unload"),
    *(Endpoint("GET", f"{memory}/status") for memory in _OF_MEMORY),
    *(Endpoint("GET", f"{memory}/region/{{region}}/status") for memory in _OF_MEMORY),
    *(Endpoint("POST", f"{memory}/region/{{region}}/register") for memory in _OF_MEMORY),
    *(Endpoint("POST", f"{memory}/region/{{region}}/unregister") for memory in _OF_MEMORY),
    *(Endpoint("POST", f"{memory}/unregister") for memory in _OF_MEMORY),
)
"""All that this protocol answers."""

_MODEL_POSTS = {"infer": Verb.INFER, "generate": Verb.GENERATE, "generate_stream": Verb.GENERATE_STREAM}
_REGIONS = {
    "systemsharedmemory": (Verb.REGIONS, Verb.REGISTER, Verb.UNREGISTER),
    "cudasharedmemory": (Verb.DEVICE_REGIONS, Verb.DEVICE_REGISTER, Verb.DEVICE_UNREGISTER),
}
_CHANGES = {"load": Verb.LOAD, "unload": Verb.UNLOAD}
_HEALTH = {"live": Verb.LIVE, "ready": Verb.READY}
_MODEL_READS = {"ready": Verb.READY, "config": Verb.CONFIG, "stats": Verb.STATISTICS}
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


def find_target(head: Head) -> Target:
    """The target of a head. NOT_FOUND names the routes near it, METHOD says which methods there are. The word
    `version` stands for `versions`, too: DJL Serving has that.

    HEAD comes as GET: the front end, who owns the framing, keeps the content of the answer back.
    """
    segments = head.path.split("/")
    if len(segments) > 5 and segments[4] == "version":
        segments[4] = "versions"
    match segments:
        case ["", "v2", "models", model, action] if model and action:
            return _of_model(head, model, "", action)
        case ["", "v2", "models", model, "versions", version, action] if model and version and action:
            return _of_model(head, model, version, action)
        case ["", "v2", "models", "stats"]:
            return _read(head, Verb.STATISTICS, _OBSERVE)
        case ["", "v2", "models", model] if model:
            return _read(head, Verb.METADATA, _INFER, model)
        case ["", "v2", "models", model, "versions", version] if model and version:
            return _read(head, Verb.METADATA, _INFER, model, version)
        case ["", "v2"]:
            return _read(head, Verb.METADATA, _INFER)
        case ["", "v2", "health", kind] if kind in _HEALTH:
            return _read(head, _HEALTH[kind], _OPEN)
        case ["", "v2", *rest]:
            return _of_server(head, rest)
    raise _unknown(head)


def _of_server(head: Head, rest: list[str]) -> Target:
    match rest:
        case ["repository", "index"]:
            return _post(head, Verb.INDEX, _OBSERVE)
        case ["repository", name, "index"] if name:
            return _post(head, Verb.INDEX, _OBSERVE)
        case ["repository", "models", model, verb] if model and verb in _CHANGES:
            return _post(head, _CHANGES[verb], _MANAGE, model)
        case ["repository", name, "models", model, verb] if name and model and verb in _CHANGES:
            raise ServeError(
                Code.UNSUPPORTED,
                f"The repository {quoted(name)} cannot be chosen: a model's name is unique over all paths served. "
                f"Use /v2/repository/models/{quoted(model)[1:-1]}/{verb}.",
                info=ErrorInfo.of(request_reasons.NAMED_REPOSITORY),
            )
        case [memory, verb] if memory in _REGIONS and verb != "register":
            return _of_regions(head, memory, "", verb)
        case [memory, "region", region, verb] if memory in _REGIONS and region:
            return _of_regions(head, memory, region, verb)
        case ["logging"]:
            return _setting(head, Verb.LOG_SETTINGS)
        case ["trace", "setting"]:
            return _setting(head, Verb.TRACE_SETTINGS)
        case ["models", model, "trace", "setting"] if model:
            return _setting(head, Verb.TRACE_SETTINGS, model)
    raise _unknown(head)


def _of_regions(head: Head, memory: str, region: str, action: str) -> Target:
    status, register, unregister = _REGIONS[memory]
    if action == "status":
        return _read(head, status, _MANAGE, region)
    if action in ("register", "unregister"):
        return _post(head, register if action == "register" else unregister, _MANAGE, region)
    raise _unknown(head)


def _of_model(head: Head, model: str, version: str, action: str) -> Target:
    posted = _MODEL_POSTS.get(action)
    if posted is not None:
        return _post(head, posted, _INFER, model, version, is_served=True)
    verb = _MODEL_READS.get(action)
    if verb is None:
        raise _unknown(head)
    return _read(head, verb, _INFER if verb is Verb.READY else _OBSERVE, model, version)


def _post(
    head: Head, verb: Verb, scope: AccessScope, name: str = "", version: str = "", is_served: bool = False
) -> Target:
    if head.method != "POST":
        raise _wrong_method(head, "POST")
    return Target(verb, decoded(name), decoded(version), True, scope=scope, is_served=is_served)


def _setting(head: Head, verb: Verb, model: str = "") -> Target:
    if head.method not in ("GET", "POST"):
        raise _wrong_method(head, "GET, HEAD, POST")
    is_change = head.method == "POST"
    scope = _MANAGE if is_change else _OBSERVE
    return Target(verb, decoded(model), "", is_change, scope=scope, is_served=False)


def _read(head: Head, verb: Verb, scope: AccessScope, model: str = "", version: str = "") -> Target:
    if head.method != "GET":
        raise _wrong_method(head, "GET, HEAD")
    return Target(verb, decoded(model), decoded(version), scope=scope)


def _wrong_method(head: Head, allowed: str) -> WireRefusal:
    return WireRefusal(
        Code.METHOD,
        f"{quoted(head.path)} is not served under the method {quoted(head.method)}; use {allowed}.",
        b"Allow: %s\r\n" % allowed.encode(),
        ErrorInfo.of(request_reasons.METHOD, path=head.path),
    )


def _unknown(head: Head) -> ServeError:
    path = head.path[:LONGEST_SHOWN]
    segments = path.split("/")
    model = segments[3] if segments[1:3] == ["v2", "models"] and len(segments) > 3 else ""
    model = model if 0 < len(model) < LONGEST // 2 else "MODEL"
    routes = [f"/v2/models/{model}{end}" for end in _MODEL_PATHS]
    close = nearest(path, (*_SERVER_PATHS, *routes), 3, 0.0)
    return ServeError(
        Code.NOT_FOUND,
        f"There is no route {quoted(head.path)}. Routes near it: {', '.join(close)}.",
    )
