"""Digits from folders of MLflow in four flavors: v2 by JSON and gRPC, and the scoring bodies at /invocations."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import tritonclient.grpc
from tests.harness.mlflow_folders import COLUMNS, OLD, WRITERS, linear, write_marked, write_xgboost
from tests.harness.server_process import ServerProcess, serve
from tests.harness.table_models import TREE, digits, trained

from trivium.codecs import ndlist
from trivium.types.payload import Tensors

ROWS = 20
TRUSTED = ("--engine-parameters", f"sklearn.skops_trusted_types={TREE}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("served")
    for name, write in WRITERS.items():
        write(root / "store" / name)
    with serve(root / "log", root / "store", *TRUSTED) as served:
        yield served


def expected(model: str) -> list[int]:
    """Return the digits that the bare library finds."""
    rows = digits()[0][:ROWS]
    if model in ("onnx", "pytorch"):
        weights, bias = linear()
        return list((rows @ weights + bias).argmax(axis=1).tolist())
    return [int(one) for one in trained(model).predict(rows)]


def digits_of(model: str, predictions: object) -> list[int]:
    """Return the digits that predictions name: classes, or a score for each."""
    if isinstance(predictions, dict):
        predictions = predictions["scores"]
    found = np.asarray(predictions)
    return [int(one) for one in (found.argmax(axis=1) if found.ndim == 2 else found)]


def score(server: ServerProcess, model: str, body: object, kind: str = "application/json") -> httpx.Response:
    content = body if isinstance(body, str) else json.dumps(body)
    url = f"{server.url}/invocations?model_name={model}"
    return httpx.post(url, content=content, headers={"Content-Type": kind}, timeout=60)


@pytest.mark.parametrize("form", ["dataframe_split", "dataframe_records", "inputs", "instances", "csv"])
@pytest.mark.parametrize("model", WRITERS)
def test_a_scoring_body_names_the_digits(server: ServerProcess, model: str, form: str) -> None:
    rows = digits()[0][:ROWS].tolist()
    if form == "csv":
        lines = "\n".join(",".join(map(str, row)) for row in (COLUMNS, *rows))
        answer = score(server, model, lines, "text/csv")
    elif form == "dataframe_split":
        order = list(range(63, -1, -1)) if model in ("lightgbm", "sklearn") else list(range(64))
        data = [[row[at] for at in order] for row in rows]
        answer = score(server, model, {form: {"columns": [COLUMNS[at] for at in order], "data": data}})
    elif form == "dataframe_records":
        answer = score(server, model, {form: [dict(zip(COLUMNS, row, strict=True)) for row in rows]})
    else:
        answer = score(server, model, {form: rows, "params": {}})
    assert answer.status_code == 200, answer.text
    assert list(answer.json()) == ["predictions"]
    assert digits_of(model, answer.json()["predictions"]) == expected(model)


@pytest.mark.parametrize("model", WRITERS)
def test_v2_names_the_digits_over_json_and_grpc(server: ServerProcess, model: str) -> None:
    rows = digits()[0][:ROWS]
    told = httpx.get(f"{server.url}/v2/models/{model}").json()
    inputs, names = told["inputs"], [output["name"] for output in told["outputs"]]
    assert [one["name"] for one in inputs] == (COLUMNS if len(inputs) == 64 else [inputs[0]["name"]])
    assert len(inputs) == (64 if model in ("lightgbm", "sklearn") else 1)
    parts = np.hsplit(rows, len(inputs))
    tensors = [
        {**one, "shape": list(part.shape), "data": part.ravel().tolist()}
        for one, part in zip(inputs, parts, strict=True)
    ]
    answer = httpx.post(f"{server.url}/v2/models/{model}/infer", json={"inputs": tensors}, timeout=60)
    assert answer.status_code == 200, answer.text
    first = answer.json()["outputs"][0]
    assert digits_of(model, np.reshape(first["data"], first["shape"])) == expected(model)
    with tritonclient.grpc.InferenceServerClient(server.grpc_address) as client:
        sent = [
            tritonclient.grpc.InferInput(one["name"], [ROWS, 64 // len(inputs)], one["datatype"])
            for one in inputs
        ]
        for each, one, part in zip(sent, inputs, parts, strict=True):
            each.set_data_from_numpy(part.astype(np.float64 if one["datatype"] == "FP64" else np.float32))
        found = client.infer(model, sent).as_numpy(names[0])
    assert digits_of(model, found) == expected(model)


@pytest.mark.parametrize("shape", [[ROWS], [ROWS, 1]])
@pytest.mark.parametrize("model", ["lightgbm", "sklearn"])
def test_columns_of_mlserver_s_clients_are_one_table(
    server: ServerProcess, model: str, shape: list[int]
) -> None:
    """MLServer's requests have a tensor for each column, in any order, of FP32 where the signature has doubles."""
    rows = digits()[0][:ROWS]
    tensors = [
        {
            "name": name,
            "datatype": "FP32" if at % 2 else "INT64",
            "shape": shape,
            "data": rows[:, at].tolist(),
        }
        for at, name in reversed(list(enumerate(COLUMNS)))
    ]
    inputs = [{**one, "data": list(map(int, one["data"]))} for one in tensors]
    kind = {"parameters": {"content_type": "pd"}}
    for route, more in ((f"v2/models/{model}/infer", kind), (f"predictions/{model}", {})):
        answer = httpx.post(f"{server.url}/{route}", json={"inputs": inputs, **more}, timeout=60)
        assert answer.status_code == 200, answer.text
        first = answer.json()["outputs"][0]
        assert digits_of(model, np.reshape(first["data"], first["shape"])) == expected(model)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"name": "pixel_x"}, "pixel_x"),
        ({"shape": [1], "data": [0]}, "several lengths"),
        ({"shape": [1, 2]}, "[-1,1]"),
        ({"datatype": "BYTES", "data": ["a", "b"]}, "FP64"),
    ],
)
def test_a_wrong_column_is_refused_by_its_name(
    server: ServerProcess, change: dict[str, object], word: str
) -> None:
    columns = [{"name": name, "datatype": "FP64", "shape": [2], "data": [0, 0]} for name in COLUMNS]
    columns[5] = {**columns[5], **change}
    answer = httpx.post(f"{server.url}/v2/models/sklearn/infer", json={"inputs": columns}, timeout=60)
    assert 400 <= answer.status_code < 500, answer.text
    assert word in answer.json()["error"]


