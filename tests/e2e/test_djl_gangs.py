"""Several processes as one worker: two gloo ranks that all-reduce, and what becomes of them when either is killed."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from tests.harness.djl_serving import DjlServing, djl_serving
from tests.harness.server_process import until

SEED = 20261125
GLOO = """
import os
import torch
import torch.distributed as dist
from djl_python import Output

def handle(inputs):
    if inputs.is_empty():
        dist.init_process_group("gloo")
        return None
    number = torch.tensor([float(inputs.get_as_string()), float(os.getpid())])
    mine = number.clone()
    every = [torch.zeros(2) for _ in range(dist.get_world_size())]
    dist.all_gather(every, mine)
    dist.all_reduce(number)
    return Output().add_as_json({"sum": number[0].item(), "pids": [int(each[1]) for each in every]})
"""
SOCKETS = """
import os, socket, time
from djl_python import Output
RANK, PEERS = int(os.environ["OMPI_COMM_WORLD_RANK"]), []

def meet():
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if RANK == 0:
        PEERS.append(socket.create_server(place).accept()[0])
        return
    while not PEERS:
        try:
            PEERS.append(socket.create_connection(place))
        except ConnectionRefusedError:
            time.sleep(0.01)

def handle(inputs):
    if inputs.is_empty():
        return meet()
    mine = inputs.get_as_string() + " " + str(os.getpid())
    PEERS[0].sendall(mine.ljust(64).encode())
    other = PEERS[0].recv(64, socket.MSG_WAITALL).decode().split()
    if len(other) != 2:
        raise ConnectionError("the other rank is gone")
    number, pid = mine.split()
    pids = [int(pid), int(other[1])] if RANK == 0 else [int(other[1]), int(pid)]
    return Output().add_as_json({"sum": float(number) + float(other[0]), "pids": pids})
"""
LINES = (
    "engine=MPI",
    "option.tensor_parallel_degree=2",
    "option.use_passive_workers=false",
    "maxWorkers=1",
    "retry_threshold=1000",
)


def folder(root: Path, code: str) -> Path:
    place = root / "gang"
    place.mkdir(parents=True)
    (place / "model.py").write_text(code)
    (place / "serving.properties").write_text("\n".join(LINES) + "\n")
    return place


def ask(server: DjlServing, number: int) -> dict[str, object] | int:
    """The answer of both ranks, or the status of a refusal."""
    answer = server.infer("POST", "/predictions/gang", str(number).encode())
    if answer.status != 200:
        return answer.status
    document: dict[str, object] = answer.document
    return document


def served(server: DjlServing, number: int) -> dict[str, object]:
    """The answer, once the gang is there again: whoever asks before is told so."""
    while isinstance(found := ask(server, number), int):
        assert found in (503, 424), found  # the peer of the one that was killed may say what it saw
        time.sleep(0.05)
    return found


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone_by_now(pids: list[int]) -> None:
    until(lambda: not any(map(is_there, pids)), lambda: f"still there: {list(filter(is_there, pids))}")


def kill_in_turns(server: DjlServing, rounds: int) -> None:
    """Kill one rank, at random which; both go, two others come, and each request is answered once."""
    chance = random.Random(SEED)
    for number in range(rounds):
        before = served(server, number)
        assert before["sum"] == 2 * number
        pids = before["pids"]
        assert isinstance(pids, list)
        os.kill(chance.choice(pids), signal.SIGKILL)
        gone_by_now(pids)
        after = served(server, number + 1)
        assert after["sum"] == 2 * number + 2
        assert not set(pids) & set(after["pids"])  # type: ignore[call-overload]


def test_two_gloo_ranks_reduce_and_either_may_be_killed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with djl_serving(tmp_path / "log", "-m", folder(tmp_path, GLOO)) as server:
        kill_in_turns(server, 10)


@pytest.mark.soak
def test_fifty_kills_of_ranks_without_torch(tmp_path: Path) -> None:
    with djl_serving(tmp_path / "log", "-m", folder(tmp_path, SOCKETS)) as server:
        kill_in_turns(server, 50)
