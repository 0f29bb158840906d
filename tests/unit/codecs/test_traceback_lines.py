"""Lines of tracebacks become one text, other lines are texts of their own, and nothing is lost."""

import traceback

import pytest

from trivium.codecs.traceback_lines import MOST_CHARACTERS, TracebackLines

HEAD = "Traceback (most recent call last):"
FRAME = '  File "m.py", line 3, in f'
ENDED = "ValueError: bad"
DURING = "During handling of the above exception, another exception occurred:"
ONE = [HEAD, FRAME, "    f(x)", ENDED]


def joined(lines: list[str]) -> list[str]:
    texts = TracebackLines()
    whole = [text for line in lines for text in texts.add(line)]
    return [*whole, *texts.rest()]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], []),
        (["a", "", "b"], ["a", "", "b"]),
        (ONE, ["\n".join(ONE)]),
        (["a", *ONE, "b"], ["a", "\n".join(ONE), "b"]),
        ([*ONE, "", "b"], ["\n".join(ONE), "b"]),
        ([*ONE, *ONE], ["\n".join(ONE)] * 2),
        ([*ONE, "", DURING, "", *ONE], ["\n".join([*ONE, "", DURING, "", *ONE])]),
        ([HEAD, FRAME], [f"{HEAD}\n{FRAME}"]),
        ([HEAD, HEAD, FRAME, ENDED], [f"{HEAD}\n{HEAD}\n{FRAME}\n{ENDED}"]),
    ],
)
def test_what_is_one_text(lines: list[str], expected: list[str]):
    assert joined(lines) == expected


def test_what_python_prints_of_an_exception_in_another_is_one_text():
    try:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("outer") from error
    except ValueError:
        printed = traceback.format_exc().rstrip("\n")
    assert joined(["before", *printed.split("\n"), "after"]) == ["before", printed, "after"]


def test_it_does_not_grow_without_end():
    texts = joined([HEAD, *["  " + "x" * 998] * 200, ENDED])
    assert len(texts) > 1
    assert all(len(text) <= MOST_CHARACTERS + 200 for text in texts)
    assert "".join(texts).count("x" * 998) == 200
