"""The routes of KServe's v1 protocol that are served: predictions, by a model's name, and as TensorFlow Serving has it
by its version. Whether a model is ready is said at /v1/models/MODEL, which OpenAI's API has, too.
"""

from collections.abc import Sequence
from enum import StrEnum

from trivium.codecs.path_segments import quoted
from trivium.codecs.routes import HttpRoute, RouteTree
from trivium.types.access import AccessScope
from trivium.types.wire import Head


class V1Verb(StrEnum):
    """The request that a target stands for; the value is `Target.verb`."""

    PREDICT = "predict"


ROWS: Sequence[HttpRoute] = (
    HttpRoute("POST", "/v1/models/{model}:predict", V1Verb.PREDICT, AccessScope.INFER, takes_body=True),
    HttpRoute(
        "POST",
        "/v1/models/{model}/versions/{version}:predict",
        V1Verb.PREDICT,
        AccessScope.INFER,
        takes_body=True,
    ),
)
"""All that this protocol answers."""


def _advice(head: Head, allow: str) -> str:
    if allow:
        return f"{quoted(head.path)} is not served under the method {quoted(head.method)}; use {allow}."
    return f"There is no route {quoted(head.path)}. The v1 protocol has predictions: POST /v1/models/MODEL:predict."


TREE = RouteTree(ROWS, _advice)
