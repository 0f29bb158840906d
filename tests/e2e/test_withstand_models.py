"""Models that are broken, or go missing: named, answered for, and no trouble for their neighbours."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness.raw_http import echo_request, get, infer, infer_request, tensor
from tests.harness.server_process import ServerProcess, serve, withstanding

ADD = (tensor("a", [1, 2, 3, 4], [4]), tensor("b", [1, 1, 1, 1], [4]))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("broken")
    root = folder / "models"
    models.identity(root, "echo", rows=16)
    models.add(root, "good")
    models.corrupt(root, "cut", 0.6)
    models.corrupt(root, "empty", 0)
    models.misspelt(root, "misspelt")
    noise = models.add(root, "noise") / "1" / "model.onnx"
    noise.write_bytes(bytes(range(256)) * 1000)
    with serve(folder / "log", root) as server:
        yield server


BROKEN = {
    "cut": "cut/1/model.onnx",
    "empty": "empty/1/model.onnx",
    "noise": "noise/1/model.onnx",
    "misspelt": "misspelt/config.pbtxt:2",
}


def test_the_others_serve(server: ServerProcess) -> None:
    with withstanding(server):
        assert infer(server.port, "echo", [[1, 2, 3, 4]]) == [[1, 2, 3, 4]]
        answer = server.ask(infer_request("good", *ADD))
        assert answer.document["outputs"][0]["data"] == [2, 3, 4, 5]
        assert server.ask(get("/v2/models/good/ready")).status == 200


def test_the_server_lives_and_is_not_ready(server: ServerProcess) -> None:
    assert server.ask(get("/v2/health/live")).status == 200
    assert server.ask(get("/v2/health/ready")).status == 400
    assert "4 of 6 did not load" in server.said()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_is_answered_for(server: ServerProcess, name: str) -> None:
    answer = server.ask(infer_request(name, *ADD))
    assert answer.status == 503
    assert f"Model '{name}'" in answer.error
    assert BROKEN[name] in answer.error
    assert BROKEN[name] in server.ask(get(f"/v2/models/{name}/ready")).error
    (line,) = (
        line
        for line in server.said().splitlines()
        if line.startswith((f"{name} ", f"{name}:")) and "failed" in line
    )
    assert BROKEN[name] in line


def test_a_typo_comes_with_its_mend(server: ServerProcess) -> None:
    assert "Did you mean max_batch_size?" in server.ask(infer_request("misspelt", *ADD)).error


def test_a_folder_deleted_while_it_serves(tmp_path: Path) -> None:
    root = tmp_path / "models"
    models.identity(root, "echo", rows=16)
    models.add(root, "gone")
    with serve(tmp_path / "log", root) as server, withstanding(server):
        config = server.ask(get("/v2/models/gone/config")).document
        shutil.rmtree(root)
        for _ in range(20):
            answer = server.ask(infer_request("gone", *ADD))
            assert answer.document["outputs"][0]["data"] == [2, 3, 4, 5]
        assert server.ask(get("/v2/models/gone/config")).document == config
        assert server.ask(get("/v2/models/gone/stats")).document["model_stats"][0]["inference_count"] == 20
        assert server.ask(get("/v2/models/gone/ready")).status == 200
        assert server.ask(echo_request("echo", [[1, 2, 3, 4]])).status == 200
