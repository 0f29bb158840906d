"""Instances that are several processes: they start together, answer once, and one end ends and restarts all."""

import asyncio
import os
import signal

import pytest

from trivium.catalogue import serving
from trivium.types.errors import Code, ServeError

HANDLER = """
import os, socket, time
from djl_python import Output
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PEERS = []

def meet():
    # Rank 0 listens where all of them were told to meet; each of the others keeps a connection to it.
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if RANK == 0:
        door = socket.create_server(place)
        PEERS.extend(door.accept()[0] for _ in range(SIZE - 1))
        return
    while True:
        try:
            PEERS.append(socket.create_connection(place))
            return
        except ConnectionRefusedError:
            time.sleep(0.01)

def handle(inputs):
    if inputs.is_empty():
        if os.environ.get("FAILS") == str(RANK):
            raise RuntimeError("rank %d does not start" % RANK)
        meet()
        return None
    text = inputs.get_as_string()
    if inputs.get_properties().get("tensor_parallel_degree") != str(SIZE):
        return Output().error("no degree")
    if text == "pids":
        told = [str(os.getpid())]
        for peer in PEERS if RANK == 0 else ():
            told.append(peer.recv(100).decode())
        if RANK:
            PEERS[0].sendall(told[0].encode())
        return Output().add(",".join(told))
    if text == "alone":
        return Output().add("%d of %d" % (RANK, SIZE))
    number = int(text) + RANK
    if RANK:
        PEERS[0].sendall(number.to_bytes(8, "big"))
        return Output().add("not the first")
    return Output().add(str(number + sum(int.from_bytes(peer.recv(8), "big") for peer in PEERS)))
"""


@pytest.fixture
def folder(tmp_path):
    def make(*lines, ranks=3):
        place = tmp_path / "m"
        place.mkdir()
        (place / "model.py").write_text(HANDLER)
        settings = ("engine=MPI", f"option.tensor_parallel_degree={ranks}", "maxWorkers=1", *lines)
        (place / "serving.properties").write_text("\n".join(settings) + "\n")
        return place

    return make


ACTIVE = "option.use_passive_workers=false"


async def ask(server, text):
    return bytes((await server.run("m", text.encode())).parts[0].data).decode()


async def ask_until_served(server, text):
    """Whoever asks while an end is noticed is told of it."""
    codes = set()
    while codes <= {Code.WORKER_DIED, Code.NOT_READY}:
        try:
            return await ask(server, text)
        except ServeError as error:
            codes.add(error.code)
    raise AssertionError(codes)


def played(folder, play):
    async def scene():
        async with serving(folder) as server:
            await play(server)

    asyncio.run(scene())


def test_all_get_a_request_and_the_first_answers(folder):
    async def play(server):
        answers = await asyncio.gather(*(ask(server, str(n)) for n in range(20)))
        assert answers == [str(3 * n + 3) for n in range(20)]
        assert server.statistics("m").executions == 20

    played(folder(ACTIVE), play)


def test_passive_ranks_get_none(folder):
    async def play(server):
        assert [await ask(server, "alone") for _ in range(3)] == ["0 of 3"] * 3

    played(folder(), play)


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_the_end_of_one_ends_and_restarts_all(folder, victim):
    async def play(server):
        pids = [int(pid) for pid in (await ask(server, "pids")).split(",")]
        assert len(set(pids)) == 3
        os.kill(pids[victim], signal.SIGKILL)
        while any(map(is_there, pids)):
            await asyncio.sleep(0.01)
        again = [int(pid) for pid in (await ask_until_served(server, "pids")).split(",")]
        assert not set(again) & set(pids)
        assert await ask(server, "1") == "6"

    played(folder(ACTIVE), play)


def test_the_silence_of_one_ends_and_restarts_all(folder):
    async def play(server):
        pids = [int(pid) for pid in (await ask(server, "pids")).split(",")]
        os.kill(pids[1], signal.SIGSTOP)
        with pytest.raises(ServeError) as caught:
            await ask(server, "1")
        assert caught.value.code is Code.WORKER_DIED
        while any(map(is_there, pids)):
            await asyncio.sleep(0.01)
        assert await ask(server, "1") == "6"

    played(folder(ACTIVE, "option.predict_timeout=1"), play)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_does_not_start_fails_the_load(folder, rank):
    async def play(server):
        raise AssertionError("it serves")

    with pytest.raises(ServeError, match=f"rank {rank} does not start") as caught:
        played(folder(f"option.env=FAILS={rank}"), play)
    assert caught.value.code is Code.LOAD_FAILED


def test_nothing_of_a_gang_is_left(folder):
    pids = []

    async def play(server):
        pids.extend(int(pid) for pid in (await ask(server, "pids")).split(","))

    played(folder(ACTIVE), play)
    assert not any(map(is_there, pids))
