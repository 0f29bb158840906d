"""What a terminal would obey is written out."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.codecs.visible_text import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("plain äöü 日本 🙂", "plain äöü 日本 🙂"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\rb\x08c\x00d\x7f", r"a\x0db\x08c\x00d\x7f"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("a\u2028b\u2066", r"a\u2028b\u2066"),
        ("\udcff", r"\xff"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_nothing_is_left_to_obey_and_it_can_be_written(text: str) -> None:
    found = visible(text)
    found.encode()
    assert all(char in "\t\n" or not (ord(char) < 32 or 127 <= ord(char) < 160) for char in found)
    assert visible(found) == found


def test_every_control_character_is_escaped() -> None:
    for number in [*range(32), *range(127, 160)]:
        if chr(number) not in "\t\n":
            assert visible(chr(number)) == f"\\x{number:02x}"
    assert sys.maxunicode > 0xFFFF
