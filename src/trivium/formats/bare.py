"""A bare model file as a model: named after the file, one version, whatever its tensors are.

Its dims are whole and nothing is batched: whether a first dimension means a batch is its owner's to say. What the
file does not tell, nothing else here does: such a file is refused with the ways to serve it.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from trivium.files import open_file
from trivium.types.errors import ConfigError
from trivium.types.findings import Finding, Severity
from trivium.types.spec import (
    Batching,
    Defaults,
    InstanceGroup,
    InvalidModel,
    Limits,
    ModelFacts,
    ModelSpec,
    Origin,
    ReadResult,
    TensorSpec,
)
from trivium.types.unserved import Unserved, unserved_file
from trivium_worker.estimators import FORMATS, PICKLES, SKOPS

ENGINES: Mapping[str, str] = {
    ".onnx": "onnx",
    ".pt": "torch",
    ".pt2": "torch",
    ".ts": "torch",
    ".torchscript": "torch",
    **dict.fromkeys((*FORMATS[SKOPS], *PICKLES), "sklearn"),
    **dict.fromkeys((".ubj", ".xgb"), "xgboost"),
    ".pdmodel": "paddle",
    **dict.fromkeys((".pb", ".graphdef", ".keras", ".h5", ".hdf5"), "tensorflow"),
}
"""Suffix -> engine. Others' `.pth` and `.bin` are weights without a graph, which nothing can run."""

_SYMBOL = "-symbol.json"
"""How the name of MXNet's symbol files ends."""

_STARTS = {b"tree\n": "lightgbm", b"tree\r\n": "lightgbm"}
_LEARNER = b"learner"
_PROGRAM = re.compile(rb'\{\s*"base_code"\s*:\s*\{[^}]*"magic"\s*:\s*"pir"')
_PICKLED = re.compile(rb"\x80[\x02-\x05]")
_GRAPH = re.compile(rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*\?>\s*)?<net\s")
BY_CONTENT = (".bst", ".json", ".txt", ".xml")
"""Suffixes that more than one library gives its files: their first bytes tell which it was."""
_BEGINNINGS = {
    ".bst": "neither XGBoost nor LightGBM",
    ".json": 'neither XGBoost ({...learner) nor Paddle ({"base_code")',
    ".txt": "no LightGBM (tree)",
    ".xml": "no OpenVINO (<net)",
}
_BIN = ".bin"
_SAVED = "saved_model.pb"
_HEAD = 256
_TABLES = ("sklearn", "lightgbm")
"""Engines of estimators whose files DJL Serving gives to a handler."""

_DEEPEST = 4
"""Folders around a folder with one model file."""

FOLDERS: Mapping[str, str] = {"model.xml": "openvino"}
"""A file that makes a folder the model -> its engine, which opens further files beside it."""
_OTHERS = ("serving.properties", "model.py", "config.pbtxt", "MAR-INF", "MLmodel")
"""What makes such a folder another format's."""

_RULES = {
    "name": "the file's name",
    "version": "rule for a bare file",
    "batching.batch_axis": "rule for a bare file: dims are whole",
    "batching.max_rows": "rule for a bare file: dims are whole",
    "batching.merge": "rule for a bare file: batching is its owner's choice",
    "groups[0].name": "the model's name",
    "groups[0].minimum": "rule for a bare file",
    "groups[0].device": "rule for a bare file",
    "version_policy": "rule for a bare file",
    "limits.queue_items": "the server's default bound",
    "limits.run_deadline": "--run-timeout of the server",
    "limits.startup_deadline": "--startup-timeout of the server",
}


