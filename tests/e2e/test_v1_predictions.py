"""Predictions by KServe's v1 protocol: a model of each engine that opens a file, a handler, and KServe's own client."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.harness.digit_networks import chances, pictures, write_onnx
from tests.harness.engine_files import write_scripted
from tests.harness.server_process import ServerProcess, serve
from tests.harness.table_models import digits, write

KSERVE = Path(__file__).parents[2] / ".venv-kserve" / "bin" / "python"
CLIENT = Path(__file__).parent / "kserve_client" / "calls.py"
ROWS = 20
HANDLER = """
from djl_python import Input, Output

def handle(inputs):
    if inputs.is_empty():
        return None
    rows = inputs.get_as_json()["instances"]
    return Output().add_as_json({"predictions": [sum(row) for row in rows]})
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("models")
    graph = write_onnx(root / "graph.onnx")
    scripted = write_scripted(root / "scripted.pt")
    boosted = write(root / "boosted.json", "xgboost")
    (root / "sums").mkdir()
    (root / "sums" / "model.py").write_text(HANDLER)
    with serve(root / "log", graph, scripted, boosted, root / "sums") as running:
        yield running


def predicted(server: ServerProcess, model: str, document: object) -> Any:
    answer = httpx.post(f"{server.url}/v1/models/{model}:predict", json=document, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(("model", "name"), [("graph", "x"), ("scripted", "")])
def test_a_network_answers_a_row_of_chances_for_each(server: ServerProcess, model: str, name: str) -> None:
    rows = pictures().tolist()
    name = name or httpx.get(f"{server.url}/v2/models/{model}").json()["inputs"][0]["name"]
    expected = chances().argmax(axis=1).tolist()
    for document in ({"instances": rows}, {"instances": [{name: row} for row in rows]}):
        found = predicted(server, model, document)["predictions"]
        assert [row.index(max(row)) for row in found] == expected
    for given in (rows, {name: rows}):
        found = predicted(server, model, {"inputs": given, "signature_name": "serving_default"})["outputs"]
        assert [row.index(max(row)) for row in found] == expected


def test_a_forest_answers_its_predictions(server: ServerProcess) -> None:
    rows, expected = digits()[0][:ROWS].tolist(), digits()[1][:ROWS].tolist()
    assert predicted(server, "boosted", {"instances": rows}) == {"predictions": expected}
    by_version = httpx.post(
        f"{server.url}/v1/models/boosted/versions/1:predict", json={"instances": rows}, timeout=120
    )
    assert by_version.json() == {"predictions": expected}


def test_a_handler_gets_the_body(server: ServerProcess) -> None:
    assert predicted(server, "sums", {"instances": [[1, 2], [3, 4]], "more": 1}) == {"predictions": [3, 7]}


@pytest.mark.parametrize(
    ("model", "body", "status", "said"),
    [
        ("nobody", '{"instances": []}', 404, "There is no model 'nobody'"),
        ("graph", '{"instances": [[1, 2]]}', 400, "shape"),
        ("graph", '{"instances": [{"y": 1, "z": 2}]}', 400, "no input of model 'graph'"),
        ("graph", "[]", 400, "no object"),
        ("graph", "", 400, "JSON"),
        ("graph", "{" * 100_000, 400, "JSON"),
        ("graph", '{"instances": ' + "[" * 100_000, 400, ""),
        ("boosted", '{"instances": [{"b64": "aGk="}]}', 400, "base64"),
    ],
)
def test_a_wrong_request_is_refused_with_the_reason(
    server: ServerProcess, model: str, body: str, status: int, said: str
) -> None:
    answer = httpx.post(f"{server.url}/v1/models/{model}:predict", content=body, timeout=120)
    assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text


@pytest.mark.skipif(not KSERVE.exists(), reason="make e2e installs KServe's client")
def test_kserves_own_client(server: ServerProcess) -> None:
    done = subprocess.run(
        [KSERVE, CLIENT, "kserve", server.url, "-"], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["predicted"] == {"predictions": [6, 15]}
    assert found["ready"] is True
    assert "404" in found["unknown"]
