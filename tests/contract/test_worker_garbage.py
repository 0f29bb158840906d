"""What workers say that they should not: garbage, ends without end, what cannot be written, words after death."""

import asyncio

import pytest
from tests.harness.instances import MERGED, scene

from trivium.core.workers.wire import BatchWriter
from trivium.types.errors import Code
from trivium.types.state import ItemState
from trivium_worker.wire import frames


def one_final(stage, number):
    """Of an item that had many parts only the end, for the stage's own check."""
    finals = [part for part in stage.parts[number] if part.final]
    assert len(finals) == 1
    assert stage.parts[number][-1] is finals[0]
    stage.parts[number][:] = finals


@pytest.mark.parametrize("how", ["deep garbage", "number garbage"])
def test_garbage_of_every_kind_is_named(how):
    async def play(stage):
        stage.submit(how)
        stage.submit()
        await stage.settle()
        assert stage.codes() == [Code.WORKER_DIED, None]
        assert "it sent what cannot be understood" in stage.parts[1][0].error.message

    scene(play)


@pytest.mark.parametrize("stray", ["unknown", "twice"])
def test_items_of_a_garbled_answer_are_not_run_again(stray):
    """Half of them had been struck off when the other half turned out to be none."""

    async def play(stage):
        stage.shut()
        items = [stage.submit(), stage.submit()]
        await stage.begun(items[0])
        (worker,) = stage.workers.instances
        other = 999 if stray == "unknown" else 1
        body = frames.DONE_HEAD.pack(worker.debug_state().last_batch, 2, 0.0, 0.0, 0)
        body += b"".join(frames.ANSWER.pack(number, frames.NOTHING, 0, 0) for number in (1, other))
        worker.connection.data_received(frames.frame(frames.DONE, body))
        await stage.settle()
        assert stage.codes() == [Code.WORKER_DIED] * 2
        assert stage.workers.ran() == ["1", "2"]

    scene(play, batching=MERGED)


@pytest.mark.parametrize(
    "stray",
    [
        frames.frame(frames.KEPT, frames.KEPT_BODY.pack(999, 1)),
        frames.frame(frames.KEPT, frames.KEPT_BODY.pack(1, 1)),
        frames.frame(frames.KEPT, b"short"),
        frames.frame(frames.FREED, frames.NUMBER.pack(1)),
        frames.frame(frames.FREED, b"short"),
        frames.frame(frames.CHECKED, b'{"why": ""}'),
        frames.frame(frames.CHECKED, b"short"),
        frames.frame(frames.READY, b"{}"),
    ],
)
def test_what_was_never_lent_or_asked_ends_the_worker(stray):
    async def play(stage):
        stage.shut()
        await stage.begun(stage.submit())
        (worker,) = stage.workers.instances
        worker.connection.data_received(stray)
        await stage.settle()
        assert stage.codes() == [Code.WORKER_DIED]
        assert "it sent what cannot be understood" in stage.parts[1][0].error.message

    scene(play)


@pytest.mark.parametrize("how", ["twice", "haste", "unwritable end"])
def test_an_item_ends_once_however_often_its_handler_ends_it(how):
    async def play(stage):
        for _ in range(3):
            stage.submit(how)
        stage.submit()
        await stage.settle()
        for number in (1, 2, 3):
            one_final(stage, number)
        code = Code.MODEL_FAILED if how == "unwritable end" else None
        assert stage.codes() == [code] * 3 + [None]
        assert len(stage.workers.instances) == 1, "that is no reason to end it"

    scene(play)


def test_an_exception_that_is_none_is_the_batchs():
    async def play(stage):
        stage.submit("base exception")
        stage.submit()
        await stage.settle()
        assert stage.codes() == [Code.MODEL_FAILED, None]
        assert stage.parts[1][0].error.message.startswith("The model raised Odd: (it cannot say what)")

    scene(play)


def test_an_exit_does_not_wait_for_threads():
    async def play(stage):
        stage.submit("sys exit with threads")
        await asyncio.wait_for(stage.workers.instances[0].gone, 60)
        await stage.settle()
        assert "ended by itself with status 5" in stage.parts[1][0].error.message

    scene(play)


def test_what_cannot_be_handed_over_ends_and_hurts_nobody(monkeypatch):
    async def play(stage):
        with monkeypatch.context() as patch:
            patch.setattr(frames, "MOST", 50)
            stage.submit()
            await stage.until(lambda: stage.ended)
        with monkeypatch.context() as patch:
            patch.setattr(BatchWriter, "write", lambda writer, number, batch: 1 / 0)
            stage.submit()
            await stage.until(lambda: len(stage.ended) == 2)
        stage.submit("x" * 100_000)
        await stage.settle()
        assert stage.codes() == [Code.TOO_LARGE, Code.INTERNAL, None]
        assert "ZeroDivisionError" in stage.parts[2][0].error.message
        assert len(stage.workers.instances) == 1

    scene(play)


class Overheard:
    """A port in front of another one, which notes what passes."""

    def __init__(self, port, told):
        self.port, self.told = port, told

    def push(self, events):
        self.told += events
        self.port.push(events)

    def deliver(self, events):
        self.told += events
        self.port.deliver(events)


def test_events_of_the_dead_are_not_told():
    async def play(stage):
        stage.shut()
        item = stage.submit()
        await stage.begun(item)
        (worker,) = stage.workers.instances
        told, port = [], stage.workers.ports[0]
        worker.attach(Overheard(port, told))
        worker.kill("the test says so")
        await stage.until(lambda: stage.ended)
        assert told
        told.clear()
        body = frames.DONE_HEAD.pack(worker.debug_state().last_batch, 1, 0.0, 0.0, 0) + frames.ANSWER.pack(
            1, frames.NOTHING, 0, 0
        )
        worker.connection.data_received(frames.frame(frames.DONE, body))
        worker.cancel(1)
        worker.close()
        assert told == []
        assert item.state is ItemState.ENDED
        assert "the test says so" in stage.parts[1][0].error.message

    scene(play)
