"""Chooses what serves a folder of MLflow: a row per flavor, native ones before `python_function`.

A row looks at the flavor's keys and at names of files, and into an archive's list of names where a file's name tells
nothing; it opens no model. Source: MLflow's `save_model` of each flavor, 1.x to 3.x.
"""

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from trivium.files import open_file
from trivium.formats.mlflow.document import FILE, ModelDocument
from trivium.types.findings import Finding, Severity
from trivium_worker.estimators import FORMATS, SKOPS, TYPES

LIST, NAMED, ROWS = "list", "named", "rows"
"""How predictions are written: the first output's values; the outputs by their names; columns by their numbers."""

PYFUNC, FUNCTION = "python_function", "python-mlflow"
"""The flavor that MLflow has for every model, and the engine in which MLflow itself loads it."""

_TABLES = ("xgboost", "lightgbm", "sklearn")
_COMMON = frozenset(["code", "extra_files", "requirements_file", "env", "python_version", "resources"])
_SESSION = {"intra_op_num_threads": "intra_op_thread_count", "inter_op_num_threads": "inter_op_thread_count"}
_PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")
_OWN = "Serve it with mlflow models serve, or load it in a handler: a DJL folder with model.py."
_BUNDLED = ".skops"


@dataclass(frozen=True, slots=True)
class FlavorChoice:
    """Names the engine that serves a folder, the file or folder that it opens, and its parameters with their keys.
    `key` is the flavor's place.
    """

    engine: str
    entry: str
    key: str
    answers: str
    parameters: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    notices: tuple[Finding, ...] = ()

    @property
    def takes_tables(self) -> bool:
        """Does its engine take one matrix of numbers, whatever the signature says?"""
        return self.engine in _TABLES

    @property
    def is_function(self) -> bool:
        """Does MLflow itself load it?"""
        return self.engine == FUNCTION


@dataclass(frozen=True, slots=True)
class _Flavor:
    """One flavor of a file: its keys, and those of `python_function`, which say where the model is if these do not."""

    document: ModelDocument
    name: str
    keys: Mapping[str, Any]
    key: str

    def text(self, name: str, default: str = "") -> str:
        """Return the text of a key. Raises ConfigError for what is none."""
        value = self.keys.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            self.document.refuse(f"{self.key}.{name}", f"{value!r:.80}", "a text", "Put it into quotes.")
        return str(value)

    def entry(self, *names: str, default: str = "", is_folder: bool = False) -> str:
        """Return the path that one of these keys names. Raises ConfigError for one that is not there."""
        name = next((one for one in names if self.keys.get(one) is not None), names[0])
        path, place = self.text(name, default).rstrip("/"), f"{self.key}.{name}"
        if not path:
            self.document.refuse(place, "it lacks", "the model's file, below the folder", "Write the key.")
        if path.startswith("/") or ".." in path.split("/") or "\\" in path or "\0" in path:
            self.document.refuse(
                place, repr(path)[:80], "a path below the folder", "Name a file of the folder."
            )
        whole = self.document.path.parent / path
        if not (whole.is_dir() if is_folder else whole.is_file()):
            kind = "folder" if is_folder else "file"
            hint = f"Put it there, or name the model's {kind} in {place}."
            self.document.refuse(place, f"there is no {kind} {path}", f"a {kind} of the folder", hint)
        return path

    def choice(
        self, engine: str, entry: str, answers: str, known: str, **parameters: tuple[str, str]
    ) -> FlavorChoice:
        """Return the choice, with a notice for each key that nothing reads."""
        notices = self.document.unknown(f"{self.key}.", self.keys, _COMMON | set(known.split()))
        if self.keys.get("code"):
            found = (
                f"the modules of {self.keys['code']!r:.60} are not imported: the model is opened without them"
            )
            hint = "Install them where the server runs, if the model needs them."
            place = f"{self.key}.code"
            notices.append(self.document.finding(place, found, "", hint, Severity.NOTICE))
        return FlavorChoice(engine, entry, self.key, answers, parameters, tuple(notices))


def _onnx(flavor: _Flavor) -> FlavorChoice:
    entry = flavor.entry("data", "model_path", default="model.onnx")
    told = flavor.keys.get("onnx_session_options") or {}
    place = f"{flavor.key}.onnx_session_options"
    if not isinstance(told, dict):
        flavor.document.refuse(place, f"{told!r:.80}", "a mapping", "Correct it, or remove the key.")
    parameters = {_SESSION[name]: (str(value), place) for name, value in told.items() if name in _SESSION}
    notices = [
        flavor.document.finding(
            place, f"{name} has no effect here", "", "Set it by --engine-parameters onnx...", Severity.NOTICE
        )
        for name in told
        if name not in _SESSION
    ]
    if others := [one for one in flavor.keys.get("providers") or () if one not in _PROVIDERS]:
        found = f"{', '.join(map(str, others))[:80]}: where a model runs is the server's to say"
        place = f"{flavor.key}.providers"
        notices.append(flavor.document.finding(place, found, "", "", Severity.NOTICE))
    known = "data model_path onnx_version onnx_session_options providers save_as_external_data"
    chosen = flavor.choice("onnx", entry, NAMED, known, **parameters)
    return replace(chosen, notices=(*chosen.notices, *notices))


