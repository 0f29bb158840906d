"""The files that people have: tables of them, folders made of their entries, and what the server says of each.

An entry of a table is a file of the originals' public repositories, by its keys and values alone; names are often other
ones. The models that it speaks of are made here, small, so that nothing but the configuration is asked about. Nothing
listens, and no handler runs. `python -m tests.harness.corpora` writes into the tables what becomes of each entry now.
"""

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch
import yaml
from onnx import helper
from tests.harness import language_models

from trivium.catalogue import CATALOGUE
from trivium.config.options import ServerConfig
from trivium.core.server import Server
from trivium.core.services import CoreServices
from trivium.fetchers.gate import gate
from trivium.servers.djl.command.checking import check_config
from trivium.servers.torchserve.command.checking import CheckedProperties, check_properties, examine_startup
from trivium.types import datatype as datatypes
from trivium.types.core_config import CoreConfig
from trivium.types.findings import Finding, Severity
from trivium.types.interfaces import Format
from trivium.types.spec import Defaults, InvalidModel, ModelFacts, ModelSpec, TensorSpec

TABLES = Path(__file__).parents[1] / "fixtures" / "corpora"
GPUS = 8
"""As many as any of the configurations asks for: what a machine lacks is no matter of a configuration."""

SAGEMAKER = {
    "SAGEMAKER_MODEL_STORE": ".",
    "SAGEMAKER_BIND_TO_PORT": "8080",
    "SAGEMAKER_RESPONSE_TIMEOUT": "60",
    "SAGEMAKER_NUM_MODEL_WORKERS": "1",
    "SAGEMAKER_HANDLER": "handler.py",
    "SAGEMAKER_MAX_RESPONSE_SIZE": "1000000",
    "SAGEMAKER_MAX_REQUEST_SIZE": "1000000",
}
"""Variables that one of TorchServe's own configurations puts in."""

_PICTURE = (1, 3, 224, 224)
_INT64 = onnx.TensorProto.INT64
_ONNX = {
    "FP32": onnx.TensorProto.FLOAT,
    "FP16": onnx.TensorProto.FLOAT16,
    "FP64": onnx.TensorProto.DOUBLE,
    "BF16": onnx.TensorProto.BFLOAT16,
    "STRING": onnx.TensorProto.STRING,
    "BOOL": onnx.TensorProto.BOOL,
    **{
        f"{sign}INT{bits}": getattr(onnx.TensorProto, f"{sign}INT{bits}")
        for sign in ("", "U")
        for bits in (8, 16, 32, 64)
    },
}
_METRICS = "dimensions:\n- &level 'Level'\nts_metrics:\n  counter: []\nmodel_metrics:\n  counter: []\n"
_TRITON_MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
_TORCHSERVE_HANDLER = "def handle(data, context):\n    return data\n"
_DJL_HANDLER = "def handle(inputs):\n    return None\n"


@dataclass(frozen=True)
class Said:
    """What is said of one file, and of the models that come with it: each finding, and which models would serve."""

    findings: tuple[Finding, ...]
    served: tuple[str, ...] = ()

    def refusals(self, place: Path) -> list[str]:
        """The errors, each by its key and by what was found."""
        return sorted({_short(one, place) for one in self.findings if one.severity is Severity.ERROR})

    def reports(self) -> list[str]:
        """The keys that have a notice."""
        return sorted({one.key or "the model" for one in self.findings if one.severity is not Severity.ERROR})


@dataclass(frozen=True)
class Entry:
    """One line of a table: a name, where such a file was seen, and what is in it."""

    table: str
    name: str
    seen: str
    told: Mapping[str, Any]

    @property
    def refused(self) -> list[str]:
        """Each error that is expected, by its key and what was found; nothing for what is served."""
        return list(self.told.get("refused", ()))

    @property
    def reported(self) -> list[str]:
        """The keys that are expected to have a notice."""
        return list(self.told.get("reported", ()))

    def said(self, place: Path, weights: Path) -> Said:
        """Lay it out in an empty folder, and ask what becomes of it. `weights`: a small language model."""
        return _FORMATS[self.table](place, self.told, weights)


