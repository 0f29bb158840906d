"""Loading, unloading and shared memory over HTTP against the whole server, by NVIDIA's own client."""

import base64
import json
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as triton
from tests.fixtures import models
from tests.harness.raw_http import get
from tests.harness.server_process import ServerProcess, serve
from tests.harness.triton_http import LABELLED, TEACHER, TEACHER_CONFIG, sent, write
from tests.harness.triton_tensors import A, B, given, two
from tritonclient.utils import InferenceServerException

X = np.array([[1, 2]], np.float32)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "models"
    models.add(root, "add")
    models.identity(root, "bytes", datatype="STRING", dims="-1")
    write(root, "teacher", TEACHER_CONFIG, TEACHER)
    write(root, "pets", LABELLED, labels_txt="cat\n")
    return root


@pytest.fixture
def serving(repository: Path, tmp_path: Path) -> Iterator[ServerProcess]:
    with serve(tmp_path / "log", repository, "--client-shared-memory") as server:
        yield server


@pytest.fixture
def client(serving: ServerProcess) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(serving.address, network_timeout=120, connection_timeout=120) as client:
        yield client


def taught(client: triton.InferenceServerClient, model: str = "teacher") -> list[float]:
    rows: list[float] = client.infer(model, [given("x", X, "FP32")]).as_numpy("y").ravel().tolist()
    return rows


def test_index_load_and_unload(
    client: triton.InferenceServerClient, repository: Path, serving: ServerProcess
) -> None:
    index = client.get_model_repository_index()
    assert [(row["name"], row["version"], row["state"]) for row in index] == [
        (name, "1", "READY") for name in ("add", "bytes", "pets", "teacher")
    ]
    client.unload_model("add")
    serving_add = [row for row in client.get_model_repository_index() if row["name"] == "add"]
    assert serving_add[0]["state"] in ("UNAVAILABLE", "UNLOADING")
    with pytest.raises(InferenceServerException, match="does not serve"):
        client.infer("add", two(A, B))
    assert len(sent(serving, "/v2/repository/index", {"ready": True}).document) == 3
    client.load_model("add")
    np.testing.assert_array_equal(client.infer("add", two(A, B)).as_numpy("sum"), A + B)
    models.identity(repository, "fresh", rows=4)
    client.load_model("fresh")
    assert client.is_model_ready("fresh")


def test_a_load_with_another_configuration(client: triton.InferenceServerClient) -> None:
    assert taught(client) == [1, 2]
    config = client.get_model_config("teacher")
    config["parameters"] = {"factor": {"string_value": "3"}}
    config["max_batch_size"] = "16"
    client.load_model("teacher", config=json.dumps(config))
    assert taught(client) == [3, 6]
    assert client.get_model_config("teacher")["max_batch_size"] == 16
    for wrong in ("{", '{"max_batch_size": -1}', '{"nam": "x"}', '{"name": "other"}', "[1]"):
        with pytest.raises(InferenceServerException):
            client.load_model("teacher", config=wrong)
    assert taught(client) == [3, 6], "what served goes on after a load that failed"
    client.load_model("teacher")
    assert taught(client) == [1, 2], "the next load is of the folder as it is"


def test_a_load_of_files(client: triton.InferenceServerClient) -> None:
    config = json.dumps(
        {
            "backend": "python",
            "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": ["-1", "-1"]}],
            "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1, -1]}],
        }
    )
    code = TEACHER.replace("* self.factor", "* 7")
    client.load_model("sent", config=config, files={"file:1/model.py": code.encode()})
    assert taught(client, "sent") == [7, 14]
    client.load_model("sent", config=config, files={"file:1/model.py": TEACHER.encode()})
    assert taught(client, "sent") == [1, 2]
    client.unload_model("sent", unload_dependents=True)


DEEP, LONG = "1/" + "a/" * 6000 + "x", "1/" + ("n" * 250 + "/") * 30 + "x"


@pytest.mark.parametrize(
    "name", ["../model.py", "1/../../x", "/etc/x", "", "1//x\0", "1/" + "n" * 300, DEEP, LONG]
)
def test_files_stay_in_their_folder(serving: ServerProcess, name: str, tmp_path: Path) -> None:
    parameters = {"config": "{}", f"file:{name}": base64.b64encode(b"x").decode()}
    answer = sent(serving, "/v2/repository/models/m/load", {"parameters": parameters})
    assert answer.status in (400, 503), answer
    assert not list(tmp_path.glob("**/x"))


@pytest.mark.parametrize(
    ("path", "parameters", "words"),
    [
        ("add/load", {"other": 1}, "no load parameter 'other'"),
        ("add/load", {"config": 1}, "no string"),
        ("add/load", {"config": "{}", "file:1/x": "?"}, "no base64"),
        ("add/load", {"file:1/x": ""}, "without the parameter 'config'"),
        ("add/unload", {"unload_dependents": 1}, "true or false"),
        ("add/unload", {"other": 1}, "no unload parameter"),
        ("%2E%2E%2Fadd/load", {"config": "{}"}, "no path inside"),
        ("nobody/load", {"config": "{}"}, "no folder of model"),
        ("nobody/load", {}, "No folder or file"),
        ("nobody/unload", {}, "no model 'nobody'"),
    ],
)
def test_wrong_changes(serving: ServerProcess, path: str, parameters: dict[str, object], words: str) -> None:
    answer = sent(serving, f"/v2/repository/models/{path}", {"parameters": parameters})
    assert (answer.status in (400, 404), words in answer.error) == (True, True), answer


