"""Arguments out of a query or a flat JSON object, and what is refused of either."""

import json

import pytest

from trivium.codecs.flat_arguments import read_members, read_query
from trivium.types.errors import Code, ServeError

EXAMPLE = '{"url": "m"}'


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        ("", {}),
        ("a=1&b=", {"a": "1", "b": ""}),
        ("a=1&a=2", {"a": "1"}),
        ("a=%C3%A4+x", {"a": "ä x"}),
        ("&".join(f"a{number}=" for number in range(1000)), {f"a{number}": "" for number in range(1000)}),
    ],
)
def test_arguments_of_a_query(query: str, arguments: dict[str, str]) -> None:
    assert read_query(query) == arguments


@pytest.mark.parametrize("query", ["a=%ff", "&".join(f"a{number}=" for number in range(1001))])
def test_a_query_that_is_refused(query: str) -> None:
    with pytest.raises(ServeError, match="Send at most 1000 arguments, percent-encoded as UTF-8") as caught:
        read_query(query)
    assert caught.value.code is Code.INVALID


def test_members_are_text() -> None:
    body = b'{"url": "m", "n": 3, "x": 0.5, "yes": true, "no": false, "nothing": null}'
    assert read_members(body, EXAMPLE) == {"url": "m", "n": "3", "x": "0.5", "yes": "true", "no": "false"}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"url": "m"', "The body is no JSON ("),
        (b"\xff", "The body is no JSON ("),
        (b"[" * 60_000, "The body is no JSON ("),
        (b"[]", "The body is no JSON object."),
        (b'{"a": []}', "The member 'a' is no text, number or truth value."),
        (json.dumps({"a": "x" * 2**16}).encode(), "The body has 65545 bytes"),
    ],
)
def test_a_body_that_is_refused(body: bytes, found: str) -> None:
    with pytest.raises(ServeError) as caught:
        read_members(body, EXAMPLE)
    assert caught.value.code is Code.INVALID
    assert caught.value.message.startswith(found)
    assert caught.value.message.endswith(f"such as {EXAMPLE}.")
