"""Large data goes by the arena where it can: where it was received, copied there, or inline; and odd batches."""

import numpy as np
import pytest
from tests.harness.worker_frames import CAPACITY, read_run, said, whole

from trivium.core.workers.arena import SMALLEST, Arena
from trivium.core.workers.wire import BatchWriter
from trivium.types.datatype import DataType
from trivium.types.operations import Infer
from trivium.types.payload import Raw, RawPart, Tensor, Tensors
from trivium.types.running import Batch


@pytest.fixture(scope="module")
def arena():
    made = Arena("m", CAPACITY)
    yield made
    made.close()


def run(arena, payload, **fields):
    """The one item of a batch, as the child reads it, and whether it lies in the arena."""
    writer = BatchWriter(arena)
    _, body = whole(writer.write(1, Batch([5], [Infer(model="m", payload=payload, **fields)], [1])))
    _, (item,) = read_run(body, arena)
    return item[3], writer.copies, len(body)


def received(arena, *blobs):
    """A body in the arena; its lease, and a view of each blob."""
    lease = arena.lend(sum(map(len, blobs)))
    at, views = 0, []
    for blob in blobs:
        lease.view[at : at + len(blob)] = blob
        views.append(lease.view[at : at + len(blob)])
        at += len(blob)
    return lease, views


def floats(name, view):
    array = np.frombuffer(view, "<f4")
    return Tensor(name, DataType.FP32, array.shape, array)


def test_what_was_received_in_the_arena_stays_there(arena):
    lease, views = received(arena, bytes(range(256)) * 40, b"abcd" * 100)
    payload = Tensors((floats("a", views[0]), floats("b", views[1])), lease)
    came, copies, size = run(arena, payload)
    assert said(came) == said(payload)
    assert copies == {}
    assert size < 500
    lease.release()


def test_a_tensor_without_elements_among_others_in_the_arena(arena):
    lease, views = received(arena, bytes(SMALLEST), b"1234")
    for order in ((b"", views[0], views[1]), (views[0], b"", views[1]), (views[0], views[1], b"")):
        payload = Tensors(tuple(floats(str(i), view) for i, view in enumerate(order)), lease)
        came, copies, _ = run(arena, payload)
        assert said(came) == said(payload)
        assert copies == {}
    lease.release()


@pytest.mark.parametrize("kind", ["bytes", "json", "swapped", "apart"])
def test_what_lies_elsewhere_than_its_body_is_copied(arena, kind):
    """A lease says where the body is, not where what was decoded from it is."""
    lease, views = received(arena, bytes(range(256)) * 40, b"abcd" * 2600)
    if kind == "bytes":
        array = np.array([bytes(views[0])], dtype=object)
        payload = Tensors((Tensor("x", DataType.BYTES, (1,), array),), lease)
    elif kind == "json":
        payload = Tensors((floats("x", bytes(views[0])),), lease)
    elif kind == "swapped":
        payload = Tensors((floats("a", views[1]), floats("b", views[0])), lease)
    else:
        payload = Tensors((floats("a", views[0][:1000]), floats("b", views[1])), lease)
    came, copies, size = run(arena, payload)
    assert said(came) == said(payload)
    assert list(copies) == [5]
    assert size < 500
    for held in (*copies.values(), lease):
        held.release()
    assert arena.lent == 0


def test_where_data_is_known_to_begin_nobody_looks_for_its_address(arena):
    lease, (_, view) = received(arena, b"{json}  ", bytes(range(256)) * 40)
    writer = BatchWriter(arena)
    for at in (None, 8, None):  # the first one is described anew, and known from then on
        payload = Tensors((floats("a", view),), lease, at)
        _, body = whole(writer.write(1, Batch([5], [Infer(model="m", payload=payload)], [1])))
        _, (item,) = read_run(body, arena)
        assert said(item[3]) == said(payload)
        assert writer.copies == {}
    lease.release()


def test_another_arenas_lease_is_no_place_of_this_one(arena):
    other = Arena("other", CAPACITY)
    lease, views = received(other, bytes(SMALLEST))
    payload = Tensors((floats("a", views[0]),), lease)
    came, copies, _ = run(arena, payload)
    assert said(came) == said(payload)
    copies[5].release()
    other.close()


def test_where_there_is_no_room_it_goes_inline(arena):
    whole_of_it = arena.lend(CAPACITY)
    payload = Raw((RawPart(bytes(range(256)) * 64),))
    came, copies, size = run(arena, payload)
    assert said(came) == said(payload)
    assert copies == {}
    assert size > 2**14
    whole_of_it.release()


@pytest.mark.parametrize("length", [0, 1, 70_000])
def test_a_request_may_be_called_anything(arena, length):
    writer = BatchWriter(arena)
    infer = Infer(model="m", payload=Tensors(()), id="é\ud800"[:length] * (length // 2 or 1))
    _, body = whole(writer.write(1, Batch([5], [infer], [1])))
    _, ((_, name, *_),) = read_run(body, arena)
    assert name == infer.id.replace("\ud800", "\\ud800")


def test_numbers_of_batches_do_not_run_out(arena):
    number = 2**40
    _, body = whole(
        BatchWriter(arena).write(number, Batch([5], [Infer(model="m", payload=Tensors(()))], [1]))
    )
    assert read_run(body, arena)[0] == number


@pytest.mark.parametrize("count", [2_000, pytest.param(70_000, marks=pytest.mark.slow)])
def test_many_small_items_are_one_batch(arena, count):
    infer = Infer(model="m", payload=Tensors(()))
    _, body = whole(BatchWriter(arena).write(1, Batch(list(range(count)), [infer] * count, [1] * count)))
    assert len(read_run(body, arena)[1]) == count


def test_alike_requests_are_written_alike_wherever_each_of_them_lies(arena):
    """The description is known by heart from the second on; the place of the data is its own each time."""
    writer = BatchWriter(arena)
    made = np.arange(2 * SMALLEST // 4, dtype="<f4")
    for turn in range(3):
        lease, (view,) = received(arena, made.tobytes())
        inside, foreign = floats("a", view), floats("a", made.tobytes())
        crossed = Tensor("a", DataType.FP32, made.shape, np.stack([inside.array, inside.array], 1)[:, 0])
        for tensor, lies_there in ((inside, True), (foreign, False), (crossed, False)):
            item = 10 * turn + lies_there + 2 * (tensor is crossed)
            batch = Batch([item], [Infer(model="m", payload=Tensors((tensor,), lease))], [1])
            _, body = whole(writer.write(1, batch))
            _, (read,) = read_run(body, arena)
            assert said(read[3]) == said(Tensors((inside,))), (turn, lies_there)
            assert (item in writer.copies) is not lies_there
        lease.release()
    for copy in writer.copies.values():
        copy.release()


def test_a_tensor_of_another_arena_is_copied(arena):
    writer, other = BatchWriter(arena), Arena("other", CAPACITY)
    lease, (view,) = received(other, bytes(2 * SMALLEST))
    for item in (1, 2):
        _, body = whole(
            writer.write(1, Batch([item], [Infer("m", payload=Tensors((floats("a", view),), lease))], [1]))
        )
        assert said(read_run(body, arena)[1][0][3]) == said(Tensors((floats("a", view),)))
        assert item in writer.copies
        writer.copies.pop(item).release()
    lease.release()
    other.close()