def _xgboost(flavor: _Flavor) -> FlavorChoice:
    entry = flavor.entry("data", "model_path", default="model.xgb")
    known = "data model_path model_class model_format xgb_version"
    kind = flavor.text("model_class", "xgboost.core.Booster")
    return flavor.choice("xgboost", entry, LIST, known, **_of_booster(flavor, kind))


def _lightgbm(flavor: _Flavor) -> FlavorChoice:
    entry = flavor.entry("data", "model_path", default="model.lgb")
    kind = flavor.text("model_class", "lightgbm.basic.Booster")
    if not kind.endswith(".Booster"):
        return _estimator(flavor, entry, "data model_path model_class lgb_version")
    known = "data model_path model_class lgb_version serialization_format skops_trusted_types"
    return flavor.choice("lightgbm", entry, LIST, known, **_of_booster(flavor, kind))


def _of_booster(flavor: _Flavor, kind: str) -> dict[str, tuple[str, str]]:
    """Return the parameters by which a booster answers its own values, as MLflow's wrapper has it."""
    return {"answer": ("values", f"{flavor.key}.model_class")} if kind.endswith(".Booster") else {}


def _sklearn(flavor: _Flavor) -> FlavorChoice:
    entry = flavor.entry("pickled_model", "data", "model_path", default="model.pkl")
    return _estimator(flavor, entry, "pickled_model data model_path sklearn_version")


def _estimator(flavor: _Flavor, entry: str, known: str) -> FlavorChoice:
    """Return the choice for an estimator in a skops file or a pickle: which of both its name has to say."""
    place = f"{flavor.key}.serialization_format"
    written, is_skops = flavor.text("serialization_format"), entry.lower().endswith(FORMATS[SKOPS])
    if written and written not in FORMATS:
        flavor.document.refuse(place, written[:60], f"one of {', '.join(FORMATS)}", "Save the model anew.")
    if written and (written == SKOPS) is not is_skops:
        hint = f"Name the file model{_BUNDLED if written == SKOPS else '.pkl'}, or correct the key."
        flavor.document.refuse(place, f"{written}, and the file is {entry}", "a file of that format", hint)
    parameters = {}
    method = _pyfunc(flavor.document).get("predict_fn", "predict")
    if method != "predict":
        parameters["answer"] = (str(method), f"flavors.{PYFUNC}.predict_fn")
    known += " serialization_format skops_trusted_types predict_fn loader_module"
    chosen = flavor.choice("sklearn", entry, LIST, known, **parameters)
    if not (is_skops and flavor.keys.get(TYPES)):
        return chosen
    found = "a folder does not say which types are to be trusted: whoever starts the server does"
    hint = f"If you trust them: --engine-parameters sklearn.{TYPES}={':'.join(map(str, flavor.keys[TYPES]))}"
    notice = flavor.document.finding(f"{flavor.key}.{TYPES}", found, "", hint, Severity.NOTICE)
    return replace(chosen, notices=(*chosen.notices, notice))


def _tensorflow(flavor: _Flavor) -> FlavorChoice:
    known = (
        "data saved_model_dir model_type meta_graph_tags signature_def_key keras_module keras_version save_format "
        "model_path custom_objects"
    )
    kept = flavor.text("save_format")
    if flavor.keys.get("saved_model_dir") is not None:
        entry = flavor.entry("saved_model_dir", is_folder=True)
    elif kept in ("", "tf"):
        folder = flavor.entry("data", default="data", is_folder=True)
        entry = f"{folder}/model"
    else:
        entry = ""
    if not entry or not (flavor.document.path.parent / entry / "saved_model.pb").is_file():
        if function := function_of(flavor.document):
            return function
        flavor.document.refuse(
            flavor.key,
            f"a Keras model in {kept or 'a'} file, which runs in Keras alone",
            "a folder with saved_model.pb",
            "Export it by model.export('saved_model'), and serve that folder, or save it by "
            "mlflow.tensorflow.save_model of a tf.Module.",
        )
    return flavor.choice("tensorflow", entry, NAMED, known, **_of_graph(flavor))