def test_web_pages_change_nothing(serving: ServerProcess) -> None:
    page = b"Origin: https://example.org\r\n"
    for path in ("repository/models/add/unload", "systemsharedmemory/unregister", "logging"):
        answer = sent(serving, f"/v2/{path}", {}, page)
        assert (answer.status, "Web pages" in answer.error) == (403, True)


def test_beyond_loopback_nothing_is_changed(repository: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "wide", repository, "--host", "0.0.0.0", "--open") as server:
        for path in ("repository/models/add/unload", "repository/models/add/load", "logging"):
            answer = sent(server, f"/v2/{path}", {})
            assert (answer.status, "loopback" in answer.error) == (403, True)
        assert sent(server, "/v2/repository/index", b"").status == 200
        refused = sent(server, "/v2/systemsharedmemory/region/r/register", {"key": "/k", "byte_size": 1})
        assert (refused.status, "--client-shared-memory" in refused.error) == (501, True)
        assert server.ask(get("/v2/systemsharedmemory/status")).status == 501


def test_whoever_has_the_key_may_change_what_it_opens(repository: Path, tmp_path: Path) -> None:
    words = ["--host", "0.0.0.0", "--open", "--restricted-apis", "model-repository:admin-key=secret"]
    with serve(tmp_path / "wide", repository, *words) as server:
        with triton.InferenceServerClient(server.address) as client:
            with pytest.raises(InferenceServerException, match="This API is restricted"):
                client.get_model_repository_index()
            key = {"admin-key": "secret"}
            client.unload_model("add", headers=key)
            assert not client.is_model_ready("add")
            client.load_model("add", headers=key)
            assert client.is_model_ready("add")


# -- shared memory -----------------------------------------------------------------------------------------


@pytest.fixture
def region() -> Iterator[SharedMemory]:
    """Made by the standard library: the client's own module for it needs a package that newer Pythons lack."""
    memory = SharedMemory(create=True, size=256)
    try:
        yield memory
    finally:
        memory.close()
        memory.unlink()


def test_tensors_in_shared_memory(client: triton.InferenceServerClient, region: SharedMemory) -> None:
    key = f"/{region.name}"
    client.unregister_system_shared_memory()
    client.unregister_cuda_shared_memory()
    client.register_system_shared_memory("r", key, 256)
    assert client.get_system_shared_memory_status() == [
        {"name": "r", "key": key, "offset": 0, "byte_size": 256}
    ]
    region.buf[:32] = A.tobytes() + B.tobytes()
    inputs = [triton.InferInput(name, [4], "FP32") for name in ("a", "b")]
    inputs[0].set_shared_memory("r", 16)
    inputs[1].set_shared_memory("r", 16, offset=16)
    output = triton.InferRequestedOutput("sum")
    output.set_shared_memory("r", 64, offset=128)
    result = client.infer("add", inputs, outputs=[output])
    described = result.get_output("sum")
    assert "parameters" not in described  # as the original: its client in C++ cannot read them
    assert "data" not in described
    np.testing.assert_array_equal(np.frombuffer(bytes(region.buf[128:144]), "<f4"), A + B)
    client.unregister_system_shared_memory("r")
    with pytest.raises(InferenceServerException, match="no shared memory region 'r'"):
        client.infer("add", inputs)
    with pytest.raises(InferenceServerException, match="no shared memory region 'r'"):
        client.get_system_shared_memory_status("r")
    with pytest.raises(InferenceServerException, match="CPU's memory alone"):
        client.register_cuda_shared_memory("c", b"x" * 64, 0, 8)
    assert client.get_cuda_shared_memory_status() == []


def test_wrong_shared_memory(client: triton.InferenceServerClient, region: SharedMemory) -> None:
    key = f"/{region.name}"
    client.register_system_shared_memory("r", key, 64)
    for name, other, size, offset, words in (
        ("r", key, 64, 0, "registered already"),
        ("s", key, 257, 0, "has 256 bytes"),
        ("s", key, 10, 250, "has 256 bytes"),
        ("s", "/nothing_there", 1, 0, "cannot be opened"),
        ("s", "/../etc/passwd", 1, 0, "no key"),
        ("s", "/triton_python_backend_shm_region_1", 1, 0, "own"),
        ("s", "/", 1, 0, "no key"),
    ):
        with pytest.raises(InferenceServerException, match=words):
            client.register_system_shared_memory(name, other, size, offset)
    for size, offset, words in (
        (16, 60, "has 64 bytes"),
        (12, 0, "takes 16 bytes"),
        (2**40, 0, "has 64 bytes"),
    ):
        tensor = triton.InferInput("a", [4], "FP32")
        tensor.set_shared_memory("r", size, offset)
        with pytest.raises(InferenceServerException, match=words):
            client.infer("add", [tensor, *two(A, B)[1:]])
    output = triton.InferRequestedOutput("sum")
    output.set_shared_memory("r", 4)
    with pytest.raises(
        InferenceServerException, match="takes 16 bytes, but its shared_memory_byte_size is 4"
    ):
        client.infer("add", two(A, B), outputs=[output])
