"""Streams of one model whose receivers are full: who goes on, who is held, who gets what, on the virtual clock."""

import asyncio
from collections import deque

from hypothesis import given
from hypothesis import strategies as st
from tests.harness.virtual_models import make_infer, make_spec

from trivium.core.instances.rate_limiter import RateLimiter
from trivium.core.models.model_context import ModelContext
from trivium.core.streams.held import LOOK_SECONDS
from trivium.core.streams.spool import StreamStore
from trivium.core.unread_answers import UnreadAnswers
from trivium.load.simulate import VirtualClock, opened
from trivium.types import reasons
from trivium.types.core_config import UnreadLimits
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Raw, RawPart
from trivium.types.resources import ResourceLimits, ResourceNeed, ResourceRequest
from trivium.types.running import Begun, Credit, Dead, Executed, Part
from trivium.types.spec import InstanceGroup

SECONDS = 0.001
"""For a part to be made."""
WINDOW = 16


class Streaming:
    """An instance whose `threads` make the parts of one request after another; with none its one thread runs a batch at
    a time. A thread whose request is held makes no more than a window of parts, and waits.
    """

    threads = ()
    check = None
    running_since = None
    in_flight = 0

    def __init__(self, clock, port, threads, counts):
        self._clock, self._port, self._counts = clock, port, counts
        self._takes_all = threads > 0
        self._idle = max(threads, 1)
        self._waiting = deque()
        self._at_work = {}  # item -> parts that it has made
        self._held = {}  # item -> parts made since it is held
        self._stuck = set()
        self._cancelled = set()
        self._done = 0
        self.computed = 0

    def start(self, batch):
        self._waiting.extend(batch.items)
        if self._takes_all:
            self._port.push((Credit(1),))
        self._begin()

    def _begin(self):
        while self._idle and self._waiting:
            self._idle -= 1
            item = self._waiting.popleft()
            self._at_work[item] = 0
            self._clock.call_at(self._clock.now() + SECONDS, lambda item=item: self._make(item))

    def _make(self, item):
        if item not in self._at_work:
            return
        if self._held.get(item, 0) >= WINDOW and item not in self._cancelled:
            self._stuck.add(item)
            return
        made = self._at_work[item] = self._at_work[item] + 1
        self.computed += 1
        if item in self._cancelled or made > self._counts[item]:
            del self._at_work[item]
            self._idle += 1
            error = ServeError(Code.CANCELLED, "It was cancelled.") if item in self._cancelled else None
            now = self._clock.now()
            run = Executed([], [], now, now, now, now, 1, (item,))
            self._port.push((Part(item, None, error), run, *(() if self._takes_all else (Credit(1),))))
            self._begin()
            return
        if item in self._held:
            self._held[item] += 1
        self._port.push((Part(item, Raw((RawPart(made.to_bytes(1000)),)), None, False),))
        self._clock.call_at(self._clock.now() + SECONDS, lambda: self._make(item))

    def cancel(self, item):
        self._cancelled.add(item)
        self._go_on(item)

    def hold(self, item):
        self._held.setdefault(item, 0)

    def resume(self, item):
        self._held.pop(item, None)
        self._go_on(item)

    def _go_on(self, item):
        if item in self._stuck:
            self._stuck.discard(item)
            self._clock.call_soon(lambda: self._make(item))

    def die(self):
        self._at_work.clear()
        self._port.push((Begun((1,)), Dead("It was killed.")))

    def attach(self, port):
        self._port = port

    def interrupt(self, why):
        return ()

    def abandon(self, why):
        raise AssertionError(why)

    def close(self):
        pass


class Reader:
    """Takes the parts of one request once it reads; before, it is full beyond a window of them."""

    def __init__(self, clock):
        self._clock = clock
        self.unread = 0
        self.numbers = []
        self.last = None
        self.ended_at = None
        self.reads = False
        self.is_full = False
        self.ticket = None

    def __call__(self, part):
        assert self.last is None, "nothing comes behind a last part"
        if part.final:
            self.last, self.ended_at = part, self._clock.now()
        else:
            assert not self.is_full, "a receiver that is full gets nothing"
            self.numbers.append(int.from_bytes(bytes(part.payload.parts[0].data)))
            self.unread += not self.reads
            self._look()

    def _look(self):
        is_full = self.unread >= WINDOW
        if is_full is not self.is_full:
            self.is_full = is_full
            if self.ticket is not None:
                (self.ticket.hold if is_full else self.ticket.resume)()

    def read(self):
        self.reads, self.unread = True, 0
        self._look()


