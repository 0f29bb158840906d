"""What errors quote of a request: as much of it as a reader needs, whatever was sent."""

import json

import pytest

from trivium.codecs.error_texts import quoted_json


def nested(times):
    value = []
    for _ in range(times):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize("value", [None, True, -1.5, "ä\n", [1, "b"], {"a": {"b": []}}])
def test_what_is_short_is_whole(value):
    text = quoted_json(value, 40)
    assert json.loads(text) == value
    assert " " not in text


@pytest.mark.parametrize(
    "value", ["x" * 100, list(range(1000)), nested(5), nested(10**5), [nested(10**5)] * 3]
)
def test_of_what_is_long_or_deep_the_beginning_is_written(value):
    text = quoted_json(value, 40)
    assert len(text) == 40
    assert text.endswith("...")
