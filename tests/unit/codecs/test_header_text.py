"""Header fields with media types: what is read of them, and that nothing is raised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.codecs.header_text import (
    by_preference,
    essence,
    has_controls,
    is_name,
    parameters,
    reason_phrase,
    uncached_lines,
    without_controls,
)


@pytest.mark.parametrize(
    ("field", "kind"),
    [("", ""), ("Text/Plain", "text/plain"), (" a/b ; c=d", "a/b"), (";", ""), ("nonsense", "nonsense")],
)
def test_essence(field, kind):
    assert essence(field) == kind


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("a/b", {}),
        ("a/b; C=d;e=f", {"c": "d", "e": "f"}),
        ('a/b; c="d;e=\\"f\\\\"', {"c": 'd;e="f\\'}),
        ('a/b; c="C:\\dir"', {"c": "C:\\dir"}),
        ("a/b; c=d; c=e", {"c": "d"}),
        ("a/b; c=d; ; e=f", {"c": "d"}),
        ('a/b; c="d', {}),
        ('a/b; c="d"e; f=g', {}),
        ("a/b; c=", {"c": ""}),
    ],
)
def test_parameters(field, found):
    assert parameters(field) == found


@pytest.mark.parametrize(
    ("accept", "names"),
    [
        ("", ()),
        ("a/b, c/d", ("a/b", "c/d")),
        ("a/b;q=0.5, c/d;q=0.7, e/f", ("e/f", "c/d", "a/b")),
        ("*/*, a/*, a/b", ("a/b", "a/*", "*/*")),
        ("a/b;q=0, c/d;q=2, e/f;q=nan, g/h;q=x", ("c/d", "e/f", "g/h")),
    ],
)
def test_preferences(accept, names):
    assert by_preference(accept) == names


@given(st.text())
def test_any_text_is_read(text):
    essence(text)
    assert all(name == name.lower() for name in parameters(text))
    assert len(by_preference(text)) <= text.count(",") + 1


@pytest.mark.parametrize("filling", ['"', ";", ";a", ';a="', '\\"', ";a=b", ",", " "])
def test_no_field_takes_long(filling):
    field = ";" + filling * 1_000_000
    assert len(parameters(field)) <= 1
    assert len(by_preference(field)) <= 8192


def test_lines_of_answers_that_are_not_cached():
    lines = uncached_lines("a\r\nb\u20ac").split(b"\r\n")
    assert lines[0] == b"x-request-id: a??b?"
    assert lines[1:] == [
        b"Pragma: no-cache",
        b"Cache-Control: no-cache; no-store, must-revalidate, private",
        b"Expires: Thu, 01 Jan 1970 00:00:00 UTC",
        b"",
    ]


@pytest.mark.parametrize(
    ("name", "expected"), [("x-a", True), ("", False), ("a b", False), ("a\r\n", False), ("\u00e4", False)]
)
def test_names_of_fields(name, expected):
    assert is_name(name) is expected


def test_values_with_line_ends():
    assert has_controls("a\r\nb")
    assert not has_controls("a\tb")
    assert without_controls("a\r\nb\tc") == "a  b\tc"


def test_a_reason_phrase_is_one_bounded_line():
    assert reason_phrase("a\r\n b\u20ac") == b"a b?"
    assert len(reason_phrase("x" * 5000)) == 1000
