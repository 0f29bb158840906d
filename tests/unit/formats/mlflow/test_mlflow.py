"""Folders of MLflow: what is read of MLmodel, which engine serves each flavor, and what every wrong file is told."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.harness.mlflow_folders import NEW, OLD, mlmodel, save

from trivium.formats.mlflow.repository import FORMAT
from trivium.types.datatype import DataType
from trivium.types.errors import ConfigError
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Defaults, ModelFacts, ModelSpec, TensorSpec

COLUMNS = [{"type": "double", "name": "a"}, {"type": "long", "name": "b", "required": False}]
TENSOR = [{"type": "tensor", "name": "x", "tensor-spec": {"dtype": "float32", "shape": [-1, 2]}}]
FACTS = ModelFacts(
    (TensorSpec("input-0", DataType.FP64, (-1, 2)),), (TensorSpec("predict", DataType.INT64, (-1,)),), True
)


def read(folder: Path) -> ModelSpec:
    (spec,) = FORMAT.read(folder, Defaults(queue_items=7)).specs
    return spec


def faults(folder: Path) -> tuple[Finding, ...]:
    reading = FORMAT.read(folder, Defaults())
    assert reading.specs == ()
    (found,) = reading.unreadable
    return tuple(one for one in found.findings if one.severity is Severity.ERROR)


def put(folder: Path, *files: str) -> Path:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    return folder


FLAVORS: dict[str, tuple[str, dict[str, Any], str, str, dict[str, str]]] = {
    "onnx": ("onnx", {"data": "model.onnx"}, "model.onnx", "onnx", {}),
    "onnx's threads": (
        *("onnx", {"data": "m.onnx", "onnx_session_options": {"intra_op_num_threads": 2}}, "m.onnx", "onnx"),
        {"intra_op_thread_count": "2"},
    ),
    "a booster of xgboost": (
        *("xgboost", {"data": "model.xgb"}, "model.xgb", "xgboost"),
        {"answer": "values", "datatype": "FP64"},
    ),
    "an estimator of xgboost": (
        *("xgboost", {"data": "model.ubj", "model_class": "xgboost.sklearn.XGBClassifier"}, "model.ubj"),
        *("xgboost", {"datatype": "FP64"}),
    ),
    "a booster of lightgbm": (
        *(
            "lightgbm",
            {"data": "model.lgb", "model_class": "lightgbm.basic.Booster"},
            "model.lgb",
            "lightgbm",
        ),
        {"answer": "values", "datatype": "FP64"},
    ),
    "an estimator of lightgbm": (
        *("lightgbm", {"data": "model.pkl", "model_class": "lightgbm.sklearn.LGBMClassifier"}, "model.pkl"),
        *("sklearn", {"datatype": "FP64"}),
    ),
    "a pickle of sklearn": (
        *("sklearn", {"pickled_model": "model.pkl", "serialization_format": "cloudpickle"}, "model.pkl"),
        *("sklearn", {"datatype": "FP64"}),
    ),
    "a skops of sklearn": (
        *("sklearn", {"pickled_model": "model.skops", "serialization_format": "skops"}, "model.skops"),
        *("sklearn", {"datatype": "FP64"}),
    ),
    "tensorflow's folder": (
        *("tensorflow", {"saved_model_dir": "tfmodel"}, "tfmodel/saved_model.pb", "tensorflow", {}),
    ),
    "keras in a folder": (
        *("tensorflow", {"data": "data", "model_type": "keras", "save_format": "tf"}),
        *("data/model/saved_model.pb", "tensorflow", {}),
    ),
    "an exported program": ("pytorch", {"model_data": "data"}, "data/model.pt2", "torch", {}),
}


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("name", FLAVORS)
def test_a_native_flavor_is_its_engine_s(tmp_path: Path, name: str, version: str) -> None:
    flavor, keys, file, engine, parameters = FLAVORS[name]
    folder = put(save(tmp_path / "m", mlmodel(flavor, keys, version)), file)
    assert FORMAT.claims(folder)
    spec = read(folder)
    assert (spec.name, spec.version, spec.engine) == ("m", "1", engine)
    assert spec.entry == file.removesuffix("/saved_model.pb")
    assert spec.parameters == parameters
    assert spec.limits.queue_items == 7
    assert spec.reports == ()
    assert (spec.origin["engine"].key, spec.origin["engine"].line) == (
        f"flavors.{flavor}",
        line(folder, flavor),
    )


def line(folder: Path, flavor: str) -> int:
    return (folder / "MLmodel").read_text().splitlines().index(f"  {flavor}:") + 1


def test_a_scripted_module_is_told_by_what_its_archive_holds(tmp_path: Path) -> None:
    folder = put(save(tmp_path / "m", mlmodel("pytorch", {"model_data": "data"}, OLD)), "data/model.pth")
    with zipfile.ZipFile(folder / "data/model.pth", "w") as archive:
        archive.writestr("m/code/__torch__.py", "")
    assert (read(folder).engine, read(folder).entry) == ("torch", "data/model.pth")


@pytest.mark.parametrize("loader", ["onnx", "xgboost", "lightgbm", "sklearn"])
def test_a_python_function_of_a_native_flavor_is_that_flavor(tmp_path: Path, loader: str) -> None:
    key = "model_path" if loader == "sklearn" else "data"
    keys = {
        "loader_module": f"mlflow.{loader}",
        key: "model.file",
        "env": "conda.yaml",
        "python_version": "3.11",
    }
    folder = put(save(tmp_path / "m", {"flavors": {"python_function": keys}}), "model.file")
    assert (read(folder).engine, read(folder).entry) == (loader, "model.file")


FUNCTION = {"loader_module": "mlflow.pyfunc.model", "python_model": "python_model.pkl"}
OWN: dict[str, dict[str, Any]] = {
    "code of its own": {"flavors": {"python_function": FUNCTION}},
    "a library without a row": {
        "flavors": {"python_function": {"loader_module": "mlflow.statsmodels"}, "statsmodels": {}}
    },
    "a pickled module": mlmodel("pytorch", {"model_data": "data"}),
    "a pipeline that takes texts": mlmodel("sklearn", {"pickled_model": "model.pkl"}),
    "keras": mlmodel("tensorflow", {"data": "data", "model_type": "keras", "save_format": "keras"}),
}


@pytest.mark.parametrize("name", OWN)
def test_what_runs_in_its_library_alone_is_loaded_by_mlflow(tmp_path: Path, name: str) -> None:
    texts = [{"type": "string", "name": "city"}, {"type": "datetime", "name": "day", "required": False}]
    signature = {"inputs": json.dumps(texts), "outputs": json.dumps(TENSOR), "params": None}
    document = {**OWN[name], "signature": signature}
    spec = read(put(save(tmp_path / "m", document), "python_model.pkl", "model.pkl", "data/model.pth"))
    assert (spec.engine, spec.entry, spec.translator) == ("python-mlflow", "MLmodel", None)
    assert [(one.name, one.datatype, one.optional) for one in spec.inputs] == [
        ("city", DataType.BYTES, False),
        ("day", DataType.BYTES, True),
    ]
    assert spec.outputs == (TensorSpec("x", DataType.FP32, (-1, 2)),)
    assert spec.handler is not None
    assert spec.handler.settings["columns"] == [["city", "string"], ["day", "datetime"]]


@pytest.mark.parametrize("installs", [False, True])
def test_packages_are_installed_where_the_server_may_and_told_of_where_not(
    tmp_path: Path, installs: bool
) -> None:
    folder = put(save(tmp_path / "m", OWN["code of its own"]), "python_model.pkl", "requirements.txt")
    (spec,) = FORMAT.read(folder, Defaults(installs=installs)).specs
    assert spec.handler is not None
    assert (spec.handler.own is not None) is installs
    assert [one.file for one in spec.reports] == ([] if installs else [str(folder / "requirements.txt")])
    asked = {"python-mlflow.python": "/envs/m/bin/python"}
    (spec,) = FORMAT.read(folder, Defaults(engine_parameters=asked)).specs
    assert spec.handler is not None
    assert (spec.handler.python, spec.reports) == ("/envs/m/bin/python", ())


def test_a_folder_of_the_first_versions_is_read(tmp_path: Path) -> None:
    """MLflow's documentation of its storage format shows this one."""
    text = (
        "time_created: 2018-05-25T17:28:53.35\n\nflavors:\n  sklearn:\n    sklearn_version: 0.19.1\n"
        "    pickled_model: model.pkl\n  python_function:\n    loader_module: mlflow.sklearn\n"
    )
    spec = read(put(save(tmp_path / "m", text), "model.pkl"))
    assert (spec.engine, spec.entry, spec.reports) == ("sklearn", "model.pkl", ())