class Play:
    """A model of one instance, and readers of its streams."""

    def __init__(self, threads, counts, total=10**9):
        self.clock = VirtualClock()
        self.counts = dict(enumerate(counts, 1))
        self.store = StreamStore(UnreadLimits(total * 4, 0), None, lambda work, done: done(work()))
        self.store.bounds = type(self.store.bounds)(total, total)
        context = ModelContext(store=self.store)
        self.instances = []

        def open_instance(port):
            self.instances.append(Streaming(self.clock, port, threads, self.counts))
            return self.instances[-1]

        self.model = opened(make_spec(streams=True), self.clock, open_instance, asyncio.run, context)
        self.readers = {}

    def submit(self, number):
        reader = self.readers[number] = Reader(self.clock)
        reader.ticket = self.model.submit(number, make_infer(), reader)
        return reader


def whole(play, number):
    return list(range(1, play.counts[number] + 1))


@given(st.data())
def test_who_reads_gets_all_that_fits_and_waits_for_the_computing_alone(data):
    """k streams of n parts of an instance with m threads, read in any order, all at once or never."""
    counts = data.draw(st.lists(st.integers(1, 60) | st.integers(300, 500), min_size=1, max_size=5), "parts")
    threads = data.draw(st.integers(0, 3), "threads")
    most = data.draw(st.sampled_from([10**9, 100_000]), "bytes of one answer")
    play = Play(threads, counts, most)
    order = data.draw(st.permutations(sorted(play.counts)), "order of reading")
    reading = order[: data.draw(st.integers(0, len(order)), "of which are read")]
    at_once = data.draw(st.booleans(), "all at once")
    for number in sorted(play.counts):
        play.submit(number)
    if at_once:
        for number in reading:
            play.readers[number].read()
    computing = sum(count + 1 for count in counts) * SECONDS
    for number in reading:  # one behind the other, as a handler does
        play.readers[number].read()
        began = play.clock.now()
        while play.readers[number].last is None:
            assert play.clock.now() - began <= computing + LOOK_SECONDS * (len(counts) + 1), (
                f"{number} is stuck"
            )
            play.clock.run(play.clock.now() + SECONDS)
    for number in reading:
        reader = play.readers[number]
        if reader.last.error is None:
            assert reader.numbers == whole(play, number)
        else:
            assert reader.last.error.info.reason == reasons.UNREAD
            assert reader.numbers == whole(play, number)[: len(reader.numbers)]
            left = reader.last.error.info.metadata[
                "left"
            ]  # what is ended for others' sake is let go of unread
            assert left > most * 0.5, "it was ended before it had left much"
    for reader in play.readers.values():
        reader.ticket.cancel(ServeError(Code.CANCELLED, "They leave."))
    play.clock.run(play.clock.now() + 1 + computing)
    assert play.model.debug_state().is_at_rest
    assert play.store.memory == play.store.unread.held_bytes == 0


def test_what_is_ended_since_others_need_the_room_had_left_much_and_is_let_go_of():
    """Found by the property above."""
    play = Play(2, [331, 300, 300, 300, 300], 100_000)
    for number in sorted(play.counts):
        play.submit(number)
    for number in (1, 2):
        play.readers[number].read()
        while play.readers[number].last is None:
            play.clock.run(play.clock.now() + SECONDS)
    first, second = play.readers[1], play.readers[2]
    assert first.numbers == whole(play, 1)
    assert second.last.error.info.metadata["left"] > 100_000
    assert second.numbers == list(range(1, len(second.numbers) + 1))


