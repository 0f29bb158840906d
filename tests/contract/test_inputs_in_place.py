"""A Triton model gets large inputs where they were received: it may write into them and keep them, and nobody else has
them meanwhile, whatever it keeps, and for however long.
"""

import asyncio
import os
import signal

import numpy as np
import pytest
from tests.harness.python_models import place, scene

from trivium.core.workers.arena import CAPACITY
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensor, Tensors

WIDTH = 10_000
ENDS = 'input { name: "IN" data_type: TYPE_FP32 dims: 10000 } output { name: "OUT" data_type: TYPE_FP32 dims: -1 }'
MODEL = """
    def initialize(self, args):
        self.kept = []
    def execute(self, requests):
        return [answer(OUT=np.array([self.one(r)], "<f4").reshape(1, -1)) for r in requests]
    def one(self, r):
        what = r.request_id()
        if what == "keep request":
            self.kept.append(lambda: of(r, "IN"))
            return 0
        x = of(r, "IN")
        if what == "keep":
            self.kept.append(lambda: x)
        elif what == "keep a slice":
            part = x[:, 7000:]
            self.kept.append(lambda: part)
        elif what == "keep in a cycle":
            ring = [x]
            ring.append(ring)
        elif what == "fork":
            if not os.fork():
                time.sleep(0.5)
                with open(os.path.join(os.path.dirname(__file__), "child"), "w") as said:
                    said.write(str(x.mean()))
                os._exit(0)
        elif what == "collect":
            import gc
            gc.collect()
        elif what == "write":
            x += 1
        elif what == "sums":
            return [float(kept().mean()) for kept in self.kept]
        elif what == "drop":
            self.kept.clear()
        elif what == "die":
            os._exit(3)
        elif what == "raise":
            raise ValueError("as told")
        elif what == "echo":
            return x
        elif what == "how":
            return [x.flags.owndata, x.flags.carray, x.base.__class__ is bytearray]
        return float(x.mean())
"""
DECOUPLED = """
    def execute(self, requests):
        import threading
        self.said = getattr(self, "said", [])
        for r in requests:
            if r.request_id() == "said":
                OUT = pb_utils.Tensor("OUT", np.array([self.said], "<f4"))
                r.get_response_sender().send(pb_utils.InferenceResponse([OUT]), 1)
            else:
                threading.Thread(target=self.later, args=(r, r.get_response_sender())).start()
    def later(self, r, sender):
        sender.send(answer(OUT=of(r, "IN")[:, :1]), 1)
        for _ in range(20):
            time.sleep(0.01)
            r.inputs()
        self.said.append(float(of(r, "IN").mean()))
"""


class Client:
    """Asks a model whose workers share memory with the server."""

    def __init__(self, server, model="m"):
        self._server, self._model = server, model

    def lent(self):
        """The blocks of that memory that are lent."""
        return self._server.debug_state(self._model).arena_lent

    async def ask(self, value, what="", received=True):
        """What is answered to a request of that value everywhere, received in the arena or copied there."""
        array, lease = np.full((1, WIDTH), value, "<f4"), None
        if received:
            lease = self._server.lend(self._model, "", array.nbytes + 3, 3)
            lease.view[3:] = array.data.cast("B")
            array = np.frombuffer(lease.view[3:], "<f4").reshape(1, -1)
        payload = Tensors((Tensor("IN", DataType.FP32, array.shape, array),), lease)
        try:
            part = await self._server.execute(Infer(model=self._model, payload=payload, id=what))
            return part.payload["OUT"].ravel().tolist()
        finally:
            if lease is not None:
                lease.release()

    async def many(self, count=40):
        """Others, whose data would be in the place of what was given back."""
        for i in range(count):
            assert await self.ask(1000 + i, received=i % 2 == 0) == [1000 + i]


def play_on(tmp_path, play, body=MODEL, config=""):
    place(tmp_path, "m", body, config, ENDS)
    scene(play, tmp_path)


@pytest.mark.parametrize("received", [True, False])
def test_an_input_is_the_memory_that_it_was_received_in(tmp_path, received):
    async def play(server):
        client = Client(server)
        assert await client.ask(5, "how", received) == [0, 1, 0]
        assert await client.ask(5, "write", received) == [6]
        assert await client.ask(5, "echo", received) == [5] * WIDTH
        await client.many()
        assert client.lent() == 0

    play_on(tmp_path, play)


