"""A server with `--reload` follows each save of a handler while clients ask; a broken save costs nobody an answer."""

import itertools
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from tests.harness.server_process import ServerProcess, serve, serve_handlers, until
from tests.harness.v2_clients import infer

SENDERS = 8
HANDLER = """import numpy as np
import triton_python_backend_utils as pb_utils
from answers import NUMBER


class TritonPythonModel:
    def execute(self, requests):
        found = np.array([NUMBER], np.int32)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("number", found)]) for _ in requests]
"""
CONFIG = """backend: "python"
input [ { name: "x" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "number" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""


def good(number: int) -> str:
    return f"NUMBER = {number}\n"


def broken(number: int) -> str:
    return f"NUMBER = {number}\nraise RuntimeError('half a thought')\n"


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def by_rename(path: Path, text: str) -> None:
    """Save as editors do that never leave half a file behind."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.rename(path)


def by_backup(path: Path, text: str) -> None:
    """Save as vi does: the old file becomes a backup, the new one is written, the backup goes."""
    backup = path.with_name(f"{path.name}~")
    path.rename(backup)
    path.with_name("4913").touch()
    path.with_name("4913").unlink()
    path.write_text(text)
    backup.unlink()


SAVES: tuple[Callable[[Path, str], None], ...] = (in_place, by_rename, by_backup)


class Senders:
    """Eight clients that ask all the time; what went wrong is kept."""

    def __init__(self, server: ServerProcess) -> None:
        self._url = f"{server.url}/v2/models/model/infer"
        self._done = threading.Event()
        self.answers = itertools.count()
        self.faults: list[str] = []
        self._threads = [threading.Thread(target=self._send) for _ in range(SENDERS)]

    def __enter__(self) -> "Senders":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        tensor = {"name": "x", "datatype": "INT32", "shape": [1], "data": [0]}
        with httpx.Client(timeout=120) as client:
            while not self._done.is_set():
                answer = client.post(self._url, json={"inputs": [tensor]})
                next(self.answers)
                if answer.status_code != 200:
                    self.faults.append(answer.text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    version = tmp_path / "model" / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(CONFIG)
    (version / "model.py").write_text(HANDLER)
    (version / "answers.py").write_text(good(0))
    return version


@pytest.fixture
def server(tmp_path: Path, folder: Path) -> Iterator[ServerProcess]:
    with serve_handlers(tmp_path / "log", folder.parent, "--reload") as served:
        yield served


def answers(server: ServerProcess, number: int) -> bool:
    found = infer(server, "model", "x", np.zeros(1, np.int32), "json")
    return int(found["number"][0]) == number


def saved(server: ServerProcess, folder: Path, saves: int, seed: int) -> None:
    """Save so often, good and broken, in each way of an editor; each good one is answered soon."""
    chance = random.Random(seed)
    with Senders(server) as senders:
        for number in range(1, saves + 1):
            text = broken if number % 3 == 0 else good
            chance.choice(SAVES)(folder / "answers.py", text(number))
            if text is good:
                until(lambda: answers(server, number), lambda: server.said()[-3000:])  # noqa: B023
            else:
                until(
                    lambda: server.said().count("half a thought") >= number // 3,  # noqa: B023
                    lambda: server.said()[-3000:],
                )
                assert answers(server, number - 1)
    assert not senders.faults, senders.faults[:3]
    assert next(senders.answers) > saves


def test_each_save_is_followed_and_costs_no_answer(server: ServerProcess, folder: Path) -> None:
    saved(server, folder, 8, 1)
    log = " ".join(server.said().split())
    assert "answers.py" in log, "the fault is told with its file"


@pytest.mark.soak
def test_thirty_saves(server: ServerProcess, folder: Path) -> None:
    saved(server, folder, 30, 2)


def test_a_server_whose_handler_is_broken_at_the_start_waits_for_its_mend(
    tmp_path: Path, folder: Path
) -> None:
    (folder / "answers.py").write_text(broken(1))
    with serve_handlers(tmp_path / "log", folder.parent, "--reload") as server:
        until(lambda: "half a thought" in server.said(), server.said)
        by_rename(folder / "answers.py", good(2))
        until(lambda: httpx.get(f"{server.url}/v2/models/model/ready").status_code == 200, server.said)
        assert answers(server, 2)


def test_a_file_that_is_replaced_by_another_is_followed(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "constant.onnx"

    def write(number: float) -> None:
        value = onnx.numpy_helper.from_array(np.array([number], np.float32), "value")
        node = onnx.helper.make_node("Add", ["x", "value"], ["y"])
        tensors = [onnx.helper.make_tensor_value_info(name, 1, [1]) for name in ("x", "y")]
        graph = onnx.helper.make_graph([node], "g", tensors[:1], tensors[1:], [value])
        opset = [onnx.helper.make_opsetid("", 17)]
        new = tmp_path / "new"
        onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), new)
        os.replace(new, path)

    write(1)
    with serve(tmp_path / "log", path, "--reload") as server:
        for number in (2, 3):
            write(number)
            until(
                lambda: infer(server, "constant", "x", np.zeros(1, np.float32), "json")["y"][0] == number,  # noqa: B023
                server.said,
            )
