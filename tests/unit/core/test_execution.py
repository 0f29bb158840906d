"""A runner's one function, whatever it does, becomes one end per item."""

import gc
import weakref

import pytest
from tests.harness.virtual_models import make_infer

from trivium.core.execution import execute, without
from trivium.types.errors import Code, ServeError
from trivium.types.running import Batch, Credit, Executed, Part, Ran

ASK = make_infer()
REFUSED = ServeError(Code.INVALID, "by the test")


class Runs:
    """A runner of one function."""

    def __init__(self, run):
        self.run = run


def batch(*items):
    return Batch(list(items), [ASK] * len(items), [1] * len(items))


def ran(run, *items):
    return execute(Runs(run), batch(*items))


def fail(error):
    def run(batch):
        raise error

    return run


def test_outcomes_and_times_are_passed_on():
    done = ran(lambda batch: Ran([REFUSED, ASK.payload], 1.0, 2.0), 4, 5)
    assert (done.items, done.outcomes) == ([4, 5], [REFUSED, ASK.payload])
    assert (done.input_ready, done.output_began) == (1.0, 2.0)


def test_without_times_all_of_it_is_the_run():
    done = ran(lambda batch: Ran([ASK.payload]), 4)
    assert done.began == done.input_ready <= done.output_began == done.ended


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (fail(ValueError("bad")), "The model raised ValueError: bad"),
        (lambda batch: Ran([]), "The model returned 0 results for 2 requests"),
        (lambda batch: Ran([ASK.payload] * 3), "The model returned 3 results for 2 requests"),
        (lambda batch: None, "The model raised AttributeError"),
        (lambda batch: Ran(None), "The model raised TypeError"),
    ],
)
def test_a_fault_of_the_runner_is_every_items(run, said):
    done = ran(run, 4, 5)
    assert isinstance(done, Executed)
    assert len(done.outcomes) == 2
    for outcome in done.outcomes:
        assert outcome.code is Code.MODEL_FAILED
        assert outcome.message.startswith(said)


def test_an_error_of_ours_keeps_its_code_and_others_their_cause():
    assert ran(fail(REFUSED), 4).outcomes == [REFUSED]
    cause = KeyError("x")
    assert ran(fail(cause), 4).outcomes[0].__cause__ is cause


def test_the_cancelled_leave_a_batch_with_an_end():
    smaller, ends = without(Batch([4, 5, 6], [ASK] * 3, [1, 2, 3]), {5, 9})
    assert (smaller.items, smaller.rows) == ([4, 6], [1, 3])
    assert len(smaller.operations) == 2
    (end,) = ends
    assert (end.item, end.final, end.error.code) == (5, True, Code.CANCELLED)


class Changing(set):
    """A set to which another thread adds each member that it is asked for."""

    def __contains__(self, item):
        had = super().__contains__(item)
        self.add(item)
        return had


def test_one_cancelled_at_this_very_moment_ends_once():
    smaller, ends = without(batch(4, 5), Changing())
    ended = smaller.items + [part.item for part in ends]
    assert sorted(ended) == [4, 5]
    assert all(isinstance(part, Part) and not isinstance(part, Credit) for part in ends)


def test_a_runner_that_wants_to_exit_fails_its_batch_only():
    class Quitter:
        def run(self, batch):
            raise SystemExit(3)

    run = execute(Quitter(), Batch([1, 2], [make_infer(), make_infer()], [1, 1]))
    assert [outcome.code for outcome in run.outcomes] == [Code.MODEL_FAILED] * 2
    assert "SystemExit" in run.outcomes[0].message


def test_a_failure_keeps_nothing_of_what_the_runner_had_in_hand():
    """It is freed by itself, without the garbage collector."""
    held = []

    class Large:
        """What a frame has in hand."""

    def run(batch):
        large = Large()
        held.append(weakref.ref(large))
        raise ValueError("bad")

    gc.disable()
    try:
        done = ran(run, 4)
        assert held[0]() is None
        assert done.outcomes[0].message == "The model raised ValueError: bad"
        kept = weakref.ref(done.outcomes[0])
        del done
        assert kept() is None
    finally:
        gc.enable()
