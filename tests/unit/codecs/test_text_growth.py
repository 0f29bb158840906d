"""How many times longer a tokenizer's file makes a text."""

import pytest

from trivium.codecs.text_growth_policy import growth


def replace(content, **pattern):
    return {"type": "Replace", "pattern": pattern, "content": content}


def sequence(*parts, name="normalizers"):
    return {"type": "Sequence", name: list(parts)}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (None, 1),
        ([], 1),
        ({}, 1),
        ({"type": "NFC"}, 1),
        ({"type": "Sequence"}, 1),
        ({"type": "Sequence", "normalizers": 5}, 1),
        (replace("▁", String=" "), 1),
        (replace("", String="a"), 1),
        (replace("abcd", String="abc"), 2),
        (replace("a" * 100, String="a"), 100),
        (replace("a" * 100, String=""), 101),
        (replace(" ", Regex=" {2,}"), 2),
        (replace("", Regex=" {2,}"), 1),
        (replace(None, Regex="x"), 1),
        ({"type": "Prepend", "prepend": "▁"}, 1),
        ({"type": "Prepend", "prepend": "▁" * 2**20}, 1024),
        (sequence(*[replace("a" * 100, String="a")] * 5), 10**10),
        (sequence(sequence(replace("aa", String="a")), replace("aaa", String="a")), 6),
        (sequence(replace("aa", String="a"), name="decoders"), 2),
    ],
)
def test_growth_of_a_part(part, expected):
    assert growth(part) == expected
