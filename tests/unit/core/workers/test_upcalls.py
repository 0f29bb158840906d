"""What a worker asks of the server: numbers of calls that it uses twice end it, and nothing else."""

import random

import pytest
from tests.fuzz.worker_wire import CALL, Owner, about

from trivium.core.workers.wire import ProtocolError
from trivium_worker.wire import frames


class Never(random.Random):
    """A chance that lets a model be ready, and never answer."""

    def random(self) -> float:
        return 0.7


@pytest.mark.parametrize("kind", [frames.CALL, frames.ASK])
def test_a_number_in_use_is_refused(kind: int) -> None:
    owner = Owner(Never())
    first = about(5, {**CALL, "parent": 1}, b"1234")
    owner.upcall(frames.CALL, memoryview(first))
    assert owner.upward.open_calls() == (5,)
    other = frames.text({"call": 5, "verb": "load", "model": "m"})
    second = about(5, {**CALL, "parent": 2}, b"1234") if kind == frames.CALL else other
    with pytest.raises(ProtocolError, match="the number 5, which one that has not ended has"):
        owner.upcall(kind, memoryview(second))
    for item in owner.items:
        owner.upward.cancel_calls(item)
    assert owner.upward.open_calls() == ()
    owner.upcall(frames.CALL, memoryview(first))
    assert owner.upward.open_calls() == (5,)
