"""Who is let in, who has which slot, what ends a sequence: the sequence scheduler on the virtual clock."""

import asyncio

import pytest
from tests.harness.virtual_models import make_infer
from tests.harness.virtual_sequences import CONTROLS, LEFT, SequenceHarness, infer, spec

from trivium.core.schedulers.sequence.controls import Controls
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import SequenceRef
from trivium.types.schedules import Control, Sequence, Signal, Strategy
from trivium.types.spec import Limits

OLDEST = {"strategy": Strategy.OLDEST, "candidates": 8}


def refusal(bench, number):
    error = bench.error(number)
    return error.code, error.message


def test_requests_of_a_sequence_add_up_and_sequences_do_not_mix():
    bench = SequenceHarness(spec())
    for round_ in range(3):
        for sequence in (7, 8, 9):
            bench.send(sequence, sequence, starts=round_ == 0, ends=round_ == 2)
    bench.clock.run()
    assert bench.sums() == [7, 8, 9, 14, 16, 18, 21, 24, 27]
    assert bench.adders[0].batches == [[7, 8, 9]] * 3
    assert bench.model.debug_state().sequences.open == ()
    assert bench.adders[0].sums == {}


def test_what_is_no_request_of_a_sequence_is_refused():
    bench = SequenceHarness(spec())
    cases = [
        (make_infer(rows=1), "works on sequences, and the request names none"),
        (infer(7), "Model 'm': the sequence 7 has not begun"),
        (infer("seven"), "Model 'm': the sequence seven has not begun"),
        (infer(7, rows=2, starts=True), "takes one row of a sequence at a time; the request has 2"),
        (infer("seven", starts=True), "takes the ids of its sequences as UINT64; 'seven' is none"),
    ]
    for number, (request, words) in enumerate(cases, 1):
        bench.submit(request)
        code, message = refusal(bench, number)
        assert code is Code.INVALID
        assert words in message
    assert bench.model.debug_state().sequences.open == ()


def test_after_its_end_a_sequence_begins_anew_or_not_at_all():
    bench = SequenceHarness(spec())
    bench.send(7, starts=True, ends=True)
    bench.send(7)  # refused at once, though the end has not run
    bench.send(7, 5, starts=True)
    bench.send(7, 6, ends=True)
    bench.clock.run()
    assert bench.sums() == [1, Code.INVALID, 5, 11]


def test_a_start_in_the_middle_begins_anew_in_the_same_place():
    bench = SequenceHarness(spec())
    bench.send(7, 4, starts=True)
    bench.send(7, 5, starts=True)
    bench.send(7, 6, ends=True)
    bench.clock.run()
    assert bench.sums() == [4, 5, 11]


def test_a_direct_batch_has_a_row_for_every_slot():
    bench = SequenceHarness(spec())
    for sequence in (1, 2, 3, 4):
        bench.send(sequence, starts=True)
    bench.clock.run(0.05)
    bench.send(2, 5)
    bench.send(4, 6)
    bench.clock.run(0.1)
    bench.send(1, 7)
    bench.clock.run()
    assert bench.adders[0].batches == [[1, 2, 3, 4], [0, 2, 0, 4], [1]]
    assert bench.sums() == [1, 1, 1, 1, 6, 7, 8]
    report = bench.model.report()
    assert (report.success.count, report.rows, report.wasted) == (7, 7, 0)


def test_more_sequences_than_slots_wait_until_one_ends():
    bench = SequenceHarness(spec(rows=2))
    for sequence in (1, 2, 3):
        bench.send(sequence, starts=True)
    bench.clock.run(0.5)
    assert bench.ended == [1, 2]
    bench.send(1, ends=True)
    bench.send(3, 4)
    bench.clock.run(0.6)
    assert bench.sums()[3:] == [2, 5]
    assert bench.adders[0].batches[-1] == [3]  # in the place of the first


def test_an_idle_sequence_makes_room_and_a_late_request_of_it_is_told():
    bench = SequenceHarness(spec(rows=1, idle_seconds=1.0))
    bench.send(1, starts=True)
    bench.send(2, starts=True)
    bench.clock.run(1.005)
    assert bench.ended == [1]
    bench.clock.run(1.1)
    assert bench.ended == [1, 2]
    bench.send(1)
    code, message = refusal(bench, 3)
    assert code is Code.INVALID
    assert "the sequence 1 had no request for 1 s, and was ended" in message
    bench.send(1, 9, starts=True)
    bench.clock.run()
    assert bench.sum(4) == 9


