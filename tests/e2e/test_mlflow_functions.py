"""Models that MLflow itself loads: written and served by the real library, where `make mlflow` has installed it."""

import pickle
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.harness.mlflow_folders import Marker, mlmodel, save, write_xgboost
from tests.harness.server_process import ServerProcess, serve

PYTHON = Path(__file__).parents[2] / ".venv-mlflow" / "bin" / "python"
TRUST = "python-mlflow.trust_insecure_model_files=true"
WRITE = """
import sys
import mlflow, numpy, pandas
from mlflow.models import infer_signature

class Prices(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        if (model_input["area"] < 0).any():
            raise ValueError("an area below nothing")
        factor = (params or {}).get("factor", 10.0)
        return pandas.DataFrame({"price": model_input["area"] * factor, "label": model_input["city"].str.upper()})

class Mean(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return model_input.mean(axis=1)

rows = pandas.DataFrame({"area": [1.5, 2.0], "rooms": [1, 2], "city": ["a", "b"]})
answers = pandas.DataFrame({"price": [1.0], "label": ["A"]})
signature = infer_signature(rows, answers, params={"factor": 10.0})
mlflow.pyfunc.save_model(sys.argv[1] + "/prices", python_model=Prices(), signature=signature)
arrays = infer_signature(numpy.zeros((2, 3), numpy.float32), numpy.zeros(2, numpy.float32))
mlflow.pyfunc.save_model(sys.argv[1] + "/mean", python_model=Mean(), signature=arrays)
mlflow.pyfunc.save_model(sys.argv[1] + "/unsigned", python_model=Mean())
"""
SPLIT = {"columns": ["city", "area", "rooms"], "data": [["x", 1.5, 1], ["y", 2.0, 2]]}


def infer(server: ServerProcess, model: str, *inputs: dict[str, Any], **parameters: Any) -> httpx.Response:
    body = {"inputs": inputs, "parameters": parameters}
    return httpx.post(f"{server.url}/v2/models/{model}/infer", json=body, timeout=60)


def score(server: ServerProcess, model: str, body: object) -> httpx.Response:
    return httpx.post(f"{server.url}/invocations?model_name={model}", json=body, timeout=60)


def column(name: str, datatype: str, data: list[Any], shape: list[int] | None = None) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape or [len(data)], "data": data}


AREA, ROOMS = column("area", "FP32", [1.5, 2.0]), column("rooms", "INT32", [1, 2])
CITY = column("city", "BYTES", ["x", "y"], [2, 1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    if not PYTHON.exists():
        pytest.skip("no environment with MLflow: `make mlflow` makes one")
    root = tmp_path_factory.mktemp("functions")
    command = [str(PYTHON), "-W", "ignore", "-c", WRITE, str(root / "store")]
    subprocess.run(command, check=True, timeout=180, capture_output=True)
    asked = f"{TRUST},python-mlflow.python={PYTHON}"
    words = ("--engine-parameters", asked)
    with serve(root / "log", root / "store", *words, models_raise=True) as served:
        yield served


def test_its_signature_is_its_inputs_and_outputs(server: ServerProcess) -> None:
    told = httpx.get(f"{server.url}/v2/models/prices").json()
    assert told["inputs"] == [
        {"name": "area", "datatype": "FP64", "shape": [-1, 1]},
        {"name": "rooms", "datatype": "INT64", "shape": [-1, 1]},
        {"name": "city", "datatype": "BYTES", "shape": [-1, 1]},
    ]
    assert [one["name"] for one in told["outputs"]] == ["price", "label"]


def test_columns_over_v2_are_its_table(server: ServerProcess) -> None:
    answer = infer(server, "prices", AREA, ROOMS, CITY, content_type="pd")
    assert answer.status_code == 200, answer.text
    price, label = answer.json()["outputs"]
    assert (price["data"], price["shape"], label["data"]) == ([15.0, 20.0], [2, 1], ["X", "Y"])


def test_a_scoring_body_is_answered_as_by_mlflow_with_parameters(server: ServerProcess) -> None:
    answer = score(server, "prices", {"dataframe_split": SPLIT, "params": {"factor": 2.0}})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"predictions": [{"price": 3.0, "label": "X"}, {"price": 4.0, "label": "Y"}]}
    answer = infer(server, "prices", AREA, ROOMS, CITY, factor=2.0)
    assert answer.json()["outputs"][0]["data"] == [3.0, 4.0]


@pytest.mark.parametrize("model", ["mean", "unsigned"])
def test_arrays_stay_arrays(server: ServerProcess, model: str) -> None:
    answer = infer(server, model, column("input-0", "FP32", [1, 2, 3, 4, 5, 6], [2, 3]))
    assert answer.status_code == 200, answer.text
    assert answer.json()["outputs"][0]["data"] == [2.0, 5.0]


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "a column less": (
        {"dataframe_split": {"columns": ["area", "rooms"], "data": [[1, 1]]}},
        "INVALID_PARAMETER_VALUE",
        "city",
    ),
    "no form": ({"data": [1]}, "BAD_REQUEST", "dataframe_split"),
    "what its code refuses": (
        {"dataframe_split": {**SPLIT, "data": [["x", -1.0, 1]]}},
        "BAD_REQUEST",
        "an area below nothing",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_body_is_refused_in_mlflow_s_form_and_the_next_one_answered(
    server: ServerProcess, name: str
) -> None:
    body, error_code, word = WRONG[name]
    answer = score(server, "prices", body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, error_code)
    assert word in answer.json()["message"]
    assert score(server, "prices", {"dataframe_split": SPLIT}).status_code == 200


@pytest.mark.parametrize(
    ("inputs", "word"),
    [
        ([AREA, column("rooms", "INT32", [1]), CITY], "several lengths"),
        ([AREA, column("rooms", "FP32", [1.5, 2.0]), CITY], "which is long"),
        ([AREA, ROOMS, column("city", "INT32", [1, 2])], "BYTES"),
        ([AREA, ROOMS], "city"),
        ([column("area", "FP32", [1.5, 2.0], [1, 2]), ROOMS, CITY], "[-1,1]"),
    ],
)
def test_wrong_columns_are_named(server: ServerProcess, inputs: list[dict[str, Any]], word: str) -> None:
    answer = infer(server, "prices", *inputs)
    assert answer.status_code >= 400
    assert word in answer.json()["error"]


def function(folder: Path, marker: Path) -> Path:
    """A folder of MLflow whose pickle writes a marker."""
    keys = {"loader_module": "mlflow.pyfunc.model", "python_model": "python_model.pkl"}
    document = mlmodel("x", {})
    save(folder, {**document, "flavors": {"python_function": {**keys, "cloudpickle_version": "3.1.3"}}})
    (folder / "python_model.pkl").write_bytes(pickle.dumps(Marker(marker)))
    return folder


def test_without_mlflow_a_trusted_folder_is_told_what_to_install(tmp_path: Path) -> None:
    folder = function(tmp_path / "store" / "m", tmp_path / "marker")
    write_xgboost(tmp_path / "store" / "xgboost")
    with serve(tmp_path / "log", folder.parent, "--engine-parameters", TRUST) as served:
        answer = httpx.post(f"{served.url}/v2/repository/models/m/load", timeout=60)
    assert answer.status_code >= 400
    assert "No module named 'mlflow'" in answer.text
    assert "--install-packages start" in answer.text
    assert not (tmp_path / "marker").exists()
