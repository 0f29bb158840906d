"""Requests to models that are being loaded: under a patient server they wait, and everybody is answered once."""

import asyncio
from dataclasses import replace

import pytest
from tests.harness.fake_models import replace_model, spec
from tests.harness.virtual_models import VirtualModelHarness, make_infer, make_spec
from tests.unit.core.test_management import AnyPath, ManagedServer

from trivium.core.models.waiting import WaitingRequest
from trivium.load.simulate import VirtualClock
from trivium.types import reasons
from trivium.types.core_config import CoreConfig
from trivium.types.errors import Code, ServeError
from trivium.types.operations import CallRef, DescribeAll
from trivium.types.spec import InstanceGroup, Isolation, Limits

GONE = ServeError(Code.CANCELLED, "gone")


class PatientServer(ManagedServer):
    """A server whose requests wait; what they are answered with is kept by their names."""

    def __init__(self, *specs, is_patient=True, **config):
        form = AnyPath(*(specs or (spec(),)))
        form.by_path = {}
        super(ManagedServer, self).__init__(form=form, config=CoreConfig(is_patient=is_patient, **config))
        self.parts, self.order = {}, []

    def ask(self, name, model="new", version="", **fields):
        self.parts[name] = parts = []

        def sink(part):
            parts.append(part)
            self.order.append(name)

        infer = replace_model(make_infer(), model, version)
        return self.server.submit(type(infer)(model, infer.payload, version, **fields), sink)

    def code(self, name):
        (part,) = self.parts[name]
        return None if part.error is None else part.error.code

    def error(self, name):
        (part,) = self.parts[name]
        return part.error

    async def loading(self, *specs, stamp="5"):
        """Have a model come that does not open until the gate is, which is returned."""
        gate = self.gate("open", stamp)
        await self.server.register(self.bring(*(specs or (spec("new", stamp=stamp),))), wait=False)
        await gate.reached()
        return gate

    async def answered(self, *names):
        await self.until(lambda: all(self.parts[name] for name in names))


def played(play, *specs, **config):
    async def scene():
        stage = PatientServer(*specs, **config)
        async with stage.server:
            await stage.start()
            await play(stage)

    asyncio.run(scene())


def test_they_wait_for_the_load_and_are_answered_in_their_order():
    async def play(stage):
        gate = await stage.loading()
        for name in "abc":
            stage.ask(name)
        assert not stage.order
        gate.open()
        await stage.answered(*"abc")
        assert stage.order == ["a", "b", "c"]
        assert [stage.parts[name][0].payload["x"][0] for name in "abc"] == [5.0] * 3

    played(play)


def test_elsewhere_they_are_refused_at_once():
    async def play(stage):
        gate = await stage.loading()
        stage.ask("a")
        assert stage.code("a") is Code.NOT_READY
        gate.open()

    played(play, is_patient=False)


def test_what_nobody_loads_is_refused_at_once():
    async def play(stage):
        gate = await stage.loading()
        stage.ask("a", "nobody")
        stage.ask("b", version="9")
        assert (stage.code("a"), stage.code("b")) == (Code.NOT_FOUND, Code.NOT_FOUND)
        gate.open()

    played(play)


def test_a_model_whose_turn_has_not_come_is_waited_for():
    async def scene():
        stage = PatientServer(spec("first", stamp="1"), spec("second", stamp="2"), loads_at_once=1)
        gate = stage.gate("open", "1")
        async with stage.server:
            start = asyncio.ensure_future(stage.start())
            await gate.reached()
            stage.ask("a", "second")
            assert not stage.order
            gate.open()
            await start
            await stage.answered("a")
            assert stage.code("a") is None

    asyncio.run(scene())


def test_no_more_of_them_wait_than_in_its_queue_would():
    async def play(stage):
        gate = await stage.loading(spec("new", stamp="5", limits=Limits(queue_items=2)))
        stage.ask("a")
        leaving = stage.ask("b")
        stage.ask("c")
        assert stage.code("c") is Code.QUEUE_FULL
        leaving.cancel(GONE)
        assert stage.code("b") is Code.CANCELLED
        stage.ask("d")
        gate.open()
        await stage.answered("a", "d")
        assert (stage.code("a"), stage.code("d")) == (None, None)

    played(play)


@pytest.mark.parametrize(
    ("own", "models", "reason"),
    [(0.01, None, ""), (0.01, 60.0, ""), (60.0, 0.01, reasons.ITEM_DEADLINE)],
)
def test_their_time_runs_meanwhile(own, models, reason):
    async def play(stage):
        gate = await stage.loading(spec("new", stamp="5", limits=Limits(item_deadline=models)))
        stage.ask("a", deadline=own)
        await stage.answered("a")
        assert (stage.code("a"), stage.error("a").reason) == (Code.EXPIRED, reason)
        gate.open()
        await stage.until(lambda: stage.versions()[("new", "1")] == "ready")
        assert len(stage.parts["a"]) == 1

    played(play)


def test_their_time_runs_on_once_they_run():
    clock, parts = VirtualClock(), []
    stage = VirtualModelHarness(make_spec())
    request = WaitingRequest(make_infer(deadline=3.0), parts.append, clock.now())
    request.keep_deadline(Limits(), clock)
    clock.run(2.0)
    request.go_on(lambda infer, sink: stage.model.submit(1, infer, sink))
    clock.run(2.9)
    assert not parts
    clock.run(3.1)
    (part,) = parts
    assert part.error.code is Code.EXPIRED


def test_one_that_waited_counts_from_when_it_came():
    async def play(stage):
        gate = await stage.loading()
        loop = asyncio.get_running_loop()
        before = loop.time()
        stage.ask("a")
        await stage.until(lambda: loop.time() > before + 0.05)
        gate.open()
        await stage.answered("a")
        assert stage.server.statistics("new").queue.ns >= 0.05e9

    played(play)