def _of_graph(flavor: _Flavor) -> dict[str, tuple[str, str]]:
    """Return the parameters by which the signature and the tags are those that were saved."""
    parameters = {}
    if name := flavor.text("signature_def_key"):
        parameters["signature"] = (name, f"{flavor.key}.signature_def_key")
    if tags := flavor.keys.get("meta_graph_tags"):
        written = tags if isinstance(tags, list) else [tags]
        parameters["tags"] = (",".join(map(str, written)), f"{flavor.key}.meta_graph_tags")
    return parameters


def _pytorch(flavor: _Flavor) -> FlavorChoice:
    folder = flavor.entry("model_data", "data", "model_path", default="data", is_folder=True)
    root = flavor.document.path.parent
    names = [one for one in ("model.pt2", "model.pth", "model.pt") if (root / folder / one).is_file()]
    place = f"{flavor.key}.model_data"
    if not names:
        hint = "Put it there, or save the model anew with MLflow."
        flavor.document.refuse(place, f"there is no model in {folder}", "model.pt2 or model.pth", hint)
    entry = f"{folder}/{names[0]}"
    if not entry.endswith(".pt2") and not _is_scripted(flavor.document, entry):
        if function := function_of(flavor.document):
            return function
        flavor.document.refuse(
            place,
            f"{entry} is a pickled module, which is nothing without the code of its class",
            "a scripted or an exported model",
            "Save it by mlflow.pytorch.save_model(torch.jit.script(model), ...), or with serialization_format='pt2' "
            "and an input_example.",
        )
    known = "model_data data model_path pytorch_version pickle_module_name serialization_format"
    return flavor.choice("torch", entry, ROWS, known)


def _is_scripted(document: ModelDocument, entry: str) -> bool:
    """Is it an archive of TorchScript? Its code is a folder of its own in the archive; nothing is unpacked."""
    try:
        with open_file(document.path.parent / entry) as file, zipfile.ZipFile(file) as archive:
            return any("/code/" in name for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


_NATIVE: Mapping[str, Callable[[_Flavor], FlavorChoice]] = {
    "onnx": _onnx,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "tensorflow": _tensorflow,
    "pytorch": _pytorch,
    "sklearn": _sklearn,
}
"""Flavors that our engines serve without MLflow, the most exact first where a folder has several."""

_PYFUNC_KEYS = frozenset(
    ["loader_module", "data", "model_path", "code", "env", "python_version", "predict_fn"]
)


def choose(document: ModelDocument) -> FlavorChoice:
    """Return what serves a folder. Raises ConfigError with the way out where nothing does."""
    return _native(document) or function_of(document) or _unserved(document)


def _native(document: ModelDocument) -> FlavorChoice | None:
    name = next((one for one in _NATIVE if one in document.flavors), "")
    if name:
        chosen = _NATIVE[name](_Flavor(document, name, document.flavors[name], f"flavors.{name}"))
        beside = document.unknown(
            f"flavors.{PYFUNC}.", _pyfunc(document), _PYFUNC_KEYS | {"config", "streamable"}
        )
        return replace(chosen, notices=(*chosen.notices, *beside))
    told = _pyfunc(document)
    native = {f"mlflow.{one}": one for one in _NATIVE}.get(str(told.get("loader_module")))
    if native is None:
        return None
    keys = {one: value for one, value in told.items() if one in _PYFUNC_KEYS}
    return _NATIVE[native](_Flavor(document, native, keys, f"flavors.{PYFUNC}"))


def function_of(document: ModelDocument) -> FlavorChoice | None:
    """Return the choice of what MLflow itself loads; None for a folder without that flavor."""
    told = _pyfunc(document)
    if not told:
        return None
    flavor = _Flavor(document, PYFUNC, told, f"flavors.{PYFUNC}")
    if not flavor.text("loader_module"):
        expected = "the module by which MLflow loads the model, such as mlflow.pyfunc.model"
        document.refuse(
            f"{flavor.key}.loader_module", "it lacks", expected, "Save the model anew with MLflow."
        )
    for name in ("python_model", "data", "model_path", "code"):
        if told.get(name) and not (document.path.parent / flavor.text(name)).exists():
            found = f"there is no {flavor.text(name)[:80]}"
            document.refuse(f"{flavor.key}.{name}", found, "a file or folder of the model", "Put it there.")
    return FlavorChoice(FUNCTION, FILE, flavor.key, NAMED)


def _unserved(document: ModelDocument) -> NoReturn:
    """Raise ConfigError, naming what the folder has."""
    served = ", ".join((*_NATIVE, PYFUNC))
    document.refuse("flavors", ", ".join(map(str, document.flavors))[:120], served, _OWN)


def _pyfunc(document: ModelDocument) -> Mapping[str, Any]:
    return document.flavors.get(PYFUNC, {})
