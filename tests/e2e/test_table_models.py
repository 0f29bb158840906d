"""Models of XGBoost, LightGBM and scikit-learn in the real server: bare, as DJL and Triton folders, for all clients."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from tests.harness.server_process import ServerProcess, serve
from tests.harness.table_models import TREE, digits, trained, tumours, write
from tests.harness.v2_clients import infer

ROWS = 20
FIL = """backend: "fil"
max_batch_size: 64
input [{{ name: "input__0" data_type: TYPE_FP32 dims: [ 64 ] }}]
output [{{ name: "output__0" data_type: TYPE_FP32 dims: [ {width} ] }}]
instance_group [{{ kind: KIND_AUTO }}]
parameters [
  {{ key: "model_type" value: {{ string_value: "{kind}" }} }},
  {{ key: "output_class" value: {{ string_value: "true" }} }},
  {{ key: "predict_proba" value: {{ string_value: "{scores}" }} }},
  {{ key: "storage_type" value: {{ string_value: "AUTO" }} }}
]
dynamic_batching {{}}
"""
BARE = {"xgb": "xgboost", "ubj": "xgboost", "lgb": "lightgbm", "forest": "sklearn"}
FORESTS = {
    "fil_xgb": ("xgboost", "xgboost_json", "xgboost.json"),
    "fil_lgb": ("lightgbm", "lightgbm", "model.txt"),
}
FOLDERS = {"djl_xgb": ("xgboost", "djl_xgb.json"), "djl_lgb": ("lightgbm", "model.txt")}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("models")
    paths = [
        write(root / "xgb.json", "xgboost"),
        write(root / "ubj.ubj", "xgboost"),
        write(root / "lgb.bst", "lightgbm"),
        write(root / "forest.skops", "sklearn"),
    ]
    for name, (library, kind, file) in FORESTS.items():
        for scores, width in (("false", 1), ("true", 10)):
            folder = root / "repository" / f"{name}_{scores}"
            write(folder / "1" / file, library)
            (folder / "config.pbtxt").write_text(FIL.format(width=width, kind=kind, scores=scores))
    for name, (library, file) in FOLDERS.items():
        write(root / name / file, library)
        (root / name / "serving.properties").write_text("" if library == "xgboost" else "engine=LightGBM\n")
    words = ("--engine-parameters", f"sklearn.skops_trusted_types={TREE}")
    more = [root / "repository", *(root / name for name in FOLDERS)]
    with serve(root / "log", *paths, *more, *words) as served:
        yield served


def ask(server: ServerProcess, model: str, rows: np.ndarray, route: str) -> dict[str, np.ndarray]:
    """Return the outputs of one request of v2, by the client that the route names."""
    name = httpx.get(f"{server.url}/v2/models/{model}").json()["inputs"][0]["name"]
    return infer(server, model, name, rows, route)


@pytest.mark.parametrize("route", ["json", "binary", "grpc"])
@pytest.mark.parametrize("model", BARE)
def test_a_bare_file_names_the_digit(server: ServerProcess, model: str, route: str) -> None:
    rows = digits()[0][:ROWS]
    found = ask(server, model, rows, route)
    estimator = trained(BARE[model])
    assert found["predict"].tolist() == estimator.predict(rows).tolist()
    np.testing.assert_allclose(found["predict_proba"], estimator.predict_proba(rows), atol=1e-5)


@pytest.mark.parametrize("route", ["json", "binary", "grpc"])
@pytest.mark.parametrize("model", FORESTS)
def test_a_folder_of_fil_names_the_digit(server: ServerProcess, model: str, route: str) -> None:
    rows = digits()[0][:ROWS]
    estimator = trained(FORESTS[model][0])
    (classes,) = ask(server, f"{model}_false", rows, route).values()
    assert classes.shape == (ROWS, 1)
    assert classes.ravel().tolist() == estimator.predict(rows).tolist()
    (scores,) = ask(server, f"{model}_true", rows, route).values()
    np.testing.assert_allclose(scores, estimator.predict_proba(rows), atol=1e-5)


@pytest.mark.parametrize("model", FOLDERS)
def test_a_djl_folder_answers_arrays(server: ServerProcess, model: str) -> None:
    rows = digits()[0][:ROWS]
    expected = trained(FOLDERS[model][0]).predict_proba(rows)
    body = io.BytesIO()
    np.savez(body, rows)
    headers = {"Content-Type": "tensor/npz", "Accept": "tensor/npz"}
    answer = httpx.post(
        f"{server.url}/predictions/{model}", content=body.getvalue(), headers=headers, timeout=60
    )
    assert answer.status_code == 200, answer.text
    with np.load(io.BytesIO(answer.content)) as arrays:
        (found,) = (arrays[name] for name in arrays.files)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for name in ("json", "grpc"):
        (found,) = ask(server, model, rows, name).values()
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_rows_of_another_width_are_the_client_s_fault(server: ServerProcess) -> None:
    tensor = {"name": "input-0", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}
    answer = httpx.post(f"{server.url}/v2/models/xgb/infer", json={"inputs": [tensor]})
    assert answer.status_code == 400
    assert "64" in answer.text


@pytest.mark.parametrize("model", BARE)
def test_no_rows_are_the_client_s_fault(server: ServerProcess, model: str) -> None:
    (spec,) = httpx.get(f"{server.url}/v2/models/{model}").json()["inputs"]
    tensor = {"name": spec["name"], "datatype": spec["datatype"], "shape": [0, 64], "data": []}
    answer = httpx.post(f"{server.url}/v2/models/{model}/infer", json={"inputs": [tensor]})
    assert (answer.status_code, "no rows" in answer.text) == (400, True), answer.text


def test_check_says_why_a_pickle_is_not_opened_and_the_printed_mend_serves_it(tmp_path: Path) -> None:
    path = write(tmp_path / "m.joblib", "sklearn", 2)
    command = [sys.executable, "-m", "trivium.cli.main", "check", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    words = " ".join(done.stdout.split())
    assert "runs what its author wrote" in words
    mend = ["--engine-parameters", "sklearn.trust_insecure_model_files=true"]
    assert " ".join(mend) in words
    rows = tumours()[0][:3]
    with serve(tmp_path / "log", path, *mend) as served:
        tensor = {"name": "input-0", "datatype": "FP32", "shape": list(rows.shape), "data": rows.tolist()}
        answer = httpx.post(f"{served.url}/v2/models/m/infer", json={"inputs": [tensor]}, timeout=60)
        assert answer.status_code == 200, answer.text
        (output,) = answer.json()["outputs"]
        assert output["data"] == trained("sklearn", 2).predict(rows).tolist()


def test_a_damaged_file_of_lightgbm_ends_its_process_and_no_other(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    write(broken / "model.txt", "lightgbm", 2)
    text = (broken / "model.txt").read_text()
    (broken / "model.txt").write_text(text.replace("split_feature=", "split_feature=99999 ", 1))
    (broken / "serving.properties").write_text("engine=LightGBM\n")
    whole = write(tmp_path / "whole.json", "xgboost", 2)
    rows = tumours()[0][:1]
    tensor = {"name": "input-0", "datatype": "FP32", "shape": list(rows.shape), "data": rows.tolist()}
    with serve(tmp_path / "log", broken, whole) as served:
        answer = httpx.post(f"{served.url}/v2/models/whole/infer", json={"inputs": [tensor]}, timeout=60)
        assert answer.status_code == 200, answer.text
        states = httpx.post(f"{served.url}/v2/repository/index", timeout=60).json()
        assert {one["name"]: one["state"] for one in states}["whole"] == "READY"
        assert not served.has_ended()
        assert json.dumps(states)
