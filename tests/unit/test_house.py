"""The plan of the house finds each way to keep an error with its frames, and nothing else."""

import ast
import textwrap

import pytest
from tests.gates.house import framed


def complaints(text: str) -> int:
    return len(list(framed(ast.parse(textwrap.dedent(text)))))


CAUGHT = """
try:
    work(body)
except ValueError as error:
    {}
"""


@pytest.mark.parametrize(
    "use",
    [
        "return {}",
        "found.append({})",
        "self.kept = {}",
        "sink(ResponsePart(error={}))",
        "future.set_exception({})",
        "return [{}] * 3",
        "self.refuse({})",
    ],
)
def test_a_caught_error_leaves_without_its_frames(use: str) -> None:
    assert complaints(CAUGHT.format(use.format("error"))) == 1
    assert complaints(CAUGHT.format(use.format("error.with_traceback(None)"))) == 1
    assert complaints(CAUGHT.format(use.format("frameless(error)"))) == 0
    assert complaints(CAUGHT.format(use.format("noted(error)"))) == 0


@pytest.mark.parametrize(
    "use",
    [
        "raise",
        "raise error",
        "raise ServeError(code, str(error)) from error",
        "raise told(error) from error",
        "return f'{error}'",
        "return error.message",
        "log.error('failed: %s', error)",
        "log.exception('failed', exc_info=error)",
        "return ServeError(code, str(error))",
        "return type(error) is KeyError",
        "return unwritable(error)",
    ],
)
def test_what_tells_or_raises_it_keeps_nothing(use: str) -> None:
    assert complaints(CAUGHT.format(use)) == 0


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(error):\n    raise error", 1),
        ("def f(part):\n    raise part.error", 1),
        ("def f(failures):\n    raise failures[0]", 1),
        ("def f():\n    raise GOING_DOWN", 1),
        ("def f(part):\n    raise part.error.with_traceback(None)", 1),
        ("def f(error):\n    raise anew(error)", 0),
        ("def f():\n    raise ServeError(code, text)", 0),
        ("def f():\n    raise _TooMany", 0),
        ("def f():\n    raise", 0),
    ],
)
def test_what_is_a_value_is_raised_anew(text: str, count: int) -> None:
    assert complaints(text) == count
