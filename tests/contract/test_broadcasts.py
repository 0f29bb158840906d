"""The contract of `Broadcast`: every instance makes the call, each later one before it serves, or none keeps it."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from trivium.catalogue import serving
from trivium.core.server import Server
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Broadcast, Infer, Remembered
from trivium.types.payload import Raw, RawPart

HANDLER = """
import json, os, time
from djl_python import Output
known, calls = {}, 0

def handle(inputs):
    global calls
    if inputs.is_empty():
        return None
    calls += 1
    body = inputs.get_as_string()
    if body == "sleep":
        time.sleep(0.5)
    time.sleep(0.05)
    return Output().add(json.dumps({"pid": os.getpid(), "known": known, "calls": calls}))

def register_adapter(inputs):
    name, src = inputs.get_property("name"), inputs.get_property("src")
    if src == "once":
        os.close(os.open("once", os.O_CREAT | os.O_EXCL))
    if src == "die":
        os._exit(3)
    if src == "refuse":
        return Output(code=507, message="no room")
    if src == "never":
        raise ValueError("no such weights")
    if src == "later" and os.path.exists("broken"):
        raise ValueError("the weights are gone")
    content = zip(inputs.content.get_keys(), inputs.content.get_values())
    known[name] = [src, {key: value.decode() for key, value in content if key != "data"}]
    return Output(message="Adapter %s registered" % name)

def update_adapter(inputs):
    if inputs.get_property("src") == "never":
        raise ValueError("no such weights")
    return register_adapter(inputs)

def unregister_adapter(inputs):
    del known[inputs.get_property("name")]
    return Output(message="gone")

def secret(inputs):
    return Output(message="called")
