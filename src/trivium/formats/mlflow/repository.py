"""The MLflow format: a folder with a file `MLmodel`, or a folder of such folders -> specs.

What is served of a folder `flavors` chooses, and what clients send `signature` tells. Clients of `mlflow models serve`
are answered by the translator `mlflow-scoring`, whose arguments are made here.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from trivium.formats.each import read_each, unopened
from trivium.formats.mlflow.document import FILE, ModelDocument, read_document
from trivium.formats.mlflow.flavors import FlavorChoice, choose, function_of
from trivium.formats.mlflow.functions import handler_of, packages_left
from trivium.formats.mlflow.signature import Column, Signature, read_signature
from trivium.formats.mlflow.tensors import INPUT, OUTPUT, columns_of, tensors_of
from trivium.types.datatype import BY_NAME, DataType
from trivium.types.errors import ConfigError, frameless
from trivium.types.findings import Finding, Severity
from trivium.types.spec import (
    Batching,
    Defaults,
    InstanceGroup,
    Limits,
    ModelFacts,
    ModelSpec,
    Origin,
    ReadResult,
    TensorSpec,
    TranslatorSpec,
)

TRANSLATOR = "mlflow-scoring"
_OTHERS = ("serving.properties", "config.pbtxt", "MAR-INF")
"""Files by which a folder is another format's, whatever else lies in it."""

_MOST_SHOWN = 100
_MOST_LOOKED, _DEEPEST = 2000, 4
"""Entries that are looked at below a folder that is no model, and how deep."""

_RULES = {
    "version": "rule for a folder without a version",
    "version_policy": "rule for a folder without a version",
    "batching.batch_axis": "rule for MLflow: dims are whole",
    "batching.max_rows": "rule for MLflow: a request has its rows, and runs alone",
    "batching.merge": "rule for MLflow: a request has its rows, and runs alone",
    "groups[0].name": "the model's name",
    "groups[0].minimum": "rule for MLflow: one instance",
    "groups[0].device": "rule for MLflow: the CPU",
    "limits.queue_items": "the server's default bound",
    "limits.run_deadline": "--run-timeout of the server",
    "limits.startup_deadline": "--startup-timeout of the server",
}


class MlflowFormat:
    """Folders that `save_model` and `log_model` of MLflow write."""

    name = "mlflow"
    expects = f"a folder of MLflow, with a file {FILE}, or a folder of those"

    def claims(self, path: Path) -> bool:
        """Return whether a model is here by its names, or a store of such models and of no others."""
        try:
            return bool(_models(path))
        except (OSError, ValueError):
            return False

    def hint(self, path: Path) -> str:
        """Say where a model lies below a folder of runs."""
        found = _below(path)
        return f"A model of MLflow lies below it: serve {found}." if found else ""

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """Return one version, "1", of each model."""
        if path.name in ("", ".."):
            path = path.resolve()
        try:
            places = _models(path)
        except OSError as error:
            return ReadResult((), (unopened(path.name, path, frameless(error)),))
        return read_each(places, lambda place: [_spec(place, defaults)], lambda place: place.name)

    def finish(self, spec: ModelSpec, facts: ModelFacts) -> ModelSpec:
        """Inputs and outputs as the model file has them: under the signature's name where a table's has none. Raises
        ConfigError where the signature has as many columns as the model cannot take.
        """
        assert spec.translator is not None, "it was read so"
        arguments = spec.translator.arguments
        source = Origin(f"the model file {spec.entry}", "")
        told = Origin(str(spec.root / FILE), "signature.inputs")
        inputs, name = facts.inputs, arguments.get("input")
        origin = {**spec.origin, **_sources("inputs", inputs, source)}
        if isinstance(name, str) and name and len(inputs) == 1:
            inputs = (replace(inputs[0], name=name),)
            origin["inputs[0].name"] = told
        inputs, are_told = _told(arguments, inputs)
        if are_told:
            origin |= {
                f"inputs[{at}].{part}": told for at in range(len(inputs)) for part in ("datatype", "dims")
            }
        _check_columns(spec, inputs)
        origin |= _sources("outputs", facts.outputs, source)
        translator = replace(spec.translator, arguments={**arguments, "example": _example(arguments, inputs)})
        columns = _columns(arguments)
        if len(inputs) == 1 and columns and all(one.name for one in columns):
            translator = replace(translator, inputs=inputs)
            inputs = columns_of(columns, INPUT)
            origin |= _sources("inputs", inputs, told)
        return replace(spec, inputs=inputs, outputs=facts.outputs, translator=translator, origin=origin)


