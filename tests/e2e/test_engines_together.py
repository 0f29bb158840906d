"""All engines in one server: loaded in any order, asked all at once, unloaded and loaded again, and nothing is left."""

import random
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from tests.harness.engine_files import PARAMETERS, ROWS, EngineFile, write_all
from tests.harness.memory import memory_of
from tests.harness.server_process import ServerProcess, serve, until

SENDERS = 4
SLOPE = 2**20
"""Bytes of memory that a cycle of loading may leave behind on the average."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[EngineFile]:
    pytest.importorskip("tensorflow.version")
    return write_all(tmp_path_factory.mktemp("models"))


def load(server: ServerProcess, file: EngineFile) -> None:
    asked = {"url": str(file.path), "model_name": file.name, "synchronous": "true"}
    answer = httpx.post(f"{server.url}/models", params=asked, timeout=120)
    assert answer.status_code == 200, answer.text


def unload(server: ServerProcess, file: EngineFile) -> None:
    httpx.delete(f"{server.url}/models/{file.name}", timeout=120).raise_for_status()


def ask(client: httpx.Client, server: ServerProcess, file: EngineFile, first: int, count: int) -> list[int]:
    """Return the digits that a model reads in pictures."""
    rows = file.rows(first, count)
    tensor = {"name": file.tensor, "datatype": "FP32", "shape": list(rows.shape), "data": rows.tolist()}
    answer = client.post(f"{server.url}/v2/models/{file.name}/infer", json={"inputs": [tensor]}, timeout=120)
    assert answer.status_code == 200, f"{file.engine}: {answer.text}"
    outputs = {one["name"]: np.reshape(one["data"], one["shape"]) for one in answer.json()["outputs"]}
    return file.found(outputs.get(file.digit, next(iter(outputs.values()))))


def named(server: ServerProcess, file: EngineFile) -> EngineFile:
    """Return the model with the name that its file has for its input, where that is not known beforehand."""
    if file.tensor:
        return file
    (told,) = httpx.get(f"{server.url}/v2/models/{file.name}").json()["inputs"]
    return EngineFile(file.engine, file.path, told["name"], file.scale, file.digit, file.is_scores)


@pytest.fixture
def server(tmp_path: Path, files: list[EngineFile]) -> Iterator[ServerProcess]:
    near = shutil.copy(files[0].path, tmp_path / "near.onnx")
    with serve(tmp_path / "log", near, *PARAMETERS) as served:
        yield served


def loaded(server: ServerProcess, files: Sequence[EngineFile], seed: int) -> list[EngineFile]:
    """Load all in an order of its own, and return them with what the first pictures are to each."""
    order = random.Random(seed).sample(list(files), len(files))
    for file in order:
        load(server, file)
    return [named(server, file) for file in order]


def asked_all(server: ServerProcess, files: Sequence[EngineFile], requests: int, seed: int) -> None:
    """Send so many requests, mixed, from several senders at once; each answer is what the model said at first."""
    with httpx.Client() as client:
        wanted = {file.engine: ask(client, server, file, 0, ROWS) for file in files}
    chance = random.Random(seed)
    plan = [
        (chance.choice(files), first, chance.randint(1, ROWS - first))
        for first in (chance.randrange(ROWS) for _ in range(requests))
    ]

    def send(share: Sequence[tuple[EngineFile, int, int]]) -> None:
        with httpx.Client() as client:
            for file, first, count in share:
                assert ask(client, server, file, first, count) == wanted[file.engine][first : first + count]

    with ThreadPoolExecutor(SENDERS) as threads:
        for done in [threads.submit(send, plan[at::SENDERS]) for at in range(SENDERS)]:
            done.result()


def cycle(server: ServerProcess, files: Sequence[EngineFile]) -> None:
    for file in files:
        unload(server, file)
    for file in files:
        load(server, file)


def played(
    server: ServerProcess, files: Sequence[EngineFile], requests: int, cycles: int, seed: int
) -> list[int]:
    """Play a whole scene and return the server's memory after each cycle."""
    here = loaded(server, files, seed)
    asked_all(server, here, requests, seed)
    cycle(server, here)
    workers, descriptors = len(server.workers()), server.footprint().descriptors
    memory = []
    for _ in range(cycles):
        cycle(server, here)
        memory.append(memory_of(server))
    asked_all(server, here, requests // 10, seed + 1)
    until(
        lambda: (
            len(server.workers()) <= workers and server.footprint().descriptors <= descriptors + 2 * SENDERS
        ),
        lambda: f"{len(server.workers())} workers and {server.footprint()}; were {workers} and {descriptors}",
    )
    return memory


def test_engines_do_not_hurt_one_another(server: ServerProcess, files: list[EngineFile]) -> None:
    played(server, files, 160, 2, 1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_engines_in_any_order_answer_and_leave_nothing(
    server: ServerProcess, files: list[EngineFile], seed: int
) -> None:
    memory = played(server, files, 5000, 50, seed)
    last = memory[-30:]
    slope = float(np.polyfit(range(len(last)), last, 1)[0])
    assert slope <= SLOPE, f"{slope / 2**20:.2f} MiB a cycle: {memory}"
