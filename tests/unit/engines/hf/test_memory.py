"""What a model needs, what its keys and values may take, and which settings are named where that is too much."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.engines.hf.memory import (
    BLOCK,
    RESERVE,
    KeyValueBudget,
    KeyValueDemand,
    MemoryEstimate,
    blocks_of,
    budget,
    estimate,
    shortage,
)

NEED = MemoryEstimate(10**6, 20)
ONE = 20 * BLOCK
"""Bytes of a block of that model."""


def test_an_estimate_is_weights_and_keys_and_values():
    need = estimate(1000, 10, "bf16")
    assert need == MemoryEstimate(2000, 20)
    assert need.total(400) == 2400 + RESERVE


@pytest.mark.parametrize(
    ("demand", "free", "blocks"),
    [
        pytest.param(KeyValueDemand(32, 100), None, 128, id="nobody tells what is free: what the slots fill"),
        pytest.param(KeyValueDemand(32, 100), 10**12, 128, id="never more than the slots fill"),
        pytest.param(KeyValueDemand(32, 100), RESERVE + 10**6 + 50 * ONE, 25, id="half of what is free"),
        pytest.param(
            KeyValueDemand(32, 100, is_gpu=True), RESERVE + 10**6 + 50 * ONE, 45, id="most of a GPU's"
        ),
        pytest.param(
            KeyValueDemand(32, 100), RESERVE + 10**6 + 5 * ONE, 4, id="one sequence has room at least"
        ),
        pytest.param(KeyValueDemand(32, 100, 70 * ONE - 1), 10**12, 69, id="as asked, in whole blocks"),
        pytest.param(KeyValueDemand(2, 100, 70 * ONE), 10**12, 8, id="as asked, and no more than of use"),
    ],
)
def test_a_budget(demand, free, blocks):
    assert budget(NEED, demand, free) == KeyValueBudget(blocks, ONE)


def test_what_fits_is_not_refused():
    assert shortage(NEED, KeyValueDemand(4, 100), 10**12, "fp32") == ""
    assert shortage(NEED, KeyValueDemand(4, 100), None, "fp32") == ""
    assert shortage(NEED, KeyValueDemand(4, 100, ONE), RESERVE + 10**6 + ONE, "fp32") == ""


needs = st.builds(
    MemoryEstimate, st.integers(10**6, 10**11), st.integers(1, 10**7).map(lambda count: 2 * count)
)
demands = st.builds(
    KeyValueDemand,
    st.integers(1, 1024),
    st.integers(2, 10**5),
    st.none() | st.integers(1, 10**12),
    st.booleans(),
)


@given(needs, demands, st.integers(0, 10**12), st.sampled_from(["fp32", "bf16"]))
def test_what_is_not_refused_fits_and_what_is_refused_names_settings_that_fit(need, demand, free, dtype):
    text = shortage(need, demand, free, dtype)
    found = budget(need, demand, free)
    if not text:
        assert need.total(found.bytes) <= free
        assert found.blocks >= (1 if demand.asked else blocks_of(demand.context))
    elif found.blocks:
        assert f"{free / 1e9:.2f} GB are free" in text or " MB are free" in text
        ways = [] if "No setting" in text else text.rpartition("fit with ")[2].rstrip(".").split(", or with ")
        for way in ways:
            told = dict(re.findall(r"(\w+)=(\w+)", way))
            half = "dtype" in told
            smaller = MemoryEstimate(need.weights // 2, need.per_token // 2) if half else need
            changed = replace(
                demand,
                context=int(told.get("max_context", demand.context)),
                asked=int(told["kv_bytes"]) if "kv_bytes" in told else demand.asked,
            )
            assert shortage(smaller, changed, free, told.get("dtype", dtype)) == "", way


def test_a_refusal_names_both_numbers():
    text = shortage(MemoryEstimate(10**9, 10**6), KeyValueDemand(32, 4096), 3 * 10**9, "fp32")
    assert text == (
        "it needs about 5.23 GB (weights 1.00 GB, keys and values of one sequence of 4096 tokens 4.10 GB), and 3.00 GB "
        "are free. It would fit with max_context=1856, or with dtype=bf16."
    )


def test_less_than_a_block_is_refused():
    text = shortage(NEED, KeyValueDemand(4, 100, ONE - 1), 10**12, "fp32")
    assert text.startswith(
        f"its parameter 'kv_bytes' is {ONE - 1}; expected at least {ONE}, for {BLOCK} tokens"
    )


def test_a_model_that_is_too_large_in_any_way_says_so():
    assert "No setting fits" in shortage(MemoryEstimate(10**12, 1000), KeyValueDemand(1, 10), 10**9, "bf16")