def test_a_sequence_is_not_idle_while_its_request_runs():
    bench = SequenceHarness(spec(rows=1, idle_seconds=1.0), lambda rows: 2.0)
    bench.send(1, starts=True)
    bench.send(2, starts=True)
    bench.clock.run(2.5)
    bench.send(1, 5)
    bench.clock.run()
    assert bench.sums() == [1, 1, 6]


def test_sequences_are_spread_over_instances_and_stay_where_they_are():
    bench = SequenceHarness(spec(rows=2, instances=2))
    for round_ in range(3):
        for sequence in (1, 2, 3, 4):
            bench.send(sequence, starts=round_ == 0, ends=round_ == 2)
    bench.clock.run()
    assert bench.sums() == [1] * 4 + [2] * 4 + [3] * 4
    assert [adder.batches for adder in bench.adders] == [[[1, 3]] * 3, [[2, 4]] * 3]


def test_oldest_batches_what_waits_longest_one_of_each_sequence():
    bench = SequenceHarness(spec(rows=2, **OLDEST))
    for sequence in (1, 1, 2, 3):
        bench.send(sequence, starts=not bench.parts or sequence > 1)
    bench.clock.run()
    assert bench.adders[0].batches == [[1, 2], [1, 3]]


def test_oldest_waits_for_a_preferred_size_or_its_delay():
    bench = SequenceHarness(spec(max_delay=0.1, preferred_rows=(2, 3), **OLDEST))
    bench.send(1, starts=True)
    bench.clock.run(0.05)
    assert bench.adders[0].batches == []
    bench.send(2, starts=True)
    bench.clock.run(0.07)
    assert bench.adders[0].batches == [[1, 2]]
    bench.send(1)
    bench.clock.run(0.16)
    assert len(bench.adders[0].batches) == 1
    bench.clock.run(0.19)
    assert bench.adders[0].batches == [[1, 2], [1]]


def test_direct_waits_until_enough_slots_have_a_request_or_its_delay():
    bench = SequenceHarness(spec(max_delay=0.1, utilization=0.5))
    bench.send(1, starts=True)
    bench.clock.run(0.05)
    assert bench.adders[0].batches == []
    bench.send(2, starts=True)
    bench.clock.run(0.07)
    assert bench.adders[0].batches == [[1, 2]]
    bench.send(1)
    bench.clock.run(0.19)
    assert bench.adders[0].batches == [[1, 2], [1]]


def test_a_lost_instance_breaks_its_sequences_and_no_others():
    bench = SequenceHarness(spec(rows=2, instances=2))
    for sequence in (1, 2, 3, 4):
        bench.send(sequence, starts=True)
    bench.clock.run(0.1)
    bench.send(1)
    bench.send(1)
    bench.send(2)
    bench.clock.run(0.101)
    bench.adders[0].die()
    bench.clock.run(0.2)
    assert bench.sums()[4:] == [Code.WORKER_DIED, Code.WORKER_DIED, 2]
    assert "by the test" in refusal(bench, 5)[1]
    assert "the instance that had its state is gone" in refusal(bench, 6)[1]
    for sequence in (1, 2, 3, 4):
        bench.send(sequence)
    bench.send(1, 9, starts=True)
    bench.clock.run(0.3)
    assert bench.sums()[7:] == [Code.WORKER_DIED, 3, Code.WORKER_DIED, 2, 9]


def test_a_first_request_that_had_not_begun_is_run_elsewhere():
    bench = SequenceHarness(spec(rows=1, instances=2))
    bench.send(1, starts=True)
    bench.clock.run(0.001)
    bench.adders[0].is_dead = True
    bench.send(2, starts=True)  # goes to the other instance
    bench.send(3, 4, starts=True)
    bench.send(3, 5)
    bench.clock.run(0.002)
    bench.adders[0].die()
    bench.clock.run(3)
    assert bench.sums() == [Code.WORKER_DIED, 1, 4, 9]


