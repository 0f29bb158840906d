"""One model of digits in each engine's file and in every dress answers every body: see `engine_matrix`, of which
`docs/matrix.md` is made."""

import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from tests.e2e.engine_matrix import BODIES, DRESSES, RIGHT, cell
from tests.harness.digit_networks import chances
from tests.harness.engine_files import PARAMETERS, ROWS, EngineFile, write_all
from tests.harness.mlflow_folders import mlmodel, save
from tests.harness.server_process import ServerProcess, serve
from tests.harness.table_models import TREE, trained
from tests.harness.v2_clients import infer

from trivium.codecs import ndlist
from trivium.types.payload import Tensors

CLASSES, CLOSE = 10, 1e-5
HANDLER = "sklearn_djl"
"""The model that DJL's own handler serves, which answers JSON."""

BINARY = {"NDList": "tensor/ndlist", "npz": "tensor/npz"}
TRITON = {
    "onnx": ('backend: "onnxruntime"', "model.onnx"),
    "torch": ('backend: "pytorch"', "model.pt"),
    "tensorflow": ('platform: "tensorflow_savedmodel"', "model.savedmodel"),
    "openvino": ('backend: "openvino"', "model.xml"),
    "xgboost": ('backend: "fil"', "xgboost.json"),
    "lightgbm": ('backend: "fil"', "model.txt"),
}
FIL = """max_batch_size: 64
input [{{ name: "input__0" data_type: TYPE_FP32 dims: [ 64 ] }}]
output [{{ name: "output__0" data_type: TYPE_FP32 dims: [ 10 ] }}]
parameters [
  {{ key: "model_type" value: {{ string_value: "{kind}" }} }},
  {{ key: "predict_proba" value: {{ string_value: "true" }} }},
  {{ key: "output_class" value: {{ string_value: "true" }} }}
]
"""
KINDS = {"xgboost": "xgboost_json", "lightgbm": "lightgbm"}
TORCH = """max_batch_size: 64
input [{ name: "INPUT__0" data_type: TYPE_FP32 dims: [ 64 ] }]
output [{ name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 10 ] }]
"""
PROPERTIES = {"sklearn": f"option.skops_trusted_types={TREE}\n", "lightgbm": "engine=LightGBM\n"}
MLFLOW = {
    "onnx": ("onnx", {"data": "graph.onnx", "onnx_version": "1.23.2"}),
    "xgboost": ("xgboost", {"data": "boosted.json", "model_class": "xgboost.sklearn.XGBClassifier"}),
    "lightgbm": ("lightgbm", {"data": "light.txt", "lgb_version": "4.7.0"}),
    "sklearn": ("sklearn", {"pickled_model": "forest.skops", "serialization_format": "skops"}),
}


def copied(file: EngineFile, folder: Path, name: str = "") -> Path:
    """Copy a model, with what lies beside its file, into a folder, under a name of its own where one is given."""
    folder.mkdir(parents=True, exist_ok=True)
    if file.path.is_dir():
        return Path(shutil.copytree(file.path, folder / (name or file.path.name), dirs_exist_ok=True))
    place = folder / (name or file.path.name)
    shutil.copy(file.path, place)
    for other in (".bin", ".pdiparams"):
        if (beside := file.path.with_suffix(other)).exists():
            shutil.copy(beside, place.with_suffix(other))
    return place


def bare(file: EngineFile, root: Path) -> Path:
    """Return a file, or a SavedModel, by itself."""
    name = f"{file.engine}_bare"
    if file.engine == "paddle":  # whose file has a name that tells
        return copied(file, root / name).parent
    return copied(file, root, name + file.path.suffix)


def djl(file: EngineFile, root: Path) -> Path:
    """Return a folder as DJL Serving takes it, named after its model's file where that has to be."""
    folder = root / f"{file.engine}_djl"
    names = {"sklearn": "model.skops", "lightgbm": "model.txt", "paddle": "", "tensorflow": "."}
    copied(file, folder, names.get(file.engine, f"{folder.name}{file.path.suffix}"))
    (folder / "serving.properties").write_text(PROPERTIES.get(file.engine, ""))
    return folder


def triton(file: EngineFile, root: Path) -> Path:
    """Return a model of a Triton repository."""
    folder = root / f"{file.engine}_triton"
    words, name = TRITON[file.engine]
    copied(file, folder / "1", name)
    more = FIL.format(kind=KINDS[file.engine]) if file.engine in KINDS else ""
    more = TORCH if file.engine == "torch" else more
    (folder / "config.pbtxt").write_text(f"{words}\n{more or 'max_batch_size: 64'}\n")
    return folder


def mlflow(file: EngineFile, root: Path) -> Path:
    """Return a folder that MLflow wrote."""
    folder = root / f"{file.engine}_mlflow"
    copied(file, folder)
    return save(folder, mlmodel(*MLFLOW[file.engine]))


