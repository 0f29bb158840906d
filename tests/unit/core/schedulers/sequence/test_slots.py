"""Rows without a request: where they are put, and that nobody above the instance hears of them."""

import asyncio

import numpy as np
from tests.harness.virtual_sequences import CONTROLS, infer

from trivium.core.schedulers.sequence.controls import Controls
from trivium.core.schedulers.sequence.slots import FIRST_IDLE, around
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Tensor, Tensors
from trivium.types.running import Batch, Begun, Credit, Dead, Executed, Part

FAILED = ServeError(Code.MODEL_FAILED, "as told")


class Spy:
    """An instance, and the port above it."""

    def __init__(self):
        self.batches, self.cancelled, self.events, self.is_closed = [], [], [], False
        self.holds = []

    def start(self, batch):
        self.batches.append(batch)

    def cancel(self, item):
        self.cancelled.append(item)

    def hold(self, item):
        self.holds.append(("hold", item))

    def resume(self, item):
        self.holds.append(("resume", item))

    def close(self):
        self.is_closed = True

    def push(self, events):
        self.events += events

    deliver = push


def opened(slots):
    spy = Spy()
    ports = []

    async def launch(placement, port):
        ports.append(port)
        return spy

    launched = around(launch, slots.__getitem__, Controls("m", CONTROLS, batch_axis=True))(None, spy)
    return spy, asyncio.run(launched), ports[0]


def batch(*sequences):
    requests = [infer(sequence, sequence) for sequence in sequences]
    return Batch(list(sequences), requests, [1] * len(sequences))


def test_requests_stand_in_the_rows_of_their_slots():
    spy, instance, _ = opened({7: 3, 8: 0, 9: 5})
    instance.start(batch(7, 8))
    (whole,) = spy.batches
    assert [item if item < FIRST_IDLE else None for item in whole.items] == [8, None, None, 7]
    assert len(set(whole.items)) == 4
    assert whole.rows == [1] * 4
    idle = whole.operations[1]
    assert (idle.model, idle.sequence) == ("m", None)


def test_idle_rows_are_zeros_and_told_so():
    controls = Controls("m", CONTROLS, batch_axis=True)
    words = np.array([[b"a", b"b"]], dtype=object)
    items = (*infer(1, 5.0).payload.items, Tensor("words", DataType.BYTES, (1, 2), words))
    like = infer(1, 5.0)
    like = type(like)(model="m", version="1", payload=Tensors((*items, *controls.of(like.sequence))))
    told = {tensor.name: tensor.array.tolist() for tensor in controls.idle(like).payload.items}
    assert told == {
        "x": [[0.0, 0.0]],
        "words": [[b"", b""]],
        "start": [[0]],
        "end": [[False]],
        "ready": [[0.0]],
        "id": [[0]],
    }


def test_nobody_hears_of_idle_rows():
    spy, instance, port = opened({7: 1})
    instance.start(batch(7))
    idle, real = spy.batches[0].items
    payload = infer(7).payload
    port.push([Begun((idle, real)), Part(idle, payload), Part(real, payload, None, False), Credit(1)])
    port.deliver([Executed([idle, real], [FAILED, payload], 1.0, 2.0, 3.0, 4.0), Dead("gone")])
    begun, part, credit, executed, dead = spy.events
    assert (begun, part.item, credit, dead) == (Begun((real,)), real, Credit(1), Dead("gone"))
    assert (executed.items, executed.outcomes) == ([real], [payload])
    assert (executed.began, executed.input_ready, executed.output_began, executed.ended) == (
        1.0,
        2.0,
        3.0,
        4.0,
    )


def test_the_rest_is_passed_on():
    spy, instance, _ = opened({7: 0})
    instance.start(batch(7))
    instance.hold(7)
    instance.resume(7)
    instance.cancel(7)
    instance.close()
    assert spy.holds == [("hold", 7), ("resume", 7)]
    assert (spy.batches[0].items, spy.cancelled, spy.is_closed) == ([7], [7], True)
