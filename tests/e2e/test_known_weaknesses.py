"""Each step of the chain of attacks on the original's Python backend in 2025: an error text that names memory of the
server's own, and that memory registered as a client's.
"""

import json
import os
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest
from tests.harness.raw_http import Answer, get, infer_request, post, tensor
from tests.harness.server_process import ServerProcess, serve_handlers

RAISES = """
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        array = pb.get_input_tensor_by_name(requests[0], "x").as_numpy()
        if array[0] == 1:
            raise MemoryError("no room")
        if array[0] == 2:
            return [pb.InferenceResponse([pb.Tensor("y", np.zeros(3, np.float64))])]
        return [pb.InferenceResponse([pb.Tensor("y", array)])]
"""
CONFIG = """backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }
"""
LIMIT = 2**20


def folder(root: Path) -> Path:
    place = root / "raises" / "1"
    place.mkdir(parents=True)
    (place / "model.py").write_text(RAISES)
    (place.parent / "config.pbtxt").write_text(CONFIG)
    return root


def memory_of(server: ServerProcess) -> set[str]:
    """Names of all memory that the server and its workers share, as the system tells them."""
    found = set()
    for process in (server.process, *server.process.children(recursive=True)):
        for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines():
            name = line.partition("/")[2].removesuffix(" (deleted)")
            if name.startswith(("memfd:", "dev/shm/")):
                found.add(name)
    return found


def register(server: ServerProcess, key: str) -> Answer:
    body = json.dumps({"key": key, "offset": 0, "byte_size": 1}).encode()
    return server.ask(post("/v2/systemsharedmemory/region/r/register", body))


def test_no_text_names_memory_of_the_server_and_none_can_be_registered(tmp_path: Path) -> None:
    words = ("--client-shared-memory", "--max-body-bytes", str(LIMIT), "--log-level", "error")
    before = set(os.listdir("/dev/shm"))
    with serve_handlers(tmp_path / "log", *words, folder(tmp_path / "models")) as server:
        assert server.ask(infer_request("raises", tensor("x", [0.0] * 9, [9]))).status == 200
        names = memory_of(server)
        assert any("trivium" in name for name in names)
        answers = [server.ask(infer_request("raises", tensor("x", [float(n)], [1]))) for n in (1, 2)]
        answers += [server.ask(infer_request("raises", tensor("x", [0.0], [2, 1])))]
        answers += [server.ask(post("/v2/models/raises/infer", bytes(LIMIT + 1)))]
        answers += [server.ask(get("/v2/systemsharedmemory/status"))]
        mine = {name for name in os.listdir("/dev/shm") if name not in before}
        for name in sorted(names | mine):
            short = name.rpartition("/")[2]
            for key in (name, f"/{name}", short, f"/{short}", short.removeprefix("memfd:")):
                answers.append(register(server, key))
                assert answers[-1].status in (400, 404), key
        for process in (server.process, *server.process.children(recursive=True)):
            for number in os.listdir(f"/proc/{process.pid}/fd"):
                answers.append(register(server, f"/../../proc/{process.pid}/fd/{number}"))
                assert answers[-1].status == 400
        for answer in answers[:5]:
            assert not [name for name in names if name in answer.body.decode()], answer
        assert server.ask(infer_request("raises", tensor("x", [0.0], [1]))).status == 200


@pytest.mark.parametrize("key", ["/triton_python_backend_shm_region_1", "triton_python_backend_shm_region_x"])
def test_memory_that_has_a_name_of_the_originals_backend_is_refused(key: str, tmp_path: Path) -> None:
    memory = SharedMemory(key.removeprefix("/"), create=True, size=64)
    try:
        words = ("--client-shared-memory", folder(tmp_path / "models"))
        with serve_handlers(tmp_path / "log", *words) as server:
            answer = register(server, key)
            assert (answer.status, "a server's own" in answer.error) == (400, True)
    finally:
        memory.close()
        memory.unlink()
