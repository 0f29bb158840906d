"""Rates of errors: how they are written, and when one error is too many."""

import pytest

from trivium.servers.djl.words.error_rate_policy import (
    ErrorKind,
    ErrorRate,
    full_allowances,
    judge_error,
    read_rate,
    read_rates,
)
from trivium.types.errors import ServeError

WLM, MODEL, ANY = ErrorKind.WLM, ErrorKind.MODEL, ErrorKind.ANY


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("5", ErrorRate(5, 60)),
        (" 1/PT5M ", ErrorRate(1, 300)),
        ("0/PT0.5S", ErrorRate(0, 0.5)),
        ("3/P1DT1H1M1S", ErrorRate(3, 90061)),
        ("3/pt1h", ErrorRate(3, 3600)),
        *(
            (text, None)
            for text in ("", "/", "-1", "x", "1/", "1/5M", "1/P", "1/PT", "1/PT0S", "1/PT5", "1.5")
        ),
    ],
)
def test_a_rate_is_a_number_and_a_window(text: str, rate: ErrorRate | None) -> None:
    assert read_rate(text) == rate


@pytest.mark.parametrize("text", ["wlm", "wlm=", "wlm=x", "all=5", "=5"])
def test_pairs_that_are_none_are_named(text: str) -> None:
    with pytest.raises(ServeError, match="--djl-error-rates has") as caught:
        read_rates(f"any=1,{text}")
    assert "such as 5/PT1M" in caught.value.message
    assert read_rates(" wlm=2 , any=3/PT1S,") == {WLM: ErrorRate(2), ANY: ErrorRate(3, 1)}


@pytest.mark.parametrize(
    ("rates", "errors", "exceeds"),
    [
        ({}, [(0, WLM)] * 100, False),
        ({WLM: ErrorRate(2)}, [(0, WLM), (1, WLM)], False),
        ({WLM: ErrorRate(2)}, [(0, WLM), (1, WLM), (59.9, WLM)], True),
        ({WLM: ErrorRate(2)}, [(0, WLM), (1, WLM), (60, WLM), (61, WLM)], False),
        ({WLM: ErrorRate(2)}, [(0, WLM), (1, WLM), (60, WLM), (61, WLM), (62, WLM)], True),
        ({WLM: ErrorRate(0)}, [(0, MODEL)], False),
        ({WLM: ErrorRate(0)}, [(0, WLM)], True),
        ({ANY: ErrorRate(1)}, [(0, MODEL), (1, WLM)], True),
        ({WLM: ErrorRate(5), ANY: ErrorRate(1)}, [(0, WLM), (1, WLM)], True),
        ({MODEL: ErrorRate(1, 300)}, [(0, MODEL), (299, MODEL)], True),
        ({MODEL: ErrorRate(0)}, [(0, MODEL), (10**6, WLM)], True),  # for good
    ],
)
def test_one_error_more_than_the_rate_within_its_window_is_too_many(
    rates: dict[ErrorKind, ErrorRate], errors: list[tuple[float, ErrorKind]], exceeds: bool
) -> None:
    view = full_allowances(rates, 0.0)
    for now, kind in errors:
        view = judge_error(view, kind, now)
    assert view.is_exceeded is exceeds
