"""Without what Linux alone has a server serves, survives the end of a worker, and shuts down; each name is taken away.

A `sitecustomize` module takes them away in the server and in all that it starts. It stands in for a machine with
another system, and cannot show everything that is different there.
"""

import re
from pathlib import Path

import numpy as np
import psutil
import pytest
from tests.harness.raw_http import ask, infer_request, tensor
from tests.harness.server_process import ServerProcess, running, until

MISSING = {
    "memfd_create": "del os.memfd_create",
    "seals": "del fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK, fcntl.F_SEAL_GROW, fcntl.F_SEAL_SEAL; del os.memfd_create",
    "pidfd_open": "del os.pidfd_open",
    "waitid": "del os.waitid, os.P_PID, os.WNOWAIT, os.WEXITED",
    "affinity": "del os.sched_getaffinity, os.sched_setaffinity, os.sched_setscheduler, os.sched_getscheduler",
    "pages": "del mmap.MADV_REMOVE",
    "pipe2": "del os.pipe2",
    "library": "ctypes.CDLL = Library",
    "proc": "io.open = builtins.open = opened; os.listdir = listed; os.path.exists = exists; os.path.isdir = is_folder",
}
_PATCHES = """
import builtins, ctypes, fcntl, io, mmap, os, os.path, sys

LIBRARY, OPEN, LIST, EXISTS, IS_FOLDER = ctypes.CDLL, builtins.open, os.listdir, os.path.exists, os.path.isdir


class Library(LIBRARY):
    def __getattr__(self, name):
        if name in ("prctl", "mallopt", "malloc_trim", "unshare"):
            raise AttributeError(name)
        return super().__getattr__(name)


def is_hidden(path):
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    if not os.fsdecode(path).startswith(("/proc", "/sys/")):
        return False
    return "psutil" not in sys._getframe(2).f_code.co_filename  # it has ways of its own on each system


def opened(path, *words, **named):
    if is_hidden(path):
        raise FileNotFoundError(2, "taken away by the test", os.fsdecode(path))
    return OPEN(path, *words, **named)


def listed(path="."):
    if is_hidden(path):
        raise FileNotFoundError(2, "taken away by the test", os.fsdecode(path))
    return LIST(path)


def exists(path):
    return not is_hidden(path) and EXISTS(path)


def is_folder(path):
    return not is_hidden(path) and IS_FOLDER(path)


"""
HANDLER = """
import os
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        x = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        if any(one.flat[0] < 0 for one in x):
            os._exit(3)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", one + 1)]) for one in x]
"""
CONFIG = """
backend: "python" max_batch_size: 0
input { name: "x" data_type: TYPE_FP32 dims: -1 } output { name: "y" data_type: TYPE_FP32 dims: -1 }
instance_group { kind: KIND_CPU }
"""


@pytest.mark.parametrize("missing", [*MISSING, "all"])
def test_it_serves_kills_a_worker_and_shuts_down(missing: str, tmp_path: Path) -> None:
    folder = tmp_path / "patches"
    folder.mkdir()
    taken = MISSING.values() if missing == "all" else [MISSING[missing]]
    lines = [f"try:\n    {line}\nexcept AttributeError:\n    pass\n" for line in taken]
    (folder / "sitecustomize.py").write_text(_PATCHES + "".join(lines))
    root = tmp_path / "models"
    (root / "plus" / "1").mkdir(parents=True)
    (root / "plus" / "1" / "model.py").write_text(HANDLER)
    (root / "plus" / "config.pbtxt").write_text(CONFIG)
    variables = {"PYTHONPATH": str(folder), "TMPDIR": str(tmp_path)}
    with running(tmp_path / "log", "serve", root, models_raise=True, variables=variables) as server:
        assert plus(server, 1.0, 4) == [2.0] * 4
        assert plus(server, 1.0, 40_000)[-1] == 2.0, "a large one, in memory that is shared"
        workers = server.process.children(recursive=True)
        assert "died" in ask(server.port, request(-1.0, 4)).body.decode()
        until(lambda: restarted(server, workers), server.said)
        assert plus(server, 2.0, 4) == [3.0] * 4
        family = server.process.children(recursive=True)
        server.terminate()
        assert server.wait() == 0, server.said()
        until(lambda: not any(each.is_running() for each in family), lambda: str(family))
        assert not re.search("AttributeError|taken away", server.said()), server.said()


def request(first: float, count: int) -> bytes:
    return infer_request("plus", tensor("x", [first] * count, [count]))


def plus(server: ServerProcess, first: float, count: int) -> list[float]:
    answer = ask(server.port, request(first, count))
    assert answer.status == 200, answer.body
    data: list[float] = np.asarray(answer.document["outputs"][0]["data"]).tolist()
    return data


def restarted(server: ServerProcess, before: list[psutil.Process]) -> bool:
    return (
        ask(server.port, request(0.0, 4)).status == 200 and server.process.children(recursive=True) != before
    )