def tables() -> list[Entry]:
    """All entries, table by table."""
    found = []
    for name in _FORMATS:
        for line in (TABLES / f"{name}.jsonl").read_text().splitlines():
            told = json.loads(line)
            found.append(Entry(name, told["name"], told["seen"], told))
    return found


def examined(
    place: Path, formats: Sequence[Format] = CATALOGUE.formats
) -> tuple[list[ModelSpec], list[InvalidModel]]:
    """What `trivium check` would say of a folder; model files are read in this process."""

    async def facts(spec: ModelSpec) -> ModelFacts:
        if spec.handler is not None:
            return ModelFacts(spec.inputs, spec.outputs, batchable=False)
        if spec.engine == "tensorflow":
            return _told_by(spec.root / spec.entry / SAVED_MODEL)
        return CATALOGUE.find_engine(spec).facts(spec)

    async def check() -> tuple[list[ModelSpec], list[InvalidModel]]:
        config = CoreConfig(defaults=Defaults(scratch=place.parent / ".scratch", gpus=GPUS))
        services = CoreServices(facts, fetch=gate(CATALOGUE.fetchers, "", 2**20, 1.0))
        async with Server(formats, CATALOGUE.find_engine, services, config) as server:
            server.add(place)
            return await server.examine()

    return asyncio.run(check())


def _short(finding: Finding, place: Path) -> str:
    text = f"{finding.key}: {finding.found}" if finding.key else finding.found
    return text.replace(f"{place}/", "").replace(str(place), ".")[:160]


def _of(specs: Iterable[ModelSpec], invalid: Iterable[InvalidModel], *more: Finding) -> Said:
    findings = [*more, *(one for each in invalid for one in each.findings)]
    specs = list(specs)
    findings += [one for spec in specs for one in spec.reports]
    return Said(tuple(findings), tuple(sorted(spec.name for spec in specs)))


# -- each kind of file ----------------------------------------------------------------------------------------


def _config_pbtxt(place: Path, told: Mapping[str, Any], weights: Path) -> Said:
    """A repository of one or several models; a line for each field."""
    for name, model in told["models"].items():
        folder = place / name
        folder.mkdir()
        for file, made_of in model["files"].items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            of_weights = made_of.replace("{weights}", str(weights)) if isinstance(made_of, str) else made_of
            _MAKE.get(Path(file).suffix, _text)(folder / file, of_weights)
        (folder / "config.pbtxt").write_text("\n".join(model["fields"]) + "\n")
    return _of(*examined(place))


def _torchserve_properties(place: Path, told: Mapping[str, Any], weights: Path) -> Said:
    """A `config.properties` beside its store, which has the archives that it names."""
    store = place / "store"
    for folder in (store, place / "workflows"):
        folder.mkdir()
    (place / "metrics.yaml").write_text(_METRICS)
    for name in ("key.pem", "certs.pem"):
        (place / name).write_text("")
    for file, name, version in told.get("store", ()):
        _archive(store / file, name, version)
    file = _properties(place / "config.properties", told["properties"], place)
    with contextlib.chdir(store):
        checked = check_properties(CATALOGUE, file, "", SAGEMAKER)
        models: tuple[list[ModelSpec], list[InvalidModel]] = ([], [])
        if checked.settings is not None and checked.settings.startup.models:
            models = asyncio.run(_startup(checked))
    return _of(*models, *checked.findings)


async def _startup(checked: CheckedProperties) -> tuple[list[ModelSpec], list[InvalidModel]]:
    """What could be served of a configuration's models, and what could not."""
    found = [model async for model in examine_startup(checked, ServerConfig())]
    specs = [model for model in found if isinstance(model, ModelSpec)]
    return specs, [model for model in found if isinstance(model, InvalidModel)]