def test_a_start_behind_a_break_begins_anew():
    bench = SequenceHarness(spec(rows=1))
    bench.send(1, starts=True)
    bench.clock.run(0.001)
    bench.send(1)
    bench.send(1, 5, starts=True)
    bench.send(1, 6)
    bench.scaler.wanted = 0  # the lost one is not replaced: what waits is told all the same
    bench.adders[0].die()
    bench.clock.run(0.002)
    assert [len(parts) for parts in bench.parts.values()] == [1, 1, 0, 0]
    assert bench.sum(2) is Code.WORKER_DIED


@pytest.mark.parametrize("is_bound", [True, False])
def test_without_its_first_request_a_sequence_does_not_begin(is_bound):
    bench = SequenceHarness(
        spec(rows=1 if not is_bound else 2, max_delay=0.5 if is_bound else 0.0, utilization=1.0)
    )
    if not is_bound:
        bench.send(9, starts=True)
    first = bench.send(1, starts=True)
    second = bench.send(1, 2)
    bench.clock.run(0.001)
    bench.tickets[first].cancel(LEFT)
    bench.clock.run(0.1)
    assert bench.sum(second) is Code.CANCELLED
    assert "has not begun" in refusal(bench, second)[1]
    bench.send(1)
    assert "has not begun" in refusal(bench, len(bench.parts))[1]


def test_a_cancelled_end_releases_the_slot():
    bench = SequenceHarness(spec(rows=1))
    bench.send(1, starts=True)
    end = bench.send(1, ends=True)
    bench.clock.run(0.001)
    bench.tickets[end].cancel(LEFT)
    bench.send(2, starts=True)
    bench.clock.run(0.1)
    assert bench.sums() == [1, Code.CANCELLED, 1]


def test_a_full_queue_refuses_without_touching_the_sequence():
    bench = SequenceHarness(spec(rows=1, limits=Limits(queue_items=1)))
    bench.send(1, starts=True)
    bench.clock.run(0.001)
    bench.send(1)
    bench.send(1, ends=True)
    assert bench.sum(3) is Code.QUEUE_FULL
    bench.clock.run(0.1)
    bench.send(1, ends=True)
    bench.clock.run(0.2)
    assert bench.sums() == [1, 2, Code.QUEUE_FULL, 3]


def test_a_closed_model_leaves_no_timer_behind():
    bench = SequenceHarness(spec(idle_seconds=3600.0))
    bench.send(1, starts=True)
    bench.clock.run(0.1)
    bench.send(1)
    asyncio.run(bench.model.close())
    bench.clock.run(0.2)
    assert not bench.model.debug_state().sequences.has_timer


def test_models_without_a_batch_dimension_run_one_at_a_time():
    bench = SequenceHarness(spec(rows=0, strategy=Strategy.OLDEST, candidates=2))
    for sequence in (1, 2):
        bench.send(sequence, rows=0, starts=True)
    bench.clock.run()
    assert bench.adders[0].batches == [[1], [2]]


@pytest.mark.parametrize(
    ("datatype", "identity", "value"),
    [
        (DataType.UINT64, 2**64 - 1, 2**64 - 1),
        (DataType.INT32, 2**31 - 1, 2**31 - 1),
        (DataType.BYTES, "seq", b"seq"),
        (DataType.BYTES, 7, b"7"),
        (DataType.UINT32, 2**32, None),
        (DataType.INT64, 2**63, None),
        (DataType.INT64, "1", None),
    ],
)
def test_ids_of_every_type(datatype, identity, value):
    none = b"" if datatype is DataType.BYTES else 0
    controls = Controls("m", (Control("id", Signal.ID, datatype, none),), batch_axis=False)
    if value is None:
        with pytest.raises(ServeError, match="takes the ids of its sequences as"):
            controls.of(SequenceRef(identity))
        return
    (tensor,) = controls.of(SequenceRef(identity))
    assert (tensor.shape, tensor.array.dtype, tensor.array[0]) == ((1,), datatype.dtype, value)


def test_a_model_is_told_start_end_and_ready():
    controls = Controls("m", CONTROLS, batch_axis=True)
    for starts, ends in ((False, False), (True, False), (True, True)):
        told = controls.of(SequenceRef(5, starts, ends))
        assert [tensor.array.tolist() for tensor in told] == [[[int(starts)]], [[ends]], [[1.0]], [[5]]]
        assert [tensor.datatype for tensor in told] == [control.datatype for control in CONTROLS]


def test_the_defaults_are_those_of_the_direct_strategy():
    assert Sequence() == Sequence(Strategy.DIRECT, 1.0, 1, (), 0.0, (), 0.0)
