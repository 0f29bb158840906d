"""A bare model file as a model: named after the file, one version, whatever its tensors are.

Its dims are whole and nothing is batched: whether a first dimension means a batch is its owner's to say. What the
file does not tell, nothing else here does: such a file is refused with the ways to serve it.
"""

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
    Limits,
    ModelFacts,
    ModelSpec,
    Origin,
    ReadResult,
    TensorSpec,
)
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
_PARTS = {b"learner": "xgboost", b'"magic":"pir"': "paddle", b"<net ": "openvino"}
"""What is in the first bytes of a file of JSON or XML -> engine."""
BY_CONTENT = (".bst", ".json", ".txt", ".xml")
"""Suffixes that more than one library gives its files: their first bytes tell which it was."""
_HEAD = 256

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
        f"a file that ends in {', '.join(ENGINES)}, <name>-symbol.json of MXNet, or one of XGBoost, LightGBM, OpenVINO "
        "or Paddle"
    )

    def claims(self, path: Path) -> bool:
        """An existing file whose name ends in one of the suffixes, or whose first bytes tell."""
        try:
            return path.is_file() and bool(_engine_of(path))
        except OSError:
            return False

    def read(self, path: Path, defaults: Defaults) -> ReadResult:
        """One version, "1". The file itself is opened by the engine alone."""
        suffix, engine = path.suffix.lower(), _engine_of(path)
        origin = {field: Origin(rule, "") for field, rule in _RULES.items()}
        is_symbol = engine == "mxnet"
        told = "first bytes" if suffix in BY_CONTENT and not is_symbol else f"suffix {suffix}"
        name = path.name.removesuffix(_SYMBOL) if is_symbol else path.stem
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


def _engine_of(path: Path) -> str:
    """Return the engine that a file's suffix or its first bytes name; empty for none. Raises OSError."""
    suffix = path.suffix.lower()
    if path.name.endswith(_SYMBOL):
        return "mxnet"
    if suffix not in BY_CONTENT:
        return ENGINES.get(suffix, "")
    with open_file(path) as file:
        head = file.read(_HEAD)
    if head.startswith((b"{", b"<")):
        return next((engine for part, engine in _PARTS.items() if part in head), "")
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


FORMAT = BareFormat()