def _model_config(place: Path, told: Mapping[str, Any], weights: Path) -> Said:
    """The `model-config.yaml` of a handler's archive."""
    return _of(*examined(_archive(place / "m", "m", "1.0", told["document"])))


def _djl_properties(place: Path, told: Mapping[str, Any], weights: Path) -> Said:
    """A `config.properties` of DJL Serving in its home, with the folders that it names."""
    for name in told.get("folders", ()):
        (place / name).mkdir(parents=True)
        (place / name / "model.py").write_text(_DJL_HANDLER)
    file = _properties(place / "config.properties", told["properties"], place)
    with contextlib.chdir(place):
        checked = check_config(CATALOGUE, file, {"MODEL_SERVER_HOME": str(place)})
    return _of([], [], *checked.findings)


def _serving_properties(place: Path, told: Mapping[str, Any], weights: Path) -> Said:
    """A model folder with this `serving.properties`; `behind`: the weights of a language model, a handler, a module of
    TorchScript, a graph of ONNX, or nothing in the folder.
    """
    values, behind = told["properties"], told["behind"]
    folder = place / "m"
    folder.mkdir()
    if behind == "weights":
        shutil.copytree(weights, folder, dirs_exist_ok=True)
    elif behind == "handler":
        (folder / values.get("option.entryPoint", "model.py")).write_text(_DJL_HANDLER)
    elif behind == "module":
        _torch(folder / f"{values.get('option.modelName', 'm')}.pt", 1, *_PICTURE)
        (folder / "synset.txt").write_text("cat\ndog\n")
        shutil.copy(weights / "tokenizer.json", folder)
    elif behind == "graph":
        _onnx(folder / "m.onnx", {"inputs": [["x", "FP32", [-1, 2]]], "outputs": [["y", "FP32", [-1, 2]]]})
    (place / "weights").symlink_to(weights)
    _properties(folder / "serving.properties", values, place)
    return _of(*examined(folder))


def _workflow(place: Path, told: Mapping[str, Any], weights: Path) -> Said:
    """A workflow beside the folders of its models."""
    folder = place / "workflow"
    folder.mkdir()
    for name in told.get("folders", ()):
        (place / name).mkdir(parents=True)
        (place / name / "model.py").write_text(_DJL_HANDLER)
    (folder / "workflow.json").write_text(json.dumps(told["document"], indent=1))
    with contextlib.chdir(place):
        return _of(*examined(folder))


_FORMATS: Mapping[str, Callable[[Path, Mapping[str, Any], Path], Said]] = {
    "config.pbtxt": _config_pbtxt,
    "torchserve.config.properties": _torchserve_properties,
    "model-config.yaml": _model_config,
    "djl.config.properties": _djl_properties,
    "serving.properties": _serving_properties,
    "workflow.json": _workflow,
}


# -- what lies behind -----------------------------------------------------------------------------------------


def _properties(file: Path, values: Mapping[str, str], place: Path) -> Path:
    lines = []
    for key, value in values.items():
        text = value.replace("{place}", str(place)).replace("{weights}", str(place / "weights"))
        lines.append(f"{key}={text}".replace("\n", "\\\n"))
    file.write_text("\n".join(lines) + "\n")
    return file


