"""Where texts are read: what is short and cheap in the thread, and all else where it can be ended."""

import pytest

from trivium.engines.hf.text_roads_policy import (
    LONG,
    MOST_LONG,
    TextRoad,
    byte_size,
    most_long,
    road,
    text_size,
)
from trivium.types.generation import Embeddings, Generate

CHAT = ({"role": "user", "content": "hi"},)


@pytest.mark.parametrize(
    ("request_", "is_cheap", "expected"),
    [
        (Generate(prompts=("a",)), True, TextRoad.THREAD),
        (Generate(prompts=("a" * LONG,)), True, TextRoad.THREAD),
        (Generate(prompts=("a" * (LONG + 1),)), True, TextRoad.LONG),
        (Generate(prompts=("a" * (LONG // 2), "b" * (LONG // 2), "c")), True, TextRoad.LONG),
        (Generate(prompts=("é" * (LONG // 2 + 1),)), True, TextRoad.LONG),
        (Generate(prompts=("a",)), False, TextRoad.BRIEF),
        (Generate(messages=CHAT), True, TextRoad.BRIEF),
        (Generate(messages=({"role": "user", "content": "a" * LONG},)), True, TextRoad.LONG),
        (Generate(messages=CHAT, tools=({"name": ["a" * LONG]},)), True, TextRoad.LONG),
        (Generate(messages=CHAT, template_arguments={"x": {"a" * LONG: 1}}), True, TextRoad.LONG),
        (Generate(ids=((1,) * LONG,)), False, TextRoad.THREAD),
        (Generate(ids=((1,) * LONG,), echoes=True), True, TextRoad.LONG),
        (Generate(ids=((1,),), echoes=True), True, TextRoad.THREAD),
        (Generate(embeds=Embeddings(1, 1, b"0000")), False, TextRoad.THREAD),
    ],
)
def test_the_road_of_a_request(request_, is_cheap, expected):
    assert road(request_, is_cheap) is expected


@pytest.mark.parametrize(("slots", "expected"), [(1, 1), (2, 1), (4, 2), (8, MOST_LONG), (1024, MOST_LONG)])
def test_long_texts_leave_slots_to_others(slots, expected):
    assert most_long(slots) == expected


@pytest.mark.parametrize("text", ["", "abc", "é", "\N{GRINNING FACE}"])
def test_bytes_are_those_of_utf_8(text):
    assert byte_size(text) == len(text.encode())
    assert text_size(Generate(prompts=(text, text))) == 2 * len(text.encode())
