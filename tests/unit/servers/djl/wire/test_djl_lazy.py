"""Predictions that say where their model is to be registered from."""

import re

import pytest

from trivium.servers.djl.wire import http
from trivium.servers.djl.wire.options import LazyRule
from trivium.types import reasons
from trivium.types.by_type import ByType
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, InferLazily, Operation, ResponsePart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head

RULE = LazyRule(re.compile("file:///models/[a-z]+"))
UNKNOWN = ServeError(Code.NOT_FOUND, "no", info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model="m"))


def decoded(
    query: str = "", rule: LazyRule | None = RULE, may_change: bool = True, **headers: str
) -> tuple[Operation, str]:
    """The operation, and what an unknown model is answered with."""
    context = ProtocolContext(
        as_original=True, may_change=may_change, states=ByType() if rule is None else ByType(rule)
    )
    protocol = http.make(context)
    named = {name.encode(): value.encode() for name, value in headers.items()}
    head = Head("POST", "/predictions/m/v2", query, named)
    target = protocol.head(head)
    assert target.is_served is not (rule is not None and may_change)
    operation, encoder = protocol.decode(head, target, Body(b"x"))
    return operation, b"".join(encoder.encode(ResponsePart(error=UNKNOWN)).buffers).decode()


@pytest.mark.parametrize(
    "asked", [{"query": "model_url=file:///models/a"}, {"model_url": "file:///models/a"}]
)
def test_a_url_that_matches_is_where_the_model_is_registered_from(asked: dict[str, str]) -> None:
    operation, _ = decoded(**asked, engine_name="Python", device="cpu")
    assert isinstance(operation, InferLazily)
    source = operation.source
    assert (source.uri, source.name, source.version, source.engine) == ("/models/a", "m", "v2", "Python")
    assert tuple(source.devices) == ("cpu",)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "Parameter model_url is required."),
        ({"query": "model_url=file:///etc/a"}, "Permission denied: file:///etc/a"),
        ({"query": "model_url=file:///models/a%0A"}, "Permission denied: file:///models/a"),
        ({"model_url": "file:///models/a/../../etc"}, "Permission denied: file:///models/a/../../etc"),
        ({"model_url": "s3://bucket/m"}, "Permission denied: s3://bucket/m"),
    ],
)
def test_what_does_not_match_is_refused_where_the_model_is_unknown(asked: dict[str, str], said: str) -> None:
    """A URL in a header is held to the pattern, too: the original lets it pass."""
    operation, text = decoded(**asked)
    assert isinstance(operation, Infer)
    assert said in text


def test_other_servers_register_nothing_and_say_who_does() -> None:
    for rule, may_change in ((None, True), (RULE, False)):
        operation, text = decoded("model_url=file:///models/a", rule, may_change)
        assert isinstance(operation, Infer)
        assert "Model or workflow not found: m" in text