KEEPING = ["keep", "keep a slice", "keep request"]


def test_what_is_kept_stays_as_it_was_until_it_is_dropped(tmp_path):
    async def play(server):
        client = Client(server)
        for i in range(12):
            await client.ask(i, KEEPING[i % 3], received=i % 4 < 2)
            await client.many(3)
        assert client.lent() == 12 * 2**16
        await client.many()
        assert await client.ask(0, "sums") == list(range(12))
        await client.ask(0, "drop")
        await client.many(1)
        assert client.lent() == 0

    play_on(tmp_path, play)


def test_what_is_collected_late_is_given_back_then(tmp_path):
    async def play(server):
        client = Client(server)
        for i in range(10):
            await client.ask(i, "keep in a cycle")
        assert client.lent() == 10 * 2**16
        await client.ask(0, "collect")
        await client.many(1)
        assert client.lent() == 0

    play_on(tmp_path, play)


def test_all_the_arena_may_be_kept_and_requests_go_on(tmp_path):
    """Then their data comes by the socket, as copies."""

    async def play(server):
        client = Client(server)
        room = (server.lend("m", "", CAPACITY // 2), server.lend("m", "", CAPACITY // 4))
        rest = [server.lend("m", "", 2**20) for _ in range(63)]
        assert server.buffers.lent == 0, "all of it is the arena's"
        for i in range(30):
            await client.ask(i, "keep")
        plain = server.lend("m", "", 2**16)
        assert server.buffers.lent == 1, "the arena has no room"
        plain.release()
        await client.many()
        assert await client.ask(0, "sums") == list(range(30))
        for lease in (*room, *rest):
            lease.release()

    play_on(tmp_path, play)


def test_a_workers_death_gives_back_what_it_had_kept(tmp_path):
    async def play(server):
        client = Client(server)
        for how in ("die", "kill"):
            for i in range(6):
                await client.ask(i, KEEPING[i % 3])
            assert client.lent() == 6 * 2**16
            if how == "die":
                with pytest.raises(ServeError) as caught:
                    await client.ask(0, "die")
                assert caught.value.code is Code.WORKER_DIED
            else:
                (state,) = server.debug_state("m").instances.values()
                os.kill(state.instance.pid, signal.SIGKILL)
                await state.instance.gone
            await client.many(4)
            assert client.lent() == 0

    play_on(tmp_path, play)


def test_a_forked_process_goes_on_with_what_it_had(tmp_path):
    async def play(server):
        client = Client(server)
        await client.ask(5, "fork")
        said = tmp_path / "m" / "1" / "child"
        while not (said.exists() and said.read_text()):
            await client.many(4)
        assert said.read_text() == "5.0"
        assert client.lent() == 2**16

    play_on(tmp_path, play)


def test_a_handler_that_raises_keeps_nothing(tmp_path):
    async def play(server):
        client = Client(server)
        for _ in range(5):
            with pytest.raises(ServeError, match="as told"):
                await client.ask(1, "raise")
        await client.many(1)
        assert client.lent() == 0

    play_on(tmp_path, play)


def test_a_thread_reads_on_after_its_last_response(tmp_path):
    async def play(server):
        client = Client(server)
        assert await asyncio.gather(*(client.ask(i) for i in range(4))) == [[i] for i in range(4)]
        for i in range(30):
            await client.ask(1000 + i)
        async with asyncio.timeout(60):
            while len(said := await client.ask(0, "said")) < 34:
                await asyncio.sleep(0.05)
            assert sorted(said) == sorted([*range(4), *range(1000, 1030)])
            while client.lent() > 2**16:  # the last thread has said what it read, and drops it
                await client.ask(0, "said")

    play_on(tmp_path, play, DECOUPLED, "model_transaction_policy { decoupled: true }")


AGAIN = """
    def execute(self, requests):
        return [self.one(r) for r in requests]
    def one(self, r):
        x, self.runs = of(r, "IN"), getattr(self, "runs", 0) + 1
        if not r.correlation_id():
            return answer(OUT=x[:, :1])  # a row without a request
        assert (x == 5).all(), x
        x += 1
        if self.runs < 4:
            r.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return None
        return answer(OUT=x[:, :1])
"""


def test_a_request_that_is_run_again_comes_as_it_came_first(tmp_path):
    async def play(server):
        assert await Client(server).ask(5) == [6]

    play_on(tmp_path, play, AGAIN, "sequence_batching { iterative_sequence: true }")
