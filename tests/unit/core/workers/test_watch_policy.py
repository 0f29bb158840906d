"""What the watch shall do about a worker, by a table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.core.workers.watch_policy import (
    SILENCE_BEFORE_KILL,
    SILENCE_BEFORE_PING,
    Verdict,
    WorkerView,
    judge,
)
from trivium.types.spec import Limits

NOW = 1000.0
PLAIN = Limits()
ITEMS = Limits(recycle_items=10)
BYTES = Limits(recycle_bytes=100)


def view(busy_since=None, heard_at=NOW, items=0, memory=0, memory_when_new=0):
    return WorkerView(busy_since, heard_at, items, memory, memory_when_new)


CASES = {
    "nothing to do": (view(), PLAIN, Verdict.NOTHING, ""),
    "idle and silent for long": (view(heard_at=0.0), PLAIN, Verdict.NOTHING, ""),
    "busy, and heard of": (view(0.0), PLAIN, Verdict.NOTHING, ""),
    "busy and silent": (view(0.0, NOW - SILENCE_BEFORE_PING - 1), PLAIN, Verdict.PING, ""),
    "silent, but not busy for long": (view(NOW - 1, 0.0), PLAIN, Verdict.NOTHING, ""),
    "silent all too long": (
        view(0.0, NOW - SILENCE_BEFORE_KILL - 1), PLAIN, Verdict.KILL_SILENT, "it gave no sign of life for 61 s",
    ),
    "not enough items": (view(items=9), ITEMS, Verdict.NOTHING, ""),
    "stale by items": (
        view(items=11), ITEMS, Verdict.REPLACE, "it has served 11 items, and is to be replaced after 10",
    ),
    "items do not count without a limit": (view(items=10**9), PLAIN, Verdict.NOTHING, ""),
    "grown as it may": (view(memory=200, memory_when_new=100), BYTES, Verdict.NOTHING, ""),
    "grown too much": (
        view(memory=201, memory_when_new=100), BYTES, Verdict.REPLACE,
        "its memory has grown by 101 bytes, and may by 100",
    ),
    "not known when new": (view(memory=10**9), BYTES, Verdict.NOTHING, ""),
    "it is gone meanwhile": (view(memory=0, memory_when_new=100), BYTES, Verdict.NOTHING, ""),
    "to hang is worse than to be stale": (
        view(NOW - 99, NOW - 61, items=99), Limits(recycle_items=1), Verdict.KILL_SILENT,
        "it gave no sign of life for 61 s",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name):
    seen, limits, verdict, why = CASES[name]
    assert judge(seen, limits, NOW) == (verdict, why)


@given(
    st.none() | st.floats(0, NOW),
    st.floats(0, NOW),
    st.integers(0, 10),
    st.integers(0, 10),
    st.integers(0, 10),
    st.builds(
        Limits,
        recycle_items=st.none() | st.integers(1, 10),
        recycle_bytes=st.none() | st.integers(1, 10),
    ),
)
def test_only_what_is_busy_is_disturbed_and_every_deed_has_a_reason(
    busy_since, heard_at, items, memory, when_new, limits
):
    verdict, why = judge(view(busy_since, heard_at, items, memory, when_new), limits, NOW)
    if busy_since is None:
        assert verdict in (Verdict.NOTHING, Verdict.REPLACE)
    assert bool(why) == (verdict in (Verdict.KILL_SILENT, Verdict.KILL_LARGE, Verdict.REPLACE))