MAKERS: dict[str, Callable[[EngineFile, Path], Path]] = {
    "bare": bare,
    "DJL": djl,
    "Triton": triton,
    "Triton (FIL)": triton,
    "MLflow": mlflow,
}
SUFFIXES = {"bare": "bare", "DJL": "djl", "Triton": "triton", "Triton (FIL)": "triton", "MLflow": "mlflow"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, EngineFile]:
    pytest.importorskip("tensorflow.version")
    return {one.engine: one for one in write_all(tmp_path_factory.mktemp("files"))}


@pytest.fixture(scope="module")
def served(
    files: dict[str, EngineFile], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, ServerProcess]]:
    """Two servers of all models in all dresses: under our own profile, and under TorchServe's."""
    root = tmp_path_factory.mktemp("served")
    paths = [
        MAKERS[dress](files[engine], root / ("repository" if dress.startswith("Triton") else ""))
        for engine, dresses in DRESSES.items()
        for dress in dresses
    ]
    paths = [*(path for path in paths if path.parent.name != "repository"), root / "repository"]
    words = (*PARAMETERS, "--startup-timeout", "280")
    with (
        serve(root / "log", *paths, *words) as own,
        serve(root / "log2", *paths, *words, "--profile", "torchserve") as other,
    ):
        yield {"own": own, "torchserve": other}


def name_of(server: ServerProcess, engine: str, dress: str) -> str:
    """Return what a server calls a model: a file named inference is its folder's."""
    return f"{engine}_{SUFFIXES[dress]}"


def asked(server: ServerProcess, model: str, body: str, rows: np.ndarray) -> np.ndarray | str:
    """Return the scores or digits of an answer, [20, 10] or [20]; or its status, where it is refused."""
    if body.startswith("v2 "):
        inputs = httpx.get(f"{server.url}/v2/models/{model}").json()["inputs"]
        tensor = inputs[0] if inputs else {"name": "x", "datatype": "FP32"}  # a handler's may have any name
        sent = rows.astype(np.float64) if tensor["datatype"] == "FP64" else rows
        return told(infer(server, model, tensor["name"], sent, body.removeprefix("v2 ").lower()))
    content: bytes = json.dumps(rows.tolist()).encode()
    url, accept = f"{server.url}/predictions/{model}", "tensor/npz"
    if body == "NDList":
        content = ndlist.encode(Tensors.of({"": rows}).items)
    elif body == "npz":
        packed = io.BytesIO()
        np.savez(packed, rows)
        content = packed.getvalue()
    elif body == "MLflow":
        content, accept = json.dumps({"inputs": rows.tolist()}).encode(), "application/json"
        url = f"{server.url}/invocations?model_name={model}"
    elif body == "TorchServe":
        accept = "application/json"
    if model == HANDLER:
        accept = "application/json"
    headers = {"Content-Type": BINARY.get(body, "application/json"), "Accept": accept}
    answer = httpx.post(url, content=content, headers=headers, timeout=120)
    if answer.status_code != 200:
        return str(answer.status_code) + answer.text
    if answer.headers.get("Content-Type", "") == "tensor/npz":
        with np.load(io.BytesIO(answer.content)) as arrays:
            return told({name: arrays[name] for name in arrays.files})
    document = answer.json()
    if isinstance(document, dict) and "outputs" in document:
        return told({one["name"]: np.reshape(one["data"], one["shape"]) for one in document["outputs"]})
    found = document["predictions"] if isinstance(document, dict) else document
    if isinstance(found, dict):
        return told({name: np.asarray(one) for name, one in found.items()})
    return np.asarray(found)


def told(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the scores among outputs, or the digits where there are none."""
    scores = [one for one in arrays.values() if one.ndim == 2 and one.shape[1] == CLASSES]
    if scores:
        return scores[0]
    first = next(iter(arrays.values())).ravel()
    if first.dtype.kind in "OSU":  # the body of a handler
        return np.asarray(json.loads(first[0])["predictions"])
    return first


def judged(found: np.ndarray | str, wanted: np.ndarray) -> str:
    """Return what a cell shows of an answer."""
    if isinstance(found, str):
        return found
    if found.ndim == 2:
        np.testing.assert_allclose(found, wanted, atol=CLOSE)
        found = found.argmax(axis=1)
    return f"{sum(int(a) == int(b) for a, b in zip(found, wanted.argmax(axis=1), strict=True))}/{ROWS}"


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("engine", "dress"), [(one, dress) for one in DRESSES for dress in DRESSES[one]])
def test_a_cell(
    served: dict[str, ServerProcess], files: dict[str, EngineFile], engine: str, dress: str, body: str
) -> None:
    server = served["torchserve" if body == "TorchServe" else "own"]
    file = files[engine]
    wanted = trained(engine).predict_proba(file.rows()) if file.is_tree else chances()
    found = judged(asked(server, name_of(server, engine, dress), body, file.rows()), wanted)
    assert found[:5] == cell(engine, dress, body), found


def test_every_engine_has_a_row_and_most_cells_are_right() -> None:
    cells = [cell(engine, dress, body) for engine in DRESSES for dress in DRESSES[engine] for body in BODIES]
    assert cells.count(RIGHT) >= len(cells) * 9 // 10
