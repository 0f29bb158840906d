"""DJL's scikit-learn handler in the real server: digits by JSON, CSV and tensors, functions of model.py, and trust."""

import pickle
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.harness.server_process import COMMAND, ServerProcess, serve_handlers
from tests.harness.table_models import TREE, digits, trained, write

TYPES = f"option.skops_trusted_types={TREE}\n"
TRUSTED = "option.trust_insecure_model_files=true\n"
ROWS = digits()[0][:20]
WANTED = trained("sklearn").predict(ROWS).tolist()
JSON, CSV = "application/json", "text/csv"
LINES = "\n".join(",".join(map(str, row)) for row in ROWS.tolist())

DECORATED = """
import numpy as np
from djl_python.input_parser import input_formatter, prediction_handler
from djl_python.output_formatter import output_formatter


@input_formatter
def read(inputs, **kwargs):
    return np.array(inputs.get_as_json()["pictures"])


@prediction_handler
def predict(rows, model, **kwargs):
    return {"digits": model.predict(rows), "sure": model.predict_proba(rows).max(axis=1)}


@output_formatter
def write(found):
    return {"found": found["digits"].tolist(), "sure": found["sure"].tolist()}
"""
SAGEMAKER = """
import json
import os

import joblib
import numpy as np


def model_fn(model_dir):
    return joblib.load(os.path.join(model_dir, "model.joblib"))


def input_fn(request_body, request_content_type):
    if request_content_type != "application/json":
        raise ValueError("Unsupported content type: " + request_content_type)
    return np.array(json.loads(request_body)["instances"])


def predict_fn(input_object, model):
    return model.predict(input_object)


def output_fn(prediction, response_content_type):
    return json.dumps(prediction.tolist())
"""


class Marks:
    """Unpickles by writing a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def folder(root: Path, name: str, file: str, settings: str = "", code: str = "") -> Path:
    """Write the digits' forest as a model, which one worker runs."""
    write(root / name / file, "sklearn")
    (root / name / "serving.properties").write_text(f"minWorkers=1\nmaxWorkers=1\n{settings}")
    if code:
        (root / name / "model.py").write_text(code)
    return root / name


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("models")
    named = "option.entryPoint=djl_python.sklearn_handler\n"
    models = [
        folder(root, "plain", "model.skops", TYPES),
        folder(root, "lines", "forest.pkl", f"{named}{TRUSTED}option.default_accept=text/csv\n"),
        folder(root, "decorated", "model.skops", TYPES, DECORATED),
        folder(root, "sagemaker", "model.joblib", "", SAGEMAKER),
        folder(root, "refused", "model.joblib"),
    ]
    for name in ("hostile", "alone"):
        write(root / name / "model.pkl", "sklearn")
        (root / name / "model.pkl").write_bytes(pickle.dumps(Marks(root / "marker")))
    (root / "hostile" / "serving.properties").write_text("engine=Python\n")
    with serve_handlers(root / "log", *models, root / "hostile", root / "alone") as served:
        yield served


def ask(server: ServerProcess, model: str, **request: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/predictions/{model}", timeout=60, **request)


@pytest.mark.parametrize("document", [{"inputs": ROWS.tolist()}, ROWS.tolist()], ids=["inputs", "list"])
def test_json_names_the_digits(server: ServerProcess, document: Any) -> None:
    answer = ask(server, "plain", json=document)
    assert (answer.status_code, answer.headers["content-type"]) == (200, JSON), answer.text
    assert answer.json() == {"predictions": WANTED}


@pytest.mark.parametrize("model", ["plain", "lines"])
def test_csv_both_ways(server: ServerProcess, model: str) -> None:
    accept = {"accept": CSV} if model == "plain" else {}
    answer = ask(server, model, content=LINES, headers={"content-type": CSV, **accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, CSV), answer.text
    assert answer.text.split("\n") == list(map(str, WANTED))
    answer = ask(server, model, content=LINES, headers={"content-type": CSV, "accept": JSON})
    assert answer.json() == {"predictions": WANTED}


def test_a_tensor_of_v2(server: ServerProcess) -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": list(ROWS.shape), "data": ROWS.ravel().tolist()}
    answer = httpx.post(f"{server.url}/v2/models/plain/infer", json={"inputs": [tensor]}, timeout=60)
    assert answer.status_code == 200, answer.text
    assert str(WANTED[0]) in answer.text


def test_what_cannot_be_answered_says_what_to_send(server: ServerProcess) -> None:
    answer = ask(server, "plain", json=ROWS.tolist(), headers={"accept": "image/png"})
    assert answer.status_code == 424
    assert "Send application/json or text/csv" in answer.text
    answer = ask(server, "plain", json={"instances": ROWS.tolist()})
    assert answer.status_code == 424
    assert "its keys: instances" in answer.text
    answer = ask(server, "plain", json=[[1, 2]])
    assert answer.status_code == 424
    assert "64" in answer.text


def test_decorated_functions(server: ServerProcess) -> None:
    found = ask(server, "decorated", json={"pictures": ROWS.tolist()}).json()
    assert found["found"] == WANTED
    np.testing.assert_allclose(found["sure"], trained("sklearn").predict_proba(ROWS).max(axis=1), atol=1e-5)


def test_a_script_of_sagemaker(server: ServerProcess) -> None:
    answer = ask(server, "sagemaker", json={"instances": ROWS.tolist()}, headers={"accept": JSON})
    assert (answer.json(), answer.headers["content-type"]) == (WANTED, JSON)
    answer = ask(server, "sagemaker", content=LINES, headers={"content-type": CSV})
    assert answer.status_code == 424
    assert "input_fn failed: ValueError: Unsupported content type: text/csv" in answer.text


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("hostile", "option.trust_insecure_model_files=true"),
        (
            "alone",
            "sklearn.trust_insecure_model_files=true",
        ),  # without serving.properties it is no folder of DJL's
    ],
)
def test_pickles_without_the_word_are_not_opened(server: ServerProcess, name: str, mend: str) -> None:
    root = server.log.parent
    assert ask(server, name, json=[[1]]).status_code != 200
    checked = subprocess.run(
        [*COMMAND, "check", root / name], capture_output=True, text=True, check=False, timeout=120
    )
    assert checked.returncode == 1
    assert mend in checked.stdout
    assert not (root / "marker").exists()


def test_a_refused_pickle_is_served_by_the_printed_mend(server: ServerProcess) -> None:
    root = server.log.parent
    assert ask(server, "refused", json=ROWS.tolist()).status_code != 200
    said = " ".join(server.said().split())
    assert TRUSTED.strip() in said
    settings = root / "refused" / "serving.properties"
    settings.write_text(settings.read_text() + TRUSTED)
    with serve_handlers(root / "log2", root / "refused") as again:
        assert ask(again, "refused", json=ROWS.tolist()).json() == {"predictions": WANTED}