@pytest.mark.parametrize("form", ["npz", "ndlist", "rows"])
@pytest.mark.parametrize("model", WRITERS)
def test_bodies_of_djl_and_torchserve_name_the_digits(server: ServerProcess, model: str, form: str) -> None:
    rows = digits()[0][:ROWS]
    packed = io.BytesIO()
    np.savez(packed, rows)
    kinds = {"npz": "tensor/npz", "ndlist": "tensor/ndlist", "rows": "application/json"}
    listed = b"".join(bytes(one) for one in ndlist.pieces(Tensors.of({"": rows}).items))
    body = {"npz": packed.getvalue(), "ndlist": listed, "rows": json.dumps(rows.tolist()).encode()}[form]
    headers = {"Content-Type": kinds[form], "Accept": "application/json"}
    answer = httpx.post(f"{server.url}/predictions/{model}", content=body, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    first = answer.json()["outputs"][0]
    assert digits_of(model, np.reshape(first["data"], first["shape"])) == expected(model)


@pytest.mark.parametrize(
    ("body", "word", "error_code"),
    [
        (
            {"dataframe_split": {"columns": COLUMNS[1:], "data": [[0] * 63]}},
            "pixel_0",
            "INVALID_PARAMETER_VALUE",
        ),
        ({"dataframe_split": {"columns": COLUMNS, "data": [["x"] * 64]}}, "pixel_0", "BAD_REQUEST"),
        ({"inputs": [[0] * 64], "instances": [[0] * 64]}, "exactly one", "BAD_REQUEST"),
        ({"data": [[0] * 64]}, "dataframe_split", "BAD_REQUEST"),
    ],
)
def test_a_wrong_body_is_refused_in_mlflow_s_form(
    server: ServerProcess, body: object, word: str, error_code: str
) -> None:
    answer = score(server, "lightgbm", body)
    assert answer.status_code == 400
    assert answer.json()["error_code"] == error_code
    assert word in answer.json()["message"]


def test_one_folder_in_an_old_form_needs_no_name(tmp_path: Path) -> None:
    folder = write_xgboost(tmp_path / "m", OLD)
    with serve(tmp_path / "log", folder) as served:
        url = f"{served.url}/invocations"
        answer = httpx.post(url, json={"inputs": digits()[0][:ROWS].tolist()}, timeout=60)
    assert answer.status_code == 200, answer.text
    assert answer.json()["predictions"] == expected("xgboost")


def test_a_pickle_leaves_no_marker_until_it_is_trusted(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    folder = write_marked(tmp_path / "store" / "marked", marker)
    write_xgboost(tmp_path / "store" / "xgboost")
    command = [sys.executable, "-m", "trivium.cli.main", "check", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "sklearn.trust_insecure_model_files=true" in "".join(done.stdout.split())
    with serve(tmp_path / "log", tmp_path / "store") as served:
        for _ in range(5):
            load = httpx.post(f"{served.url}/v2/repository/models/marked/load", timeout=60)
            assert load.status_code >= 400
        assert httpx.get(f"{served.url}/v2/models/marked/ready").status_code >= 400
    assert not marker.exists()
    trust = ("--engine-parameters", "sklearn.trust_insecure_model_files=true")
    with serve(tmp_path / "log2", folder, *trust) as served:
        answer = httpx.post(
            f"{served.url}/invocations", json={"inputs": digits()[0][:ROWS].tolist()}, timeout=60
        )
    assert marker.exists()
    assert answer.status_code == 200, answer.text
    assert answer.json()["predictions"] == expected("sklearn")