class BareFormat:
    """One file, one model."""

    name = "bare"
    expects = (
        f"a file that ends in {', '.join(ENGINES)}, <name>-symbol.json of MXNet, one of XGBoost, LightGBM, OpenVINO or "
        f"Paddle, or a folder with {' or '.join(FOLDERS)}"
    )

    def claims(self, path: Path) -> bool:
        """An existing file whose name ends in one of the suffixes, or whose first bytes tell; one that is known and not
        served, too, to say so. A folder by the file in it.
        """
        try:
            file = _file_of(path)
            return file is not None and bool(_unserved(file) or _engine_of(file))
        except OSError:
            return False

    def hint(self, path: Path) -> str:
        """Say of a file whose library its first bytes should name that they name none."""
        suffix = path.suffix.lower()
        if suffix not in BY_CONTENT or path.name.endswith(_SYMBOL) or not path.is_file():
            return ""
        return (
            f"The first bytes of a {suffix} file tell whose it is, and these are of {_BEGINNINGS[suffix]}: it is "
            "damaged, or of another library. Save the model again."
        )

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """One version, "1". The file itself is opened by the engine alone."""
        title, path = path.name, _file_of(path) or path
        if row := _unserved(path):
            return ReadResult((), (InvalidModel(path.stem, path, (_refusal(row, path),)),))
        suffix, engine = path.suffix.lower(), _engine_of(path)
        origin = {field: Origin(rule, "") for field, rule in _RULES.items()}
        is_symbol, is_folder = engine == "mxnet", title != path.name
        told = "first bytes" if suffix in BY_CONTENT and not is_symbol else f"suffix {suffix}"
        name = title if is_folder else path.name.removesuffix(_SYMBOL) if is_symbol else path.stem
        if is_folder:
            origin["name"] = Origin("the folder's name", "")
        origin["engine"] = Origin(f"the file's {told}", "")
        origin |= {field: Origin(str(path), "") for field in ("root", "entry")}
        parameters = defaults.parameters_of(engine)
        option = Origin("--engine-parameters of the server", "")
        origin |= {f"parameters[{name}]": option for name in parameters}
        spec = ModelSpec(
            name=name,
            version="1",
            root=path.parent,
            engine=engine,
            entry=path.name,
            batching=Batching(),
            groups=(InstanceGroup(name),),
            limits=Limits(
                queue_items=defaults.queue_items,
                run_deadline=defaults.run_deadline,
                startup_deadline=defaults.startup_deadline,
            ),
            parameters=parameters,
            origin=origin,
        )
        return ReadResult((spec,))

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Inputs and outputs as the file declares them. ConfigError where it tells of no input that is a tensor."""
        if spec.engine == "torch" and not facts.inputs:
            raise ConfigError((*spec.reports, _untold(spec, facts.remarks)))
        source = Origin(f"the model file {spec.entry}", "")
        origin = {**spec.origin, **_sources("inputs", facts.inputs, source)}
        origin |= _sources("outputs", facts.outputs, source)
        return replace(spec, inputs=facts.inputs, outputs=facts.outputs, origin=origin)


def _file_of(path: Path) -> Path | None:
    """Return the file that is a path, or that makes a folder the model; None where there is none. Raises OSError."""
    if path.is_file():
        return path
    if any((path / name).exists() for name in _OTHERS):
        return None
    return next((path / name for name in FOLDERS if (path / name).is_file()), None)


def _unserved(path: Path) -> Unserved | None:
    """Return whose file this is, where nothing here opens it. Raises OSError."""
    suffix = path.suffix.lower()
    return unserved_file(suffix, _head(path) if suffix == _BIN else b"")


def _refusal(row: Unserved, path: Path) -> Finding:
    found = f"a model of {row.library}, which is not supported in this version"
    expected = f"a file that ends in {', '.join(ENGINES)}"
    return Finding(Severity.ERROR, str(path), None, "", found, expected, row.way_out)


def _head(path: Path) -> bytes:
    with open_file(path) as file:
        return file.read(_HEAD)


def _engine_of(path: Path) -> str:
    """Return the engine that a file's suffix or its first bytes name; empty for none. Raises OSError."""
    suffix = path.suffix.lower()
    if path.name.endswith(_SYMBOL):
        return "mxnet"
    if suffix not in BY_CONTENT:
        return ENGINES.get(suffix, "")
    head = _head(path)
    if suffix == ".xml":
        return "openvino" if _GRAPH.match(head) else ""
    if _PROGRAM.match(head):
        return "paddle"
    if head.startswith(b"{") and _LEARNER in head:
        return "xgboost"
    return next((engine for start, engine in _STARTS.items() if head.startswith(start)), "")