def test_they_may_be_cancelled_at_any_time():
    async def play(stage):
        gate, run = await stage.loading(), stage.gate("run", "5")
        first, second, third = (stage.ask(name) for name in "abc")
        first.cancel(GONE)
        first.cancel(GONE)
        assert stage.code("a") is Code.CANCELLED
        gate.open()
        await run.reached()
        second.cancel(GONE)
        assert stage.code("b") is Code.CANCELLED
        run.open()
        await stage.answered("c")
        third.cancel(GONE)
        assert stage.code("c") is None
        assert [len(parts) for parts in stage.parts.values()] == [1, 1, 1]

    played(play)


def test_all_are_told_of_one_that_does_not_load():
    async def play(stage):
        stage.engine.faults["5"] = ServeError(Code.LOAD_FAILED, "no memory")
        gate = await stage.loading()
        stage.ask("a")
        stage.ask("b", version="1")
        gate.open()
        await stage.answered("a", "b")
        for name in "ab":
            assert stage.code(name) is Code.LOAD_FAILED
            assert stage.error(name).message == "Model 'new' version 1 did not load: no memory"
        stage.ask("c")
        assert stage.code("c") is Code.NOT_READY

    played(play)


def test_one_that_names_no_version_is_served_by_the_first_that_comes():
    async def play(stage):
        path = spec("new", "1", stamp="5"), spec("new", "2", stamp="6")
        other = stage.gate("open", "6")
        gate = await stage.loading(*path)
        stage.ask("a")
        stage.ask("b", version="2")
        gate.open()
        await stage.answered("a")
        assert (stage.code("a"), stage.order) == (None, ["a"])
        other.open()
        await stage.answered("b")
        assert stage.parts["b"][0].payload["x"][0] == 6.0

    played(play)


def test_they_are_answered_though_their_model_is_unregistered():
    async def play(stage):
        gate = await stage.loading()
        stage.ask("a")
        leaving = asyncio.ensure_future(stage.server.unregister("new"))
        await asyncio.sleep(0)
        gate.open()
        await leaving
        await stage.answered("a")
        stage.ask("b")
        await stage.until(lambda: ("new", "1") not in stage.versions())
        stage.ask("c")
        assert stage.code("c") is Code.NOT_FOUND

    played(play)


@pytest.mark.parametrize("is_drained", [True, False])
def test_they_are_told_that_the_server_goes_down(is_drained):
    async def scene():
        stage = PatientServer()
        async with stage.server:
            await stage.start()
            gate = await stage.loading()
            stage.ask("a")
            if is_drained:
                stage.server.begin_drain()
                assert stage.code("a") is Code.DRAINING
                stage.ask("b")
                assert stage.code("b") is Code.NOT_READY
            gate.open()
        assert stage.code("a") is Code.DRAINING

    asyncio.run(scene())


def test_nobody_waits_for_instances_that_do_not_open_once_the_server_goes_down():
    async def play(stage):
        stage.engine.faults["5"] = ServeError(Code.LOAD_FAILED, "no memory")
        group = InstanceGroup("new", 0, 1, isolation=Isolation.THREAD)
        await stage.server.register(stage.bring(replace(spec("new", stamp="5"), groups=(group,))))
        stage.ask("a")
        await stage.until(lambda: stage.server.debug_state("new").failures == (1,))
        assert not stage.order
        stage.server.begin_drain()
        assert stage.code("a") is Code.DRAINING

    played(play)


def test_one_whose_body_was_lent_holds_it_as_long_as_it_waits():
    async def play(stage):
        gate = await stage.loading()
        with pytest.raises(ServeError):
            stage.server.lend("nobody", "", 100)
        given_back = []
        lease = stage.server.lend("new", "", 100)
        lease = type(lease)(lease.view, given_back.append)
        payload = replace_model(make_infer(), "new", "").payload
        for name in "ab":
            infer = make_infer()
            infer = type(infer)("new", type(payload)(payload.items, lease))
            stage.parts[name] = []
            ticket = stage.server.submit(infer, stage.parts[name].append)
            if name == "a":
                ticket.cancel(GONE)
        lease.release()
        assert not given_back
        gate.open()
        await stage.until(lambda: bool(given_back))
        await stage.answered("b")

    played(play)


def test_a_call_from_inside_a_handler_does_not_wait():
    async def play(stage):
        gate = await stage.loading()
        stage.ask("a", parent=CallRef(1, ()))
        assert stage.code("a") is Code.NOT_READY
        gate.open()

    played(play)


def test_a_request_that_wants_a_free_instance_does_not_wait():
    async def play(stage):
        gate = await stage.loading(spec("new", stamp="5", limits=Limits(needs_free=True)))
        stage.ask("a")
        assert stage.code("a") is Code.NOT_READY
        gate.open()

    played(play)


def test_who_describes_the_model_sees_how_many_wait():
    async def play(stage):
        gate = await stage.loading()
        for name in "ab":
            stage.ask(name)
        part = await stage.server.execute(DescribeAll("new"))
        assert [one.queued for one in part.answer.models] == [2]
        gate.open()
        await stage.answered(*"ab")

    played(play)


def test_the_model_of_a_request_that_names_none():
    async def scene():
        stage = PatientServer(spec("only", stamp="5"))
        gate = stage.gate("open", "5")
        async with stage.server:
            start = asyncio.ensure_future(stage.start())
            await gate.reached()
            stage.ask("a", "")
            assert not stage.order
            gate.open()
            await start
            await stage.answered("a")
            assert stage.code("a") is None

    asyncio.run(scene())
