"""The routes of OpenAI's API that are served.

Which model a completion is for stands in its body. Whether there is such a model the core knows.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec.structs import replace

from trivium.codecs.path_segments import quoted
from trivium.codecs.routes import HttpRoute, RouteTree
from trivium.types.access import AccessScope
from trivium.types.wire import Head


class OpenAiVerb(StrEnum):
    """The request that a target stands for; the value is `Target.verb`."""

    CHAT = "chat"
    COMPLETION = "completion"
    MODELS = "models"
    MODEL = "model"
    TOKENIZE = "tokenize"
    DETOKENIZE = "detokenize"
    HEALTH = "health"
    VERSION = "version"


_INFER = AccessScope.INFER
BELOW = "/openai"
"""Where KServe's server of Hugging Face models has OpenAI's routes; they are there as well."""

_OPENAI = (
    HttpRoute("POST", "/v1/chat/completions", OpenAiVerb.CHAT, _INFER, takes_body=True),
    HttpRoute("POST", "/v1/completions", OpenAiVerb.COMPLETION, _INFER, takes_body=True),
    HttpRoute("GET", "/v1/models", OpenAiVerb.MODELS, _INFER),
    HttpRoute("GET", "/v1/models/{model}", OpenAiVerb.MODEL, _INFER),
)
ROWS: Sequence[HttpRoute] = (
    *_OPENAI,
    *(replace(row, path=BELOW + row.path) for row in _OPENAI),
    HttpRoute("POST", "/tokenize", OpenAiVerb.TOKENIZE, _INFER, takes_body=True),
    HttpRoute("POST", "/detokenize", OpenAiVerb.DETOKENIZE, _INFER, takes_body=True),
    HttpRoute("GET", "/health", OpenAiVerb.HEALTH, AccessScope.OPEN),
    HttpRoute("GET", "/version", OpenAiVerb.VERSION, AccessScope.OPEN),
)
"""All that this protocol answers."""

_ROUTES = (
    "/v1/chat/completions, /v1/completions, /v1/models, /v1/models/MODEL (these below /openai, too), /tokenize, "
    "/detokenize, /health and /version"
)


def _advice(head: Head, allow: str) -> str:
    if allow:
        return f"{quoted(head.path)} is not served under the method {quoted(head.method)}; use {allow}."
    return (
        f"There is no route {quoted(head.path)}. There are: {_ROUTES}. Others of OpenAI's API are not supported in "
        "this version."
    )


TREE = RouteTree(ROWS, _advice)
