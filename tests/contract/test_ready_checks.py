"""Models with `is_ready`, in real workers: asked when somebody asks, beside their batches, and once for all who ask."""

import asyncio
import signal

import pytest
from tests.harness.python_models import ask, out, place, scene

from trivium.core.models import readiness
from trivium.types.operations import Ready

HOLD = "        while os.path.exists({held!r}):\n            time.sleep(0.002)\n"
EXECUTE = "    def execute(self, requests):\n        return [answer(OUT=of(r, 'IN') * 2) for r in requests]\n"


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A machine that stands still for a while makes no model unready."""
    monkeypatch.setattr(readiness, "CHECK_SECONDS", 60.0)


def model(root, says, name="m", config="", execute=EXECUTE):
    """Its `is_ready` writes a line to the file `asked` and goes on as `says`."""
    note = f"        open({str(root / 'asked')!r}, 'a').write('x')\n"
    place(root / "models", name, execute + "    def is_ready(self):\n" + note + says, config)
    return root / "models"


def asked(root):
    """How often, of all instances together."""
    file = root / "asked"
    return len(file.read_text()) if file.exists() else 0


async def ready(server, name="m"):
    answer = (await server.execute(Ready(name))).answer
    return answer.ready, answer.reason


async def until(true):
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.005)


def test_it_follows_what_the_model_says(tmp_path):
    switch = tmp_path / "off"

    async def play(server):
        assert await ready(server) == (True, "")
        switch.touch()
        assert await ready(server) == (False, "Model 'm_0_0' is not ready (user-defined check failed).")
        part = await server.execute(ask("m", 21))  # it serves all the same
        assert out(part) == 42
        switch.unlink()
        assert await ready(server) == (True, "")
        assert asked(tmp_path) == 3
        assert (await server.execute(Ready())).answer.ready
        assert asked(tmp_path) == 3, "the server's own readiness asks no model"

    scene(play, model(tmp_path, f"        return not os.path.exists({str(switch)!r})\n"))


def test_every_instance_is_asked_and_one_no_is_enough(tmp_path):
    chosen = "        return not self.name.endswith('_1')\n"
    name = "    def initialize(self, args):\n        self.name = args['model_instance_name']\n"

    async def play(server):
        assert await ready(server) == (False, "Model 'm_0_1' is not ready (user-defined check failed).")
        await until(lambda: asked(tmp_path) == 2)

    two = "instance_group { kind: KIND_CPU count: 2 }"
    scene(play, model(tmp_path, chosen, config=two, execute=name + EXECUTE))


def test_a_model_that_computes_is_asked_all_the_same(tmp_path):
    held = tmp_path / "held"
    busy = "    def execute(self, requests):\n" + HOLD.format(held=str(held)) + EXECUTE.partition("\n")[2]

    async def play(server):
        held.touch()
        running = asyncio.ensure_future(server.execute(ask("m", 1)))
        await asyncio.sleep(0.05)
        assert await ready(server) == (True, "")
        held.unlink()
        assert out(await running) == 2

    scene(play, model(tmp_path, "        return True\n", execute=busy))


def test_a_slow_answer_holds_up_no_batch_and_serves_all_who_asked(tmp_path):
    held = tmp_path / "held"

    async def play(server):
        held.touch()
        many = [asyncio.ensure_future(ready(server)) for _ in range(20)]
        await until(lambda: asked(tmp_path) == 1)
        assert out(await server.execute(ask("m", 4))) == 8
        assert not any(one.done() for one in many)
        held.unlink()
        assert await asyncio.gather(*many) == [(True, "")] * 20
        assert asked(tmp_path) == 1
        assert await ready(server) == (True, "")
        assert asked(tmp_path) == 2

    scene(play, model(tmp_path, HOLD.format(held=str(held)) + "        return True\n"))


def test_one_that_never_says_it_is_not_ready_and_goes_on_serving(tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "CHECK_SECONDS", 0.1)
    held = tmp_path / "held"

    async def play(server):
        held.touch()
        for _ in range(2):
            said, why = await ready(server)
            assert not said
            assert "did not say within 0.1 s whether it is ready" in why
        await until(lambda: asked(tmp_path) == 1)
        assert out(await server.execute(ask("m", 4))) == 8
        held.unlink()
        monkeypatch.setattr(readiness, "CHECK_SECONDS", 60.0)
        assert await ready(server) == (True, "")

    scene(play, model(tmp_path, HOLD.format(held=str(held)) + "        return True\n"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_worker_that_dies_while_it_is_asked(tmp_path, number):
    once = tmp_path / "once"
    dies = f"        if not os.path.exists({str(once)!r}):\n            open({str(once)!r}, 'w').close()\n"
    dies += (
        f"            os.kill(os.getpid(), {int(number)})\n            time.sleep(60)\n        return True\n"
    )

    async def play(server):
        said, why = await ready(server)
        assert not said
        assert number.name in why
        assert out(await server.execute(ask("m", 4))) == 8  # by its successor
        assert await ready(server) == (True, "")

    scene(play, model(tmp_path, dies))


def test_a_server_that_ends_leaves_nobody_waiting(tmp_path):
    left = []

    async def play(server):
        left.append(asyncio.ensure_future(ready(server)))
        await until(lambda: asked(tmp_path) == 1)
        await server.close(1.0)
        said, _ = await left[0]
        assert not said

    scene(play, model(tmp_path, "        time.sleep(60)\n        return True\n"))


def test_a_model_may_ask_for_another(tmp_path):
    """`pb_utils.is_model_ready` asks it, too."""
    switch = tmp_path / "off"
    root = model(tmp_path, f"        return not os.path.exists({str(switch)!r})\n")
    asks = (
        "    def execute(self, requests):\n"
        "        said = np.array([[pb_utils.is_model_ready('m')]], np.int32)\n"
        "        return [answer(OUT=said) for r in requests]\n"
    )
    place(root, "asks", asks, "")

    async def play(server):
        assert out(await server.execute(ask("asks", 0))) == 1
        switch.touch()
        assert out(await server.execute(ask("asks", 0))) == 0

    scene(play, root)