def _archive(place: Path, name: str, version: str, document: object = None) -> Path:
    (place / "MAR-INF").mkdir(parents=True)
    model = {"modelName": name, "modelVersion": version, "handler": "handler.py"}
    if document is not None:
        model["configFile"] = "model-config.yaml"
        (place / "model-config.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    (place / "MAR-INF" / "MANIFEST.json").write_text(json.dumps({"runtime": "python", "model": model}))
    (place / "handler.py").write_text(_TORCHSERVE_HANDLER)
    return place


def _text(file: Path, made_of: str) -> None:
    file.write_text(made_of)


def _python(file: Path, made_of: str) -> None:
    file.write_text(_TRITON_MODEL)


def _onnx(file: Path, made_of: Mapping[str, Any]) -> None:
    """A model that answers zeros in the shapes that are declared, of as many rows as its first input has."""
    inputs, outputs = (
        [
            helper.make_tensor_value_info(
                name, _ONNX[kind], [f"{name}{axis}" if size < 0 else size for axis, size in enumerate(dims)]
            )
            for name, kind, dims in made_of[side]
        ]
        for side in ("inputs", "outputs")
    )
    nodes = [
        helper.make_node("Constant", [], [end], value=helper.make_tensor(end, _INT64, [1], [at]))
        for end, at in (("first", 0), ("second", 1))
    ]
    nodes += [
        helper.make_node("Shape", [inputs[0].name], ["whole"]),
        helper.make_node("Slice", ["whole", "first", "second"], ["rows"]),
    ]
    for name, kind, dims in made_of["outputs"]:
        has_rows = bool(dims) and dims[0] < 0
        rest = [max(size, 1) for size in dims[has_rows:]]
        one = helper.make_tensor("one", _ONNX[kind], [], [b""] if kind == "STRING" else [0])
        shape = helper.make_tensor("shape", _INT64, [len(rest)], rest)
        parts = [*(["rows"] if has_rows else []), f"{name}.rest"]
        nodes += [
            helper.make_node("Constant", [], [f"{name}.one"], value=one),
            helper.make_node("Constant", [], [f"{name}.rest"], value=shape),
            helper.make_node("Concat", parts, [f"{name}.shape"], axis=0),
            helper.make_node("Expand", [f"{name}.one", f"{name}.shape"], [name]),
        ]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file.write_bytes(model.SerializeToString())


def _saved_model(file: Path, made_of: Mapping[str, Any]) -> None:
    """A stand-in that holds what the model's signature says: TensorFlow is not loaded beside all other libraries."""
    file.write_text(json.dumps(made_of))


def _told_by(file: Path) -> ModelFacts:
    told = json.loads(file.read_text())
    inputs, outputs = (
        tuple(TensorSpec(name, datatypes.BY_NAME[kind], tuple(dims)) for name, kind, dims in told[side])
        for side in ("inputs", "outputs")
    )
    return ModelFacts(inputs, outputs, all(one.dims[:1] == (-1,) for one in (*inputs, *outputs)))


class _First(torch.nn.Module):
    def forward(self, first: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        return first + sum(other.sum() for other in others)


def _torch(file: Path, made_of: int, *shape: int) -> None:
    torch.jit.trace(_First(), tuple(torch.zeros(shape or (1,)) for _ in range(made_of))).save(str(file))


_MAKE = {".onnx": _onnx, ".pb": _saved_model, ".pt": _torch, ".py": _python}
SAVED_MODEL = "saved_model.pb"


def weights_of_all(folder: Path) -> Path:
    """A small language model that knows as many tokens as any of the entries asks for."""
    return language_models.write(folder, "llama", max_position_embeddings=2**17)


def main() -> None:
    """Write into each table what becomes of its entries now; to be read before it is committed."""
    entries = tables()
    with tempfile.TemporaryDirectory() as made:
        weights = weights_of_all(Path(made) / "weights")
        lines: dict[str, list[str]] = {}
        for index, entry in enumerate(entries):
            place = Path(made) / str(index)
            place.mkdir()
            said = entry.said(place, weights)
            told = {key: value for key, value in entry.told.items() if key not in ("refused", "reported")}
            more = {"refused": said.refusals(place), "reported": said.reports()}
            told |= {key: value for key, value in more.items() if value}
            lines.setdefault(entry.table, []).append(json.dumps(told, ensure_ascii=False))
            shutil.rmtree(place)
    for name, written in lines.items():
        (TABLES / f"{name}.jsonl").write_text("\n".join(written) + "\n")
        sys.stdout.write(f"{name}: {len(written)}\n")


if __name__ == "__main__":
    main()
