"""What `trivium check --all` calls the fields of a spec: none by a word of the code."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import get_args, get_type_hints

import pytest
from tests.harness.screens import JARGON

from trivium.codecs.field_words import field_words, join_words
from trivium.types.spec import Join, ModelSpec

UNSHOWN = ("foreign", "origin", "reports", "shown_root")


def paths(kind: type, before: str) -> Iterator[str]:
    """All fields of a record, and of those inside."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        name = f"{before}{field.name}"
        if name not in UNSHOWN:
            yield name
            for inner in inside(hints[field.name]):
                yield from paths(inner, f"{name}.")


def inside(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for each in get_args(hint):
        yield from inside(each)


@pytest.mark.parametrize("field", sorted(set(paths(ModelSpec, ""))))
def test_no_field_is_called_by_a_word_of_the_code(field: str) -> None:
    assert not JARGON & set(re.split(r"[._]", field_words(field)))


def test_numbers_and_keys_of_blocks_stay() -> None:
    assert field_words("groups[0].claim") == "instances[0].rate_limiter"
    assert field_words("parameters[a.b]") == "parameters[a.b]"
    assert field_words("scheduling.level_policies[2]") == "scheduling.priority_queue_policy[2]"
    assert field_words("engine") == "engine"


@pytest.mark.parametrize("join", Join)
def test_how_requests_are_joined_is_said_in_words(join: Join) -> None:
    assert not JARGON & set(join_words(join).split())
