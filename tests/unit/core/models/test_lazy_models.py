"""Models that a first request registers: those behind it wait, and everybody is answered once."""

import asyncio

from tests.harness.fake_models import spec
from tests.unit.core.test_management import NEW, ManagedServer

from trivium.core.models import control
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer, InferLazily
from trivium.types.payload import Raw, RawPart
from trivium.types.sources import ModelSource

FAULT = ServeError(Code.LOAD_FAILED, "no memory")


class LazyHarness(ManagedServer):
    """A server that is asked for models which it does not have."""

    def __init__(self):
        super().__init__()
        self.parts = {}

    def ask(self, name, model="new"):
        asked = InferLazily(Infer(model, Raw((RawPart(b"x"),))), ModelSource(NEW, model))
        answers = self.parts[name] = []
        return self.server.submit(asked, answers.append)

    async def until_answered(self):
        while not all(parts and parts[-1].final for parts in self.parts.values()):
            await asyncio.sleep(0)

    def error(self, name):
        (part,) = self.parts[name]
        return part.error


def played(play):
    async def scene():
        stage = LazyHarness()
        async with stage.server:
            await stage.start()
            await play(stage)

    asyncio.run(scene())


def test_a_model_is_registered_once_for_all_that_ask_meanwhile():
    async def play(stage):
        stage.bring(spec("new", "1"))
        tickets = [stage.ask(name) for name in "abc"]
        tickets[1].cancel(ServeError(Code.CANCELLED, "gone"))
        await stage.until_answered()
        assert stage.error("b").code is Code.CANCELLED
        for name in "ac":  # its model takes no bodies: it was asked
            assert stage.error(name).code is Code.UNSUPPORTED_MEDIA
        assert ("new", "1") in stage.versions()
        stage.ask("d")
        await stage.until_answered()
        assert stage.error("d").code is Code.UNSUPPORTED_MEDIA

    played(play)


def test_all_are_told_of_one_that_does_not_load_and_nothing_is_left():
    async def play(stage):
        stage.bring(spec("new", "1"))
        stage.engine.faults["1"] = FAULT
        for name in "ab":
            stage.ask(name)
        await stage.until_answered()
        assert [stage.error(name).message for name in "ab"] == ["no memory"] * 2
        assert ("new", "1") not in stage.versions()

    played(play)


def test_requests_and_models_are_bounded(monkeypatch):
    async def play(stage):
        stage.bring(spec("new", "1"))
        stage.ask("a")
        stage.ask("other", "other")
        assert "Predictions have registered 1 models" in stage.error("other").message
        monkeypatch.setattr(control, "MOST_WAITING_BYTES", 600)
        stage.ask("b")
        assert stage.error("b").code is Code.QUEUE_FULL
        await stage.until_answered()
        await stage.server.unregister("new")
        monkeypatch.setattr(control, "MOST_WAITING_BYTES", 6000)
        stage.ask("c", "other")
        await stage.until_answered()
        assert stage.error("c").code is not Code.QUEUE_FULL

    monkeypatch.setattr(control, "MOST_LAZY", 1)
    played(play)
