"""Which names may be registered, and by which words others are refused."""

import pytest

from trivium.types.errors import Code, ServeError
from trivium.types.registered_names import LONGEST, judge_name, unfit_name


@pytest.mark.parametrize("name", ["m", "a b", "a/b", "Ünïcode", "日本語", "m.1", "..m", "a" * LONGEST, "%2e"])
def test_names(name: str) -> None:
    assert unfit_name(name) == ""
    judge_name(name, "a model")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is empty"),
        (".", "stands for a folder"),
        ("..", "stands for a folder"),
        ("a" * (LONGEST + 1), "256 bytes"),
        ("é" * 128, "256 bytes"),
        *((f"a{sign}b", "cannot be printed") for sign in "\0\n\r\t\x1b\x7f\x85\u2028\u202e\ufeff\ud800"),
    ],
)
def test_no_names(name: str, why: str) -> None:
    assert why in unfit_name(name)
    with pytest.raises(ServeError, match=r"name of a model.*Give another one") as caught:
        judge_name(name, "a model")
    assert caught.value.code is Code.INVALID
    assert len(caught.value.message) < 300