def test_an_estimator_answers_by_the_method_that_was_saved(tmp_path: Path) -> None:
    document = mlmodel("sklearn", {"pickled_model": "model.skops"})
    document["flavors"]["python_function"]["predict_fn"] = "predict_proba"
    spec = read(put(save(tmp_path / "m", document), "model.skops"))
    assert spec.parameters["answer"] == "predict_proba"
    assert spec.origin["parameters[answer]"].key == "flavors.python_function.predict_fn"


def test_types_that_a_folder_would_have_trusted_are_told_and_not_taken(tmp_path: Path) -> None:
    keys = {"pickled_model": "model.skops", "skops_trusted_types": ["os.System"]}
    spec = read(put(save(tmp_path / "m", mlmodel("sklearn", keys)), "model.skops"))
    assert "skops_trusted_types" not in spec.parameters
    (report,) = spec.reports
    assert report.key == "flavors.sklearn.skops_trusted_types"
    assert "--engine-parameters sklearn.skops_trusted_types=os.System" in report.hint


def test_columns_and_tensors_reach_the_translator(tmp_path: Path) -> None:
    folder = put(save(tmp_path / "m", mlmodel("xgboost", {"data": "model.ubj"}, NEW, COLUMNS)), "model.ubj")
    done = FORMAT.finish(read(folder), FACTS)
    assert done.translator is not None
    arguments = done.translator.arguments
    assert arguments["columns"] == [["a", "double", True], ["b", "long", False]]
    example = json.loads(str(arguments["example"]))
    assert example == {"dataframe_split": {"columns": ["a", "b"], "data": [[0, 0]]}}
    assert done.translator.inputs == FACTS.inputs
    told = [(one.name, one.datatype, one.dims, one.column) for one in done.inputs]
    assert told == [("a", DataType.FP64, (-1, 1), True), ("b", DataType.INT64, (-1, 1), True)]
    save(folder, mlmodel("xgboost", {"data": "model.ubj"}, NEW, TENSOR))
    spec = read(folder)
    assert spec.parameters["datatype"] == "FP32"
    assert FORMAT.finish(spec, FACTS).inputs[0].name == "x"


