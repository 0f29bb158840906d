"""Every call of `tests/oracle/djl_python` on the shim, held to what the original package made of it."""

import json
import platform
from collections import Counter

import numpy as np
import pytest
from tests.harness.djl_child import SHIMS, forget
from tests.oracle.djl_python.calls import CALLS, Call
from tests.oracle.djl_python.differences import ACCEPTED, SIGNATURES
from tests.oracle.djl_python.record import RECORD
from tests.oracle.djl_python.world import outcome, signature

DOCUMENT = json.loads(RECORD.read_text())
NAMES = tuple(dict.fromkeys(call.name for call in CALLS))


@pytest.fixture(autouse=True, scope="module")
def shim():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SHIMS))
        yield
    forget()


def rows_of(call: Call) -> list[str]:
    """The accepted differences that this call shows."""
    return [
        row.what
        for row in ACCEPTED
        for name, piece in row.calls
        if name == call.name and piece in call.expression
    ]


def comparable(found: object) -> object:
    """An outcome without the text of an exception where another Python or numpy than the record's may word it."""
    about = DOCUMENT["about"]
    words_alike = (
        about["python"].split(".")[:2] == platform.python_version().split(".")[:2]
        and about["numpy"] == np.__version__
    )
    return found["raises"] if isinstance(found, dict) and "raises" in found and not words_alike else found


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_a_call_is_answered_as_the_original_does(call: Call) -> None:
    theirs = comparable(DOCUMENT["outcomes"][call.name][call.expression])
    ours = comparable(outcome(call.expression))
    if rows_of(call):
        assert ours != theirs, f"no difference any more: take it out of {rows_of(call)}"
    else:
        assert ours == theirs, call.expression


@pytest.mark.parametrize("name", NAMES)
def test_a_name_has_the_parameters_of_the_original(name: str) -> None:
    assert (signature(name) == DOCUMENT["signatures"][name]) == (name not in SIGNATURES)


def test_the_record_has_every_call_and_no_other() -> None:
    recorded = {(name, text) for name, calls in DOCUMENT["outcomes"].items() for text in calls}
    assert recorded == {(call.name, call.expression) for call in CALLS}
    assert len(recorded) == len(CALLS) >= 300


def test_every_name_is_called_four_times_and_once_badly() -> None:
    times, bad = Counter(call.name for call in CALLS), Counter(call.name for call in CALLS if call.is_bad)
    assert min(times.values()) >= 4
    assert set(bad) == set(times)
    for name, calls in DOCUMENT["outcomes"].items():
        assert any(isinstance(found, dict) and "raises" in found for found in calls.values()), name


def test_every_row_of_the_differences_is_shown_by_its_calls() -> None:
    for row in ACCEPTED:
        for name, piece in row.calls:
            assert any(call.name == name and piece in call.expression for call in CALLS), (name, piece)
    assert all(len(rows_of(call)) < 2 for call in CALLS)
