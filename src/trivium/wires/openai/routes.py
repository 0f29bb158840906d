"""Finds the target of a method and path: the routes of OpenAI's API that are served.

Which model a completion is for stands in its body. Whether there is such a model the core knows.
"""

from collections.abc import Sequence
from enum import StrEnum

from trivium.codecs.path_segments import decoded, quoted
from trivium.types.access import AccessScope, Endpoint
from trivium.types.errors import Code
from trivium.types.wire import Head, Target
from trivium.wires.openai.errors import OpenAiRefusal


class OpenAiVerb(StrEnum):
    """The request that a target stands for; the value is `Target.verb`."""

    CHAT = "chat"
    COMPLETION = "completion"
    MODELS = "models"
    MODEL = "model"


_INFER = AccessScope.INFER
ENDPOINTS: Sequence[Endpoint] = (
    Endpoint("POST", "/v1/chat/completions", _INFER),
    Endpoint("POST", "/v1/completions", _INFER),
    Endpoint("GET", "/v1/models", _INFER),
    Endpoint("GET", "/v1/models/{model}", _INFER),
)
"""All that this protocol answers."""

_ROUTES = "/v1/chat/completions, /v1/completions, /v1/models and /v1/models/MODEL"


def find_target(head: Head) -> Target:
    """The target of a head. NOT_FOUND names the routes, METHOD says which method there is."""
    match head.path.split("/"):
        case ["", "v1", "chat", "completions"]:
            return _posted(head, OpenAiVerb.CHAT)
        case ["", "v1", "completions"]:
            return _posted(head, OpenAiVerb.COMPLETION)
        case ["", "v1", "models"]:
            return _read(head, OpenAiVerb.MODELS)
        case ["", "v1", "models", model] if model:
            return _read(head, OpenAiVerb.MODEL, decoded(model))
    raise OpenAiRefusal(
        Code.NOT_FOUND,
        f"There is no route {quoted(head.path)}. There are: {_ROUTES}. Others of OpenAI's API are not supported in "
        "this version.",
    )


def _posted(head: Head, verb: OpenAiVerb) -> Target:
    if head.method != "POST":
        raise _wrong_method(head, "POST")
    return Target(verb, takes_body=True, scope=_INFER)


def _read(head: Head, verb: OpenAiVerb, model: str = "") -> Target:
    if head.method not in ("GET", "HEAD"):
        raise _wrong_method(head, "GET, HEAD")
    return Target(verb, model, scope=_INFER)


def _wrong_method(head: Head, allowed: str) -> OpenAiRefusal:
    return OpenAiRefusal(
        Code.METHOD,
        f"{quoted(head.path)} is not served under the method {quoted(head.method)}; use {allowed}.",
        b"Allow: %s\r\n" % allowed.encode(),
    )