def _models(path: Path) -> list[Path]:
    """List the models at a path: itself, or those of a store. Raises OSError."""
    if not path.is_dir():
        return []
    if (path / FILE).is_file():
        return [] if _is_others(path) else [path]
    if _is_others(path):
        return []
    folders = [one for one in path.iterdir() if not one.name.startswith(".") and one.is_dir()]
    are = [(one / FILE).is_file() and not _is_others(one) for one in folders]
    return sorted(folders) if folders and all(are) else []


def _below(path: Path) -> Path | None:
    """Return a folder of MLflow that lies as deep as its runs keep them, without a look at more than a few entries: a
    client may have named any folder of this machine.
    """
    waiting, looked = [(path, 0)], 0
    while waiting and looked < _MOST_LOOKED:
        folder, depth = waiting.pop(0)
        try:
            with os.scandir(folder) as entries:
                seen = list(islice(entries, _MOST_LOOKED - looked))
        except (OSError, ValueError):
            continue
        looked += len(seen)
        if depth > 1 and any(one.name == FILE for one in seen):
            return folder
        if depth < _DEEPEST:
            inner = (one for one in seen if not one.name.startswith("."))
            waiting += [(Path(one.path), depth + 1) for one in inner if one.is_dir(follow_symlinks=False)]
    return None


def _is_others(path: Path) -> bool:
    return any((path / mark).exists() for mark in _OTHERS)


def _spec(place: Path, defaults: Defaults) -> ModelSpec:
    """Raises ConfigError and OSError."""
    document = read_document(place)
    choice, signature = choose(document), read_signature(document)
    if _misfits(choice, signature):
        choice = function_of(document) or choice
    notices = _unfit(document, choice, signature)
    parameters = {name: value for name, (value, _) in choice.parameters.items()}
    origin = {
        **{field: Origin(rule, "") for field, rule in _RULES.items()},
        **{field: Origin(str(place), "") for field in ("name", "root")},
        "engine": document.origin(choice.key),
        "entry": document.origin(choice.key),
        "translator": document.origin("signature" if document.signature else choice.key),
        **{f"parameters[{name}]": document.origin(key) for name, (_, key) in choice.parameters.items()},
    }
    if choice.takes_tables:
        parameters["datatype"] = _datatype(signature).wire
        origin["parameters[datatype]"] = document.origin("signature") if document.signature else _AS_PANDAS
    asked = defaults.parameters_of(choice.engine)
    option = Origin("--engine-parameters of the server", "")
    spec = ModelSpec(
        name=place.name,
        version="1",
        is_versioned=False,
        root=place,
        engine=choice.engine,
        entry=choice.entry,
        batching=Batching(),
        groups=(InstanceGroup(place.name),),
        limits=Limits(
            queue_items=defaults.queue_items,
            run_deadline=defaults.run_deadline,
            startup_deadline=defaults.startup_deadline,
        ),
        parameters={**parameters, **asked},
        translator=TranslatorSpec(TRANSLATOR, _arguments(choice, signature)),
        origin={**origin, **{f"parameters[{one}]": option for one in asked}},
        reports=(*document.notices, *choice.notices, *notices),
    )
    return _as_function(spec, document, signature, defaults) if choice.is_function else spec


def _as_function(
    spec: ModelSpec, document: ModelDocument, signature: Signature, defaults: Defaults
) -> ModelSpec:
    """Return the spec of a model that MLflow itself loads: it has the signature's inputs and outputs, and reads bodies
    by itself.
    """
    inputs, outputs = tensors_of(signature.inputs, INPUT), tensors_of(signature.outputs, OUTPUT)
    places = {
        **_sources("inputs", inputs, document.origin("signature.inputs")),
        **_sources("outputs", outputs, document.origin("signature.outputs")),
    }
    return replace(
        spec,
        inputs=inputs,
        outputs=outputs,
        translator=None,
        handler=handler_of(document, signature, defaults),
        origin={**{key: one for key, one in spec.origin.items() if key != "translator"}, **places},
        reports=(*spec.reports, *packages_left(document, defaults)),
    )


_AS_PANDAS = Origin("rule for MLflow without a signature: numbers are as pandas reads them", "")


def _datatype(signature: Signature) -> DataType:
    """Return what a matrix is made of: as MLflow hands it over, which is FP32 only where the signature says so."""
    inputs = signature.inputs
    found = [*(one.datatype for one in inputs.columns), *(one.datatype for one in inputs.tensors)]
    return DataType.FP32 if found and all(one is DataType.FP32 for one in found) else DataType.FP64


def _arguments(choice: FlavorChoice, signature: Signature) -> Mapping[str, object]:
    """Return the arguments of the translator, as JSON values."""
    inputs = signature.inputs
    tensor = inputs.tensors[0].name if choice.takes_tables and len(inputs.tensors) == 1 else ""
    return {
        "answers": choice.answers,
        "columns": [[one.name, one.type, one.required] for one in inputs.columns],
        "tensors": [[one.name, one.datatype.wire, list(one.dims)] for one in inputs.tensors],
        "input": tensor,
    }