def test_alone_a_slow_reader_holds_its_sender():
    play = Play(0, [500])
    reader = play.submit(1)
    play.clock.run(10)
    assert play.instances[0].computed < 3 * WINDOW
    assert play.store.memory < 3 * WINDOW * 2000
    reader.read()
    play.clock.run(20)
    assert (reader.numbers, reader.last.error) == (whole(play, 1), None)


def test_another_request_frees_the_sender_and_the_slow_reader_loses_nothing():
    play = Play(0, [500, 3])
    slow = play.submit(1)
    play.clock.run(10)
    quick = play.submit(2)
    quick.read()
    play.clock.run(11)
    assert quick.numbers == [1, 2, 3]
    assert quick.ended_at - 10 < 0.6
    slow.read()
    play.clock.run(12)
    assert (slow.numbers, slow.last.error) == (whole(play, 1), None)


def test_a_steady_reader_loses_nothing_because_others_come():
    play = Play(0, [400, *[1] * 50])
    slow = play.submit(1)

    def read_some():
        slow.read()
        slow.reads = False
        if slow.last is None:
            play.clock.call_at(play.clock.now() + 0.1, read_some)

    read_some()
    for number in range(2, 52):
        play.submit(number).read()
        play.clock.run(play.clock.now() + 0.05)
    play.clock.run(60)
    assert (slow.numbers, slow.last.error) == (whole(play, 1), None)


def test_a_reader_that_leaves_drops_what_was_kept():
    play = Play(0, [500, 1])
    slow = play.submit(1)
    play.submit(2).read()
    play.clock.run(2)
    assert play.store.memory > 400 * 1000
    slow.ticket.cancel(ServeError(Code.CANCELLED, "It left."))
    assert slow.last.error.code is Code.CANCELLED
    play.clock.run(3)
    assert (play.store.memory, play.model.debug_state().is_at_rest) == (0, True)


def test_where_all_together_leave_too_much_who_takes_nothing_is_ended():
    play = Play(3, [500, 500, 500, 1])
    play.store.unread = UnreadAnswers(1_000_000)
    never, steady, nor_this = (play.submit(number) for number in (1, 2, 3))

    def read_some():
        steady.read()
        steady.reads = False
        if steady.last is None:
            play.clock.call_at(play.clock.now() + 0.05, read_some)

    read_some()
    play.submit(4)
    play.clock.run(60)
    never.read()
    nor_this.read()
    play.clock.run(61)
    ends = [reader.last.error and reader.last.error.info.reason for reader in (never, nor_this)]
    assert sorted(ends, key=str) == [None, reasons.UNREAD]
    assert (steady.numbers, steady.last.error) == (whole(play, 2), None)


def test_what_an_instance_made_before_it_died_is_given_before_the_error():
    play = Play(0, [500, 1])
    slow = play.submit(1)
    play.submit(2)
    play.clock.run(0.1)

    async def die():
        play.instances[0].die()
        play.clock.run(0.2)
        await asyncio.sleep(0)  # in which another one is opened

    asyncio.run(die())
    assert slow.last is None
    slow.read()
    assert slow.last.error.code is Code.WORKER_DIED
    assert len(slow.numbers) > WINDOW


def test_another_model_that_waits_for_a_resource_frees_the_sender():
    """With a rate limiter, what a held stream's instance has is what another model waits for."""
    counts = {1: 500, 2: 3}
    clock = VirtualClock()
    limiter = RateLimiter(ResourceLimits())
    claim = ResourceRequest((ResourceNeed("gpu", 1, True),))
    context = ModelContext(limiter=limiter)
    readers = {}
    for number in counts:
        spec = make_spec(streams=True, groups=(InstanceGroup("m", 1, 1, claim=claim),))
        model = opened(spec, clock, lambda port: Streaming(clock, port, 0, counts), asyncio.run, context)
        reader = readers[number] = Reader(clock)
        reader.ticket = model.submit(number, make_infer(), reader)
        clock.run(clock.now() + 1)
    readers[2].read()
    clock.run(clock.now() + 1)
    assert readers[2].numbers == [1, 2, 3]
    readers[1].read()
    clock.run(clock.now() + 1)
    assert readers[1].numbers == list(range(1, 501))
