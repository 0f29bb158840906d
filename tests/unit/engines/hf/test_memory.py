"""What a model is estimated to need, and which settings are named where that is not free."""

import re

import pytest

from trivium.engines.hf.memory import RESERVE, MemoryEstimate, estimate, fitting_slots, shortage


def test_an_estimate_is_weights_and_keys_and_values():
    need = estimate(1000, 10, "bf16")
    assert need == MemoryEstimate(2000, 20)
    assert need.total(4, 100) == 2000 + 20 * 400 + RESERVE


@pytest.mark.parametrize(
    ("free", "expected"), [(None, 32), (10**12, 32), (RESERVE + 10**6 + 20 * 100 * 7 + 50, 7), (0, 1)]
)
def test_as_many_slots_as_fit(free, expected):
    assert fitting_slots(MemoryEstimate(10**6, 20), 100, free) == expected


def test_what_fits_is_not_refused():
    assert shortage(MemoryEstimate(10**6, 20), 4, 100, 10**12, "fp32") == ""
    assert shortage(MemoryEstimate(10**6, 20), 4, 100, None, "fp32") == ""


@pytest.mark.parametrize("free_gigabytes", [2.0, 3.0, 5.0, 8.0])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_what_does_not_fit_is_refused_with_both_numbers_and_settings_that_do(free_gigabytes, dtype):
    need = MemoryEstimate(10**9, 100_000)
    free = int(free_gigabytes * 1e9)
    text = shortage(need, 32, 4096, free, dtype)
    assert f"{free / 1e9:.2f} GB are free" in text
    assert f"about {need.total(32, 4096) / 1e9:.2f} GB" in text
    ways = text.rpartition("fit with ")[2].removesuffix(".").split(", or with ")
    assert len(ways) == 2
    for way in ways:
        told = dict(re.findall(r"(\w+)=(\w+)", way))
        smaller = MemoryEstimate(need.weights // 2, need.per_token // 2) if "dtype" in told else need
        assert smaller.total(int(told.get("slots", 32)), int(told.get("max_context", 4096))) <= free


def test_a_model_that_is_too_large_in_any_way_says_so():
    assert "No setting fits" in shortage(MemoryEstimate(10**12, 1000), 1, 10, 10**9, "bf16")