def test_as_many_columns_as_the_model_takes(tmp_path: Path) -> None:
    folder = put(save(tmp_path / "m", mlmodel("xgboost", {"data": "model.ubj"}, NEW, COLUMNS)), "model.ubj")
    three = replace(FACTS, inputs=(replace(FACTS.inputs[0], dims=(-1, 3)),))
    with pytest.raises(ConfigError, match=r"2 columns, and the model file model\.ubj takes 3"):
        FORMAT.finish(read(folder), three)


def test_a_store_of_folders_and_what_is_none(tmp_path: Path) -> None:
    for name in ("a", "b"):
        put(save(tmp_path / "store" / name, mlmodel("onnx", {"data": "model.onnx"})), "model.onnx")
    assert [spec.name for spec in FORMAT.read(tmp_path / "store", Defaults()).specs] == ["a", "b"]
    assert FORMAT.claims(tmp_path / "store")
    put(tmp_path / "store", "c/model.onnx")
    assert not FORMAT.claims(tmp_path / "store")
    put(tmp_path / "store" / "a", "serving.properties")
    assert not FORMAT.claims(tmp_path / "store" / "a")


def test_a_folder_of_runs_is_told_where_its_model_lies(tmp_path: Path) -> None:
    save(tmp_path / "mlruns" / "0" / "models" / "m-1" / "artifacts", mlmodel("onnx", {}))
    assert str(tmp_path / "mlruns/0/models/m-1/artifacts") in FORMAT.hint(tmp_path / "mlruns" / "0")


@pytest.mark.parametrize(
    ("document", "key", "meant"),
    [
        ({"signatur": None}, "signatur", "signature"),
        ({"run_ids": "0"}, "run_ids", "run_id"),
        (
            {"flavors": {"onnx": {"data": "model.onnx"}, "python_function": {"predict_fun": "predict"}}},
            "flavors.python_function.predict_fun",
            "predict_fn",
        ),
        ({"flavors": {"onnx": {"data": "model.onnx", "provider": []}}}, "flavors.onnx.provider", "providers"),
    ],
)
def test_unknown_keys_are_reported_with_what_was_meant(
    tmp_path: Path, document: dict[str, Any], key: str, meant: str
) -> None:
    whole = {**mlmodel("onnx", {"data": "model.onnx"}), **document}
    spec = read(put(save(tmp_path / "m", whole), "model.onnx"))
    (report,) = spec.reports
    assert (report.key, report.severity) == (key, Severity.NOTICE)
    assert meant in report.hint


def signed(flavor: str, inputs: Any) -> dict[str, Any]:
    keys = {"pickled_model": "model.pkl"} if flavor == "sklearn" else {"data": "model.onnx"}
    return mlmodel(flavor, keys, NEW, inputs)


def alone(flavor: str, keys: dict[str, Any]) -> dict[str, Any]:
    """Return a file of one flavor, without MLflow's own."""
    return {"flavors": {flavor: keys}}


