"""Long bodies for a model with tensors: read elsewhere, judged as any other, and let go of when their client leaves."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.harness.fake_models import ServerHarness, spec
from tests.harness.virtual_models import make_spec

from trivium.codecs import conversion
from trivium.core.instances.mailbox import Mailbox
from trivium.core.models.served_model import PLAIN, ServedModel
from trivium.load.simulate import VirtualClock, VirtualInstance
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Instance, Port
from trivium.types.operations import Infer, ResponsePart
from trivium.types.payload import Raw, RawPart, Tensors
from trivium.types.running import Placement
from trivium.types.spec import Isolation


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "SLOW_BYTES", 10)


class Slow(ServerHarness):
    """A server with the model m, whose readings wait until they are let go."""

    def __init__(self) -> None:
        super().__init__(spec())
        self.waiting: list[Callable[[], None]] = []
        self.parts: list[ResponsePart] = []

    def ask(self, text: bytes, **more: float):
        infer = Infer("m", Raw((RawPart(text, "application/json"),)), **more)
        return self.server.submit(infer, self.parts.append)


def played(play) -> None:
    async def scene() -> None:
        stage = Slow()
        async with stage.server:
            await stage.start()
            await play(stage)

    asyncio.run(scene())


GOOD, BAD = b'{"x": [[1, 2]]}   ', b'{"x": [[1, "a"]]}   '


def test_a_long_body_is_answered_and_a_bad_one_refused() -> None:
    async def play(stage: Slow) -> None:
        stage.ask(b'{"x": [1, 2]}   ')
        stage.ask(BAD)
        assert stage.parts == []
        await stage.until(lambda: len(stage.parts) == 2)
        answers = [part for part in stage.parts if isinstance(part.payload, Tensors)]
        errors = [part.error.code for part in stage.parts if part.error is not None]
        assert (len(answers), errors) == (1, [Code.INVALID])

    played(play)


def test_who_leaves_while_it_is_read_is_gone_and_its_model_can_be_unloaded() -> None:
    async def play(stage: Slow) -> None:
        ticket = stage.ask(GOOD)
        ticket.cancel(ServeError(Code.CANCELLED, "gone"))
        assert [part.error.code for part in stage.parts if part.error] == [Code.CANCELLED]
        await stage.server.unregister("m")
        await stage.until(lambda: not stage.server.list().versions)
        assert len(stage.parts) == 1

    played(play)


def test_a_deadline_counts_while_it_is_read() -> None:
    async def play(stage: Slow) -> None:
        stage.ask(b'{"x": [1, 2]}   ', deadline=60.0)
        await stage.until(lambda: len(stage.parts) == 1)
        assert stage.parts[0].error is None

    played(play)


def test_who_is_still_being_read_when_its_model_is_closed_is_told_once() -> None:
    async def scene() -> None:
        read: list[Callable[[Infer | ServeError], None]] = []
        parts: list[ResponsePart] = []
        clock = VirtualClock()
        context = replace(PLAIN, offload=lambda work, done: read.append(done))

        async def launch(placement: Placement, port: Port) -> Instance:
            return VirtualInstance(clock, port, lambda rows: 1.0)

        model = ServedModel(make_spec(), Isolation.THREAD, launch, Mailbox(clock.call_soon), clock, context)
        await model.open()
        model.submit(1, Infer("m", Raw((RawPart(GOOD, "application/json"),))), parts.append)
        assert (len(read), parts) == (1, [])
        await model.close(ServeError(Code.DRAINING, "it went down"))
        assert [part.error and part.error.code for part in parts] == [Code.DRAINING]
        read[0](ServeError(Code.INVALID, "and it was none"))
        assert len(parts) == 1
        assert model.debug_state().active == 0

    asyncio.run(scene())