"""


TWO = ("minWorkers=2", "maxWorkers=2")


def change(how: Remembered, name: str, src: str = "", **arguments: str) -> Broadcast:
    functions = {
        Remembered.ADDED: ("register_adapter", "unregister_adapter"),
        Remembered.REPLACED: ("update_adapter", "update_adapter"),
        Remembered.FORGOTTEN: ("unregister_adapter", "register_adapter"),
    }
    function, undo = functions[how]
    payload = Raw((), {"name": name} | ({"src": src} if src else {}), tuple(arguments.items()))
    return Broadcast("m", function, payload, topic=name, remembered=how, later="register_adapter", undo=undo)


def add(name: str, src: str = "s", **arguments: str) -> Broadcast:
    return change(Remembered.ADDED, name, src, **arguments)


class Stage:
    """A server with two instances of the handler."""

    def __init__(self, server: Server, root: Path) -> None:
        self.server, self.root = server, root

    async def do(self, broadcast: Broadcast) -> str:
        answer = (await self.server.execute(broadcast)).payload
        assert isinstance(answer, Raw)
        return answer.reason

    async def refused(self, broadcast: Broadcast) -> ServeError:
        with pytest.raises(ServeError) as caught:
            await self.server.execute(broadcast)
        return caught.value

    async def ask(self, body: bytes = b"", adapter: str = "") -> dict[str, object]:
        infer = Infer("m", Raw((RawPart(body),)), adapter=adapter)
        payload = (await self.server.execute(infer)).payload
        assert isinstance(payload, Raw)
        found: dict[str, object] = json.loads(bytes(payload.parts[0].data))
        return found

    async def known(self) -> dict[int, object]:
        """What each open instance knows, by its process."""
        found: dict[int, object] = {}
        while set(found) != self.processes():
            for answer in await asyncio.gather(*(self.ask() for _ in range(2 * len(self.processes())))):
                found[answer["pid"]] = answer["known"]
            found = {pid: known for pid, known in found.items() if pid in self.processes()}
        return found

    def processes(self) -> set[int]:
        return {one.process for one in self.server.describe("m").instances}

    def topics(self) -> list[str]:
        return [call.topic for call in self.server.describe("m").standing]

    async def instances(self, count: int, without: int = 0) -> None:
        async with asyncio.timeout(60):
            while len(self.processes()) != count or without in self.processes():
                await asyncio.sleep(0.02)


def scene(root: Path, play: Callable[[Stage], Awaitable[None]], *lines: str) -> None:
    model = root / "m"
    model.mkdir()
    (model / "model.py").write_text(HANDLER)
    settings = ("engine=Python", "option.enable_lora=true", *(lines or TWO))
    (model / "serving.properties").write_text("\n".join(settings))

    async def run() -> None:
        async with serving(model) as server:
            await play(Stage(server, model))

    asyncio.run(run())


def test_every_instance_makes_the_call_and_each_later_one_before_it_serves(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        assert await stage.do(add("a", pin="true")) == "Adapter a registered"
        expected = {"a": ["s", {"pin": "true"}]}
        known = await stage.known()
        assert list(known.values()) == [expected, expected]
        victim = next(iter(known))
        os.kill(victim, signal.SIGKILL)
        await stage.instances(2, without=victim)
        assert list((await stage.known()).values()) == [expected, expected]
        await stage.server.scale("m", 3)
        assert list((await stage.known()).values()) == [expected] * 3
        assert stage.topics() == ["a"]

    scene(tmp_path, play)


@pytest.mark.parametrize(
    ("src", "code", "words"),
    [
        ("once", Code.MODEL_FAILED, "exists"),
        ("never", Code.MODEL_FAILED, "no such weights"),
        ("refuse", Code.MODEL_FAILED, "no room"),
    ],
)
def test_one_that_fails_leaves_nothing(tmp_path: Path, src: str, code: Code, words: str) -> None:
    async def play(stage: Stage) -> None:
        await stage.do(add("first"))
        error = await stage.refused(add("a", src))
        assert (error.code, words in error.message) == (code, True), error.message
        assert list((await stage.known()).values()) == [{"first": ["s", {}]}] * 2
        assert stage.topics() == ["first"]

    scene(tmp_path, play)


def test_an_instance_that_dies_of_it_fails_it_and_those_that_follow_know_nothing(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        before = stage.processes()
        assert (await stage.refused(add("a", "die"))).code is Code.WORKER_DIED
        async with asyncio.timeout(60):
            while len(stage.processes()) != 2 or stage.processes() & before:
                await asyncio.sleep(0.02)
        assert list((await stage.known()).values()) == [{}, {}]

    scene(tmp_path, play, *TWO, "retry_threshold=10")


def test_what_is_remembered_is_replaced_added_to_and_forgotten(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.do(add("a", "s", pin="true", rank="8"))
        await stage.do(change(Remembered.REPLACED, "a", "t", rank="16"))
        expected = {"a": ["t", {"pin": "true", "rank": "16"}]}
        assert list((await stage.known()).values()) == [expected] * 2
        assert (await stage.refused(change(Remembered.REPLACED, "a", "never"))).code is Code.MODEL_FAILED
        await stage.server.scale("m", 3)
        assert list((await stage.known()).values()) == [expected] * 3
        assert await stage.do(change(Remembered.FORGOTTEN, "a")) == "gone"
        await stage.server.scale("m", 4)
        assert list((await stage.known()).values()) == [{}] * 4

    scene(tmp_path, play)


def test_topics_are_there_once_and_others_are_unknown(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.do(add("a"))
        assert (await stage.refused(add("a"))).code is Code.CONFLICT
        for how in (Remembered.REPLACED, Remembered.FORGOTTEN):
            assert (await stage.refused(change(how, "b"))).code is Code.NOT_FOUND
        for function in ("secret", "handle", "none"):
            assert (await stage.refused(Broadcast("m", function, Raw(())))).code is Code.INVALID
        calls = (await stage.ask())["calls"]
        with pytest.raises(ServeError, match="The adapter b has not been registered") as caught:
            await stage.ask(adapter="b")
        assert caught.value.status == 424
        assert (await stage.ask(adapter="a"))["calls"] == calls + 1  # the other one reached no handler

    scene(tmp_path, play, "minWorkers=1", "maxWorkers=1")


def test_a_call_waits_behind_what_an_instance_has_in_hand(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        running = [asyncio.ensure_future(stage.ask(b"sleep")) for _ in range(2)]
        await asyncio.sleep(0.1)
        await stage.do(add("a"))
        assert [(await each)["known"] for each in running] == [{}, {}]
        assert list((await stage.known()).values()) == [{"a": ["s", {}]}] * 2

    scene(tmp_path, play)


def test_an_instance_that_cannot_make_a_standing_call_does_not_serve(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.do(add("a", "later"))
        (stage.root / "broken").touch()
        with pytest.raises(ServeError, match="register_adapter of 'a' failed: the weights are gone"):
            await stage.server.scale("m", 3)
        assert len(stage.processes()) == 2

    scene(tmp_path, play)