WRONG: dict[str, tuple[Any, str, str]] = {
    "empty": ("", "", "nothing"),
    "no yaml": ("flavors: [", "", "expected"),
    "a list": ("- a", "", "a list"),
    "no flavors": ({"run_id": "0"}, "flavors", "it lacks"),
    "flavors that are none": ({"flavors": "onnx"}, "flavors", "'onnx'"),
    "a flavor that is none": ({"flavors": {"onnx": "model.onnx"}}, "flavors.onnx", "'model.onnx'"),
    "another library's": ({"flavors": {"prophet": {}}}, "flavors", "prophet"),
    "a python model that is not there": (
        {"flavors": {"python_function": FUNCTION}},
        *("flavors.python_function.python_model", "there is no python_model.pkl"),
    ),
    "a python function of nothing": (
        {"flavors": {"python_function": {"data": "model.pkl"}}},
        *("flavors.python_function.loader_module", "it lacks"),
    ),
    "no file": (mlmodel("onnx", {"data": "gone.onnx"}), "flavors.onnx.data", "no file gone.onnx"),
    "a file elsewhere": (mlmodel("onnx", {"data": "../model.onnx"}), "flavors.onnx.data", "../model.onnx"),
    "a path from the root": (mlmodel("onnx", {"data": "/etc/passwd"}), "flavors.onnx.data", "/etc/passwd"),
    "a file that is a number": (mlmodel("onnx", {"data": 3}), "flavors.onnx.data", "3"),
    "a pickled module": (
        alone("pytorch", {"model_data": "data"}),
        "flavors.pytorch.model_data",
        "pickled module",
    ),
    "keras alone": (
        alone("tensorflow", {"data": "data", "model_type": "keras", "save_format": "h5"}),
        *("flavors.tensorflow", "Keras"),
    ),
    "two formats": (
        mlmodel("sklearn", {"pickled_model": "model.pkl", "serialization_format": "skops"}),
        *("flavors.sklearn.serialization_format", "skops"),
    ),
    "an unknown format": (
        mlmodel("sklearn", {"pickled_model": "model.pkl", "serialization_format": "dill"}),
        *("flavors.sklearn.serialization_format", "dill"),
    ),
    "a signature that is no json": (
        {**mlmodel("onnx", {"data": "model.onnx"}), "signature": {"inputs": "["}},
        *("signature.inputs", "no JSON"),
    ),
    "a type that there is not": (
        signed("onnx", [{"type": "decimal", "name": "a"}]),
        "signature.inputs",
        "decimal",
    ),
    "a tensor without a shape": (
        signed("onnx", [{"type": "tensor", "tensor-spec": {"dtype": "float32"}}]),
        *("signature.inputs", "tensor-spec"),
    ),
    "both kinds": (signed("onnx", [*COLUMNS, *TENSOR]), "signature.inputs", "side by side"),
    "a name twice": (signed("onnx", [*COLUMNS, *COLUMNS]), "signature.inputs", "twice"),
    "texts for a table": (
        {
            **alone("sklearn", {"pickled_model": "model.pkl"}),
            "signature": {"inputs": '[{"type": "string", "name": "city"}]'},
        },
        *("signature.inputs", "column 'city' is string"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_named_with_key_line_and_mend(tmp_path: Path, name: str) -> None:
    document, key, word = WRONG[name]
    text = document if isinstance(document, str) else yaml.safe_dump(document)
    folder = put(save(tmp_path / "m", text), "model.onnx", "model.pkl", "data/model.pth")
    (fault,) = faults(folder)
    assert fault.file == str(folder / "MLmodel")
    assert fault.key == key
    assert word in fault.found
    assert fault.expected
    assert fault.hint
    head = f"{'  ' * key.count('.')}{key.rpartition('.')[2]}:"
    lines = [at for at, one in enumerate(text.splitlines(), 1) if key and one.startswith(head)]
    assert fault.line == (lines[0] if lines else fault.line)


def test_a_model_below_a_folder_of_runs_is_named_and_a_large_folder_is_not_walked(tmp_path):
    deep = tmp_path / "mlruns" / "0" / ("a" * 32) / "artifacts" / "model"
    deep.mkdir(parents=True)
    (deep / "MLmodel").write_text("")
    assert FORMAT.hint(tmp_path / "mlruns").endswith(f"serve {deep}.")
    wide = tmp_path / "wide"
    for number in range(2100):
        (wide / f"{number:04}").mkdir(parents=True)
    last = wide / "2099" / "x"
    last.mkdir()
    (last / "MLmodel").write_text("")
    assert FORMAT.hint(wide) == ""
