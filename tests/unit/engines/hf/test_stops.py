"""Stop texts in text that comes in pieces: cut exactly, however it is cut into pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.engines.hf.stops import StopMatcher


def run(stops, pieces, keeps=False):
    matcher, out = StopMatcher(stops, keeps), []
    for piece in pieces:
        text, is_found = matcher.push(piece)
        out.append(text)
        if is_found:
            return out, True
    return [*out, matcher.end()], False


@pytest.mark.parametrize(
    ("stops", "pieces", "expected", "is_found"),
    [
        ((), ["a", "b"], "ab", False),
        (("END",), ["text E", "N", "D more"], "text ", True),
        (("END",), ["text E", "N", "d more"], "text ENd more", False),
        (("\n\n",), ["a\n", "b\n\nc"], "a\nb", True),
        (("bc", "abc"), ["xa", "bc"], "x", True),
        (("aab",), ["aaa", "b"], "a", True),
        (("zz", "y"), ["xy", "zz"], "x", True),
        (("END",), ["what E", "N"], "what EN", False),
    ],
)
def test_a_text_is_cut_where_a_stop_text_begins(stops, pieces, expected, is_found):
    out, found = run(stops, pieces)
    assert ("".join(out), found) == (expected, is_found)


def test_a_stop_text_is_kept_where_that_is_wanted():
    assert run(("END",), ["text E", "ND more"], keeps=True) == (["text ", "END"], True)


def test_what_may_be_a_beginning_is_kept_back_and_nothing_else():
    out, _ = run(("STOP",), ["abcS", "T", "x"])
    assert out == ["abc", "", "STx", ""]


@given(st.text("ab", max_size=30), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3), st.data())
def test_pieces_make_no_difference(text, stops, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    ends = [at + len(stop) for stop in stops if (at := text.find(stop)) >= 0]
    end = min(ends, default=0)
    starts = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
    expected = text[: min(starts)] if ends else text
    out, is_found = run(stops, pieces)
    assert ("".join(out), is_found) == (expected, bool(ends))
