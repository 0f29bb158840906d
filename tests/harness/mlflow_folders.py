"""Folders of MLflow as its versions 1 to 3 write them, by hand: models of digits in the files of each library."""

import json
import operator
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tests.harness.table_models import digits, trained, write

COLUMNS = [f"pixel_{at}" for at in range(64)]
OLD, NEW = "1.30.0", "3.17.2"
SIGNED = {
    "columns": [{"type": "double", "name": name, "required": True} for name in COLUMNS],
    "tensor": [{"type": "tensor", "tensor-spec": {"dtype": "float32", "shape": [-1, 64]}}],
}


def mlmodel(
    flavor: str, keys: dict[str, Any], version: str = NEW, signature: Any = None, **more: Any
) -> dict[str, Any]:
    """Return what a file MLmodel holds, with the keys that this version of MLflow writes."""
    place = (
        {"model_path": keys["pickled_model"]}
        if "pickled_model" in keys
        else {"data": keys.get("data", "data")}
    )
    function = {"loader_module": f"mlflow.{flavor}", "python_version": "3.11.7", **place}
    document: dict[str, Any] = {"flavors": {"python_function": function, flavor: keys}}
    if version == NEW:
        function["env"] = {"conda": "conda.yaml", "virtualenv": "python_env.yaml"}
        document |= {"is_signature_from_type_hint": False, "mlflow_version": version, "model_id": None}
        document |= {"model_size_bytes": 1, "prompts": None, "type_hint_from_example": False}
    else:
        function["env"] = "conda.yaml"
        document |= {"artifact_path": "model", "run_id": "0" * 32}
    document |= {"model_uuid": "0" * 32, "utc_time_created": "2026-11-27 16:18:26.556744"}
    if signature is not None:
        document["signature"] = {"inputs": json.dumps(signature), "outputs": None, "params": None}
    return {**document, **more}


def save(folder: Path, document: object) -> Path:
    """Write a folder's MLmodel, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = document if isinstance(document, str) else yaml.safe_dump(document)
    (folder / "MLmodel").write_text(text)
    return folder


def write_xgboost(folder: Path, version: str = NEW) -> Path:
    """A classifier of XGBoost, without a signature."""
    file = "model.ubj" if version == NEW else "model.json"
    write(folder / file, "xgboost")
    keys = {
        "code": None,
        "data": file,
        "model_class": "xgboost.sklearn.XGBClassifier",
        "xgb_version": "3.2.0",
    }
    if version == NEW:
        keys["model_format"] = "ubj"
    else:
        folder.joinpath(file).rename(folder / "model.xgb")
        keys["data"] = "model.xgb"
    return save(folder, mlmodel("xgboost", keys, version))


def write_lightgbm(folder: Path, version: str = NEW) -> Path:
    """A booster of LightGBM, with columns: MLflow answers the probabilities of all classes."""
    write(folder / "model.txt", "lightgbm").rename(folder / "model.lgb")
    keys = {"code": None, "data": "model.lgb", "lgb_version": "4.7.0"}
    if version == NEW:
        keys |= {"model_class": "lightgbm.basic.Booster", "serialization_format": "skops"}
    return save(folder, mlmodel("lightgbm", keys, version, SIGNED["columns"]))


def write_sklearn(folder: Path, version: str = NEW, suffix: str = ".skops") -> Path:
    """A forest of scikit-learn, with columns."""
    write(folder / f"model{suffix}", "sklearn")
    keys = {"pickled_model": f"model{suffix}", "sklearn_version": "1.9.1"}
    kept = {".skops": "skops", ".pkl": "cloudpickle"}[suffix]
    return save(
        folder, mlmodel("sklearn", {**keys, "serialization_format": kept}, version, SIGNED["columns"])
    )


def write_onnx(folder: Path, version: str = NEW) -> Path:
    """A linear model of digits, converted, with one tensor."""
    onnx = pytest.importorskip("onnx")
    folder.mkdir(parents=True, exist_ok=True)
    weights, bias = linear()
    helper, kind = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["pixels", "weights", "bias"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["scores"]),
        ],
        "digits",
        [helper.make_tensor_value_info("pixels", kind.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("scores", kind.FLOAT, ["n", 10])],
        [onnx.numpy_helper.from_array(weights, "weights"), onnx.numpy_helper.from_array(bias, "bias")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        folder / "model.onnx",
    )
    keys: dict[str, Any] = {"data": "model.onnx", "onnx_version": "1.23.2"}
    if version == NEW:
        keys |= {"providers": ["CUDAExecutionProvider", "CPUExecutionProvider"], "onnx_session_options": None}
    return save(folder, mlmodel("onnx", keys, version, SIGNED["tensor"]))


def write_pytorch(folder: Path, version: str = NEW) -> Path:
    """The linear model as a scripted module, which MLflow keeps under the name of a pickled one."""
    torch = pytest.importorskip("torch")
    weights, bias = linear()
    layer = torch.nn.Linear(64, 10)
    layer.load_state_dict({"weight": torch.from_numpy(weights.T.copy()), "bias": torch.from_numpy(bias)})
    (folder / "data").mkdir(parents=True)
    torch.jit.save(torch.jit.script(layer), str(folder / "data" / "model.pth"))
    keys = {"model_data": "data", "pytorch_version": "2.13.0", "code": None}
    return save(folder, mlmodel("pytorch", keys, version, SIGNED["tensor"]))


def linear() -> tuple[Any, Any]:
    """Return weights and bias by which digits are told: FP32[64, 10] and FP32[10]."""
    rows, wanted = digits()
    model = (
        pytest.importorskip("sklearn.linear_model").LogisticRegression(max_iter=2000).fit(rows / 16, wanted)
    )
    return (model.coef_.T / 16).astype(np.float32), model.intercept_.astype(np.float32)


class Marker:
    """What a pickle does whose author wants to be noticed: it writes a file when it is opened."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (f"open({str(self._path)!r}, 'a').write('x')",)


def write_marked(folder: Path, marker: Path) -> Path:
    """A pickle of scikit-learn that writes a marker, and holds a forest all the same."""
    write_sklearn(folder, suffix=".pkl")
    forest = trained("sklearn")
    (folder / "model.pkl").write_bytes(pickle.dumps(_Marked(Marker(marker), forest)))
    return folder


class _Marked:
    """A forest whose pickle does something else as well: it is the second of two things."""

    def __init__(self, marker: Marker, forest: Any) -> None:
        self._both = (marker, forest)

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.getitem, (self._both, 1)


WRITERS = {
    "xgboost": write_xgboost,
    "lightgbm": write_lightgbm,
    "sklearn": write_sklearn,
    "onnx": write_onnx,
    "pytorch": write_pytorch,
}
