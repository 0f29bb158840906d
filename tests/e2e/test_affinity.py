"""Where instances are that take turns with the loop, on the real system, while requests come and afterwards."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tests.fixtures import models
from tests.harness.handlers import triton
from tests.harness.raw_http import connect, echo_request, post, read_answer
from tests.harness.server_process import ServerProcess, serve_handlers, until

pytestmark = [
    pytest.mark.alone,  # how often runs come, and how long they take, decides
    pytest.mark.skipif(
        not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
        reason="there is nothing to share without a second processor",
    ),
]

EVERYWHERE = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()
ECHO = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        x = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", array)]) for array in x]
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    models.identity(folder, "thread", rows=4)
    models.identity(folder, "late", rows=4)
    triton(folder, "worker", ECHO)
    return folder


@contextmanager
def load(server: ServerProcess, model: str, clients: int = 2) -> Iterator[Callable[[], int]]:
    """So many that ask again and again; how often they have been answered."""
    over, answered = threading.Event(), [0] * clients

    def ask(number: int) -> None:
        with connect(server.port) as plug:
            while not over.is_set():
                plug.sendall(echo_request(model, [[1, 2, 3, 4]]))
                assert read_answer(plug).status == 200
                answered[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for client in threads:
        client.start()
    try:
        yield lambda: sum(answered)
    finally:
        over.set()
        for client in threads:
            client.join()


def places(server: ServerProcess) -> dict[int, tuple[frozenset[int], int]]:
    """Of every thread of the server and its workers: processors and policy. A worker of an unloaded model, or a thread,
    may end between being listed and being looked at; the server may not.
    """
    threads = [thread.id for thread in server.process.threads()]
    for worker in server.workers(recursive=True):
        with suppress(psutil.NoSuchProcess):
            threads += [thread.id for thread in worker.threads()]
    found = {}
    for thread in threads:
        with suppress(ProcessLookupError):
            found[thread] = frozenset(os.sched_getaffinity(thread)), os.sched_getscheduler(thread)
    assert server.process.pid in found, server.said()
    return found


def together(server: ServerProcess) -> list[int]:
    """Policies of the threads on one processor, the loop's first; none while all are everywhere."""
    there = places(server)
    one, policy = there.pop(server.process.pid)
    if one == EVERYWHERE:
        return []
    assert len(one) == 1
    return [policy, *sorted(policy for where, policy in there.values() if where == one)]


@pytest.mark.parametrize("model", ["thread", "worker"])
def test_brief_runs_share_the_loops_processor_while_they_come(root: Path, tmp_path: Path, model: str) -> None:
    with serve_handlers(tmp_path / "log", root) as server:
        assert together(server) == []
        with load(server, model) as answered:
            until(lambda: len(together(server)) == 2, lambda: f"{answered()} answers, {places(server)}")
            assert together(server) == [os.SCHED_OTHER, os.SCHED_BATCH]
            many = answered() + 500
            until(lambda: answered() > many, server.said)
        until(lambda: together(server) == [], lambda: str(places(server)))
        assert set(places(server).values()) == {(EVERYWHERE, os.SCHED_OTHER)}


def test_models_are_loaded_on_all_processors(root: Path, tmp_path: Path) -> None:
    """A thread or a process is born where whoever starts it is."""
    with serve_handlers(tmp_path / "log", root) as server, load(server, "thread") as answered:
        until(lambda: len(together(server)) == 2, lambda: str(places(server)))
        for model in ("late", "worker"):
            assert server.ask(post(f"/v2/repository/models/{model}/unload", b"{}")).status == 200
        before = set(places(server))
        for model in ("late", "worker"):
            assert server.ask(post(f"/v2/repository/models/{model}/load", b"{}")).status == 200
        fresh = [place for thread, place in places(server).items() if thread not in before]
        assert len(fresh) >= 2
        assert set(fresh) == {(EVERYWHERE, os.SCHED_OTHER)}
        many = answered() + 100
        until(lambda: answered() > many, server.said)


def test_it_can_be_switched_off(root: Path, tmp_path: Path) -> None:
    with (
        serve_handlers(tmp_path / "log", "--no-shared-processor", root) as server,
        load(server, "thread") as answered,
    ):
        for many in range(0, 3000, 300):
            until(lambda many=many: answered() > many, server.said)
            assert together(server) == []