def _untold(spec: ModelSpec, notes: tuple[str, ...]) -> Finding:
    return Finding(
        Severity.ERROR,
        str(spec.root / spec.entry),
        None,
        "",
        notes[-1] if notes else "the file does not tell its inputs",
        "inputs that are tensors, or one list or dictionary of tensors",
        "Let forward take tensors, or serve the model from a Triton repository, whose config.pbtxt names inputs and "
        "outputs, or with a handler.",
    )


def _sources(field: str, tensors: tuple[TensorSpec, ...], source: Origin) -> dict[str, Origin]:
    parts = ("name", "datatype", "dims")
    return {f"{field}[{i}].{part}": source for i in range(len(tensors)) for part in parts}


class LoneFileFormat:
    """A folder that holds one model file, whatever its name, and no other folder: that file, named after the folder.

    So a model comes to a folder of its own where whoever fetches it decides the folder, as KServe does; an archive that
    was unpacked there may have left folders that hold nothing but a folder. This is asked for last: a folder that
    another format knows is that format's. Those `of_tables` may go before others, whose folders have settings beside
    them.
    """

    def __init__(self, name: str, *, of_tables: bool) -> None:
        self.name = name
        whose = f" of {' or '.join(_TABLES)}" if of_tables else ""
        self.expects = f"a folder without folders in it, with one model file{whose} among its files"
        self._of_tables = of_tables

    def claims(self, path: Path) -> bool:
        """Return whether there is exactly one file that a bare file could be."""
        try:
            file = _lone_file(_inner(path))
            return file is not None and (_engine_of(file) in _TABLES) is self._of_tables
        except OSError:
            return False

    def hint(self, path: Path) -> str:
        """Say of a pickle that its name does not tell it."""
        if self._of_tables or not path.is_dir():
            return ""
        files = [entry for entry in _seen(path) if entry.is_file() and not entry.suffix]
        pickle = next((file for file in files if _PICKLED.match(_head(file))), None)
        if pickle is None:
            return ""
        return f"{pickle.name} begins as a pickle does: rename {pickle.name} to {pickle.name}.pkl."

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """One version, "1", as the file by itself would be."""
        if path.name in ("", ".."):
            path = path.resolve()
        path = _inner(path)
        file = _lone_file(path)
        if file is None:
            found = "no model file, or several"
            fault = Finding(Severity.ERROR, str(path), None, "", found, self.expects, "Leave one there.")
            return ReadResult((), (InvalidModel(path.name, path, (fault,)),))
        reading, named = FORMAT.read(file, defaults), Origin("the folder's name", "")
        specs = tuple(
            replace(
                spec,
                name=path.name,
                groups=tuple(replace(group, name=path.name) for group in spec.groups),
                origin={**spec.origin, "name": named},
            )
            for spec in reading.specs
        )
        return ReadResult(specs, tuple(replace(one, name=path.name) for one in reading.unreadable))

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Inputs and outputs as the file declares them."""
        return FORMAT.finish(spec, facts)


def _seen(path: Path) -> list[Path]:
    return [entry for entry in path.iterdir() if not entry.name.startswith(".")]


def _inner(path: Path) -> Path:
    """Return the folder that a folder holds, and nothing but that. Raises OSError."""
    for _ in range(_DEEPEST):
        entries = _seen(path) if path.is_dir() else []
        if len(entries) != 1 or not entries[0].is_dir() or entries[0].name.isdecimal():
            break
        path = entries[0]
    return path


def _lone_file(path: Path) -> Path | None:
    """Return the one model file of a folder; None where there is none, or another. Raises OSError."""
    if not path.is_dir():
        return None
    entries = _seen(path)
    if len(entries) == 1 and entries[0].name.isdecimal() and (entries[0] / _SAVED).is_file():
        return entries[0] / _SAVED  # a version of TensorFlow Serving's
    if any(entry.is_dir() or entry.name in _OTHERS for entry in entries):
        return None
    found = [entry for entry in entries if entry.is_file() and _engine_of(entry)]
    return found[0] if len(found) == 1 else None


FORMAT = BareFormat()
LONE = LoneFileFormat("lone_file", of_tables=False)
LONE_TABLE = LoneFileFormat("lone_table", of_tables=True)
"""Estimators that DJL Serving would hand to a handler of its own, which takes bodies and no tensors; with a
serving.properties beside them they are DJL's. A `.bst` of LightGBM it takes for XGBoost's.
"""