def _unfit(document: ModelDocument, choice: FlavorChoice, signature: Signature) -> list[Finding]:
    """Return what there is to know about a signature. Raises ConfigError for one that the engine cannot serve."""
    if choice.is_function:
        return []
    for column in _misfits(choice, signature)[:1]:
        takes = "one matrix of numbers" if choice.takes_tables else "tensors"
        document.refuse(
            "signature.inputs",
            f"column {column.name!r:.60} is {column.type}, and the engine {choice.engine} takes {takes}",
            "columns of numbers",
            "Save it with its flavor python_function, by which MLflow loads it, or export the model to ONNX with an "
            "input for each column.",
        )
    if not signature.params:
        return []
    found = f"{', '.join(signature.params)[:120]}: the model file takes no parameters; those of requests have no effect"
    return [document.finding("signature.params", found, "", "", Severity.NOTICE)]


def _misfits(choice: FlavorChoice, signature: Signature) -> list[Column]:
    """Return the columns that the engine cannot take: those of texts for a matrix, and those that no tensor holds."""
    allowed = [DataType.BOOL, DataType.INT32, DataType.INT64, DataType.FP32, DataType.FP64]
    if not choice.takes_tables:
        allowed.append(DataType.BYTES)
    return [one for one in signature.inputs.columns if one.datatype not in allowed]


def _told(
    arguments: Mapping[str, object], inputs: tuple[TensorSpec, ...]
) -> tuple[tuple[TensorSpec, ...], bool]:
    """Return inputs as the signature has them where the model file gives them no more than names, and whether it is so.
    A table is FP32 then, as MLflow hands it to PyTorch.
    """
    columns, tensors = arguments["columns"], arguments["tensors"]
    assert isinstance(columns, list), "it was made so"
    assert isinstance(tensors, list), "it was made so"
    if not all(one.open and not one.many for one in inputs):
        return inputs, False
    if columns and len(inputs) == 1:
        one = replace(inputs[0], datatype=DataType.FP32, dims=(-1, len(columns)), open=False)
        return (one,), True
    if not tensors or len(tensors) != len(inputs):
        return inputs, False
    pairs = zip(inputs, tensors, strict=True)
    made = [
        replace(one, datatype=BY_NAME[wire], dims=tuple(dims), open=False) for one, (_, wire, dims) in pairs
    ]
    return tuple(made), True


def _columns(arguments: Mapping[str, object]) -> list[Column]:
    """Return the columns of the signature, of arguments that may have been JSON meanwhile."""
    written = arguments["columns"]
    assert isinstance(written, list), "it was made so"
    return [Column(*one) for one in written]


def _check_columns(spec: ModelSpec, inputs: tuple[TensorSpec, ...]) -> None:
    assert spec.translator is not None, "it was read so"
    columns = spec.translator.arguments["columns"]
    assert isinstance(columns, list), "it was made so"
    width = inputs[0].dims[-1] if len(inputs) == 1 and len(inputs[0].dims) == 2 else -1
    if not columns or width in (-1, len(columns)):
        return
    found = f"{len(columns)} columns, and the model file {spec.entry} takes {width}"
    hint = "Save the model anew with MLflow, with the signature of what it was trained with."
    file = str(spec.root / FILE)
    raise ConfigError(
        (
            *spec.reports,
            Finding(Severity.ERROR, file, None, "signature.inputs", found, f"{width} columns", hint),
        )
    )


def _example(arguments: Mapping[str, object], inputs: tuple[TensorSpec, ...]) -> str:
    """Return a body that the model takes; empty where it would fill a screen."""
    columns = arguments["columns"]
    assert isinstance(columns, list), "it was made so"
    if columns and len(columns) <= _MOST_SHOWN:
        row = ["" if kind == "string" else 0 for _, kind, _ in columns]
        names = [name for name, _, _ in columns]
        return json.dumps({"dataframe_split": {"columns": names, "data": [row]}})
    if len(inputs) != 1 or len(inputs[0].dims) != 2 or not 0 < inputs[0].dims[1] <= _MOST_SHOWN:
        return ""
    return json.dumps({"inputs": [[0.0] * inputs[0].dims[1]]})


def _sources(field: str, tensors: tuple[TensorSpec, ...], source: Origin) -> dict[str, Origin]:
    parts = ("name", "datatype", "dims")
    return {f"{field}[{i}].{part}": source for i in range(len(tensors)) for part in parts}


FORMAT = MlflowFormat()
