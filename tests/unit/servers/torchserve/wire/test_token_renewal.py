"""`/token` on the port of management: it is there where requests need keys, and renews the one that is named."""

import itertools
import json

import pytest

from trivium.servers.torchserve.wire.http import make
from trivium.servers.torchserve.words.tokens import TokenPurpose, Tokens
from trivium.types.by_type import ByType
from trivium.types.errors import ServeError
from trivium.types.listeners import Role
from trivium.types.operations import Live, Readiness, ResponsePart
from trivium.types.protocol_context import ProtocolContext
from trivium.types.wire import Body, Head

MANAGED = frozenset({Role.MANAGEMENT})


def tokens(written: list[bytes]) -> Tokens:
    keys = (f"key{number}" for number in itertools.count())
    return Tokens(lambda: next(keys), lambda: 0.0, 60, written.append)


def test_the_key_that_the_query_names_is_another_one_then() -> None:
    written = list[bytes]()
    held = tokens(written)
    wire = make(ProtocolContext(roles=MANAGED, states=ByType(held)))
    for kind in (TokenPurpose.INFERENCE, TokenPurpose.MANAGEMENT):
        head = Head("GET", "/token", f"type={kind.value}", {})
        operation, encoder = wire.decode(head, wire.head(head), Body(b""))
        answer = encoder.encode(ResponsePart(Readiness(True)))
        assert isinstance(operation, Live)
        assert (answer.status, b"".join(map(bytes, answer.buffers))) == (200, b"\n")
        before, after = (json.loads(document) for document in written[-2:])
        assert before[kind.value] != after[kind.value]
        assert before["API"] == after["API"]


@pytest.mark.parametrize("query", ["", "type=", "type=API", "type=other", "a=b&" * 20, "type=inference;x"])
def test_a_key_that_there_is_not_is_refused_and_nothing_changes(query: str) -> None:
    written = list[bytes]()
    wire = make(ProtocolContext(roles=MANAGED, states=ByType(tokens(written))))
    head = Head("GET", "/token", query, {})
    with pytest.raises(ServeError, match="Token Authentication failed") as caught:
        wire.decode(head, wire.head(head), Body(b""))
    assert (caught.value.status, len(written)) == (400, 1)
    assert wire.refuse(caught.value).status == 400


def test_without_keys_and_on_the_port_of_inference_there_is_no_such_path() -> None:
    for context in (
        ProtocolContext(roles=MANAGED),
        ProtocolContext(roles=frozenset({Role.INFERENCE}), states=ByType(tokens([]))),
    ):
        with pytest.raises(ServeError, match="route"):
            make(context).head(Head("GET", "/token", "type=inference", {}))
