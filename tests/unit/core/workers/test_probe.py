"""One worker's being ready: one question on its way at a time, its answer for all who wait, nothing kept of others."""

import asyncio
import gc
import weakref

import pytest

from trivium.core.workers.connection import ReadinessProbe
from trivium.core.workers.wire import ProtocolError
from trivium.types.errors import Code, ServeError
from trivium_worker.wire import frames

SAYS = memoryview(frames.text({"checks": True}))
YES, NO = (memoryview(frames.text({"why": why})) for why in ("", "no database"))


def scene(play):
    async def run():
        written, told = [], []
        probe = ReadinessProbe(written.extend)
        probe.take(frames.READY, SAYS)
        assert probe.opened.done()
        play(probe, written, told)

    asyncio.run(run())


def test_who_has_no_say_is_not_asked():
    async def run():
        probe = ReadinessProbe([].extend)
        assert probe.check is None
        probe.take(frames.READY, memoryview(frames.text({"checks": False})))
        assert probe.check is None

    asyncio.run(run())


def test_all_who_ask_meanwhile_get_the_same_answer():
    def play(probe, written, told):
        for _ in range(3):
            probe.check(told.append)
        assert written == [frames.frame(frames.CHECK)]
        probe.take(frames.CHECKED, NO)
        assert told == ["no database"] * 3
        probe.check(told.append)
        assert len(written) == 2
        probe.take(frames.CHECKED, YES)
        assert told[3:] == [""]

    scene(play)


class Asker:
    def __call__(self, why):
        raise AssertionError("it has left")


def test_of_who_leaves_nothing_is_kept_and_the_question_is_still_on_its_way():
    def play(probe, written, told):
        askers = weakref.WeakSet()
        for _ in range(1000):
            asker = Asker()
            askers.add(asker)
            probe.check(asker)()
        del asker
        gc.collect()
        assert (len(written), len(askers)) == (1, 0)
        leave = probe.check(told.append)
        probe.take(frames.CHECKED, YES)
        leave()
        assert (told, len(written)) == ([""], 1)
        with pytest.raises(ProtocolError, match="nobody has asked"):
            probe.take(frames.CHECKED, YES)

    scene(play)


def test_an_end_is_told_to_all_who_wait_and_asks_no_more():
    def play(probe, written, told):
        probe.check(told.append)
        probe.close(Code.WORKER_DIED, "it was killed")
        assert (told, probe.check) == (["it was killed"], None)

    scene(play)


def test_one_that_ends_before_it_is_ready_says_why():
    async def run():
        probe = ReadinessProbe([].extend)
        probe.close(Code.LOAD_FAILED, "it was killed")
        with pytest.raises(ServeError, match="it was killed"):
            await probe.opened

    asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "in_flight"), [({}, 0), ({"in_flight": 0}, 0), ({"in_flight": 65536}, 65536)]
)
def test_a_worker_says_how_many_items_it_takes(said, in_flight):
    async def run():
        probe = ReadinessProbe([].extend)
        probe.take(frames.READY, memoryview(frames.text({"checks": False, **said})))
        assert probe.opened.done()
        probe.take(frames.READY, memoryview(frames.text({"checks": False, "in_flight": 3})))
        assert probe.in_flight == in_flight

    asyncio.run(run())


@pytest.mark.parametrize("said", [-1, 65537, True, 1.5, "8", None, [8]])
def test_a_number_of_items_that_cannot_be_is_none(said):
    async def run():
        probe = ReadinessProbe([].extend)
        with pytest.raises(ProtocolError, match="items at once"):
            probe.take(frames.READY, memoryview(frames.text({"checks": False, "in_flight": said})))
        assert not probe.opened.done()

    asyncio.run(run())
