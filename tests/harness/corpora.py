"""The files that people have: tables of them, folders made of their entries, and what the server says of each.

An entry of a table is a file of the originals' public repositories, by its keys and values alone. The model files that
it speaks of are made here, so that nothing but the configuration is asked about. No server listens for anything.
"""

import asyncio
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch
import yaml
from onnx import helper

from trivium.catalogue import CATALOGUE
from trivium.core.server import CoreServices, Server
from trivium.fetchers.gate import gate
from trivium.types.core_config import CoreConfig
from trivium.types.interfaces import Format
from trivium.types.spec import Defaults, InvalidModel, ModelFacts, ModelSpec

TABLES = Path(__file__).parents[1] / "fixtures" / "corpora"

GPUS = 8
"""As many as any of the configurations asks for: what a machine lacks is no matter of a configuration."""

_FIELD = re.compile(r'([a-z_]+): ("(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^\s\[\]{},]+)')
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
_INT64 = onnx.TensorProto.INT64
PYTHON_MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return []
"""


@dataclass(frozen=True)
class Entry:
    """One line of a table: a name, where such a file was seen, what is in it, and what is expected of it."""

    name: str
    seen: str
    told: Mapping[str, Any]

    @property
    def expected(self) -> Any:
        """What becomes of it: `served`, or words of the sentence that refuses it."""
        return self.told["expected"]


def table(name: str) -> list[Entry]:
    """The entries of one table."""
    lines = (TABLES / f"{name}.jsonl").read_text().splitlines()
    return [Entry(one["name"], one["seen"], one) for one in map(json.loads, lines)]


def examined(
    place: Path, formats: Sequence[Format] = CATALOGUE.formats, defaults: Defaults | None = None
) -> tuple[list[ModelSpec], list[InvalidModel]]:
    """What `trivium check` would say of a folder; model files are read in this process, and handlers run nowhere."""

    fallback = defaults or Defaults(scratch=place.parent / ".scratch", gpus=GPUS)

    async def facts(spec: ModelSpec) -> ModelFacts:
        if spec.handler is not None:
            return ModelFacts(spec.inputs, spec.outputs, batchable=False)
        return CATALOGUE.find_engine(spec).facts(spec)

    async def check() -> tuple[list[ModelSpec], list[InvalidModel]]:
        config = CoreConfig(defaults=fallback)
        services = CoreServices(facts, fetch=gate(CATALOGUE.fetchers, "", 2**20, 1.0))
        async with Server(formats, CATALOGUE.find_engine, services, config) as server:
            server.add(place)
            return await server.examine()

    return asyncio.run(check())


def triton_repository(place: Path, models: Mapping[str, Mapping[str, Any]]) -> Path:
    """A repository of these models: their configuration, a line for each of its fields, and the files behind."""
    for name, model in models.items():
        folder = place / name
        for file, made_of in model["files"].items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            _MAKE.get(Path(file).suffix, _text)(folder / file, made_of)
        (folder / "config.pbtxt").write_text("\n".join(model["fields"]) + "\n")
    return place


def written(text: str, place: Path) -> str:
    """A value with the places of the test in it."""
    return text.replace("{place}", str(place)).replace("{weights}", str(place / "weights"))


def properties(file: Path, values: Mapping[str, str], place: Path) -> Path:
    """A file of Java's properties, a line for each."""
    lines = (f"{key}={written(value, place)}".replace("\n", "\\\n") for key, value in values.items())
    file.write_text("\n".join(lines) + "\n")
    return file


def archive(place: Path, name: str, version: str, document: object = None) -> Path:
    """A model of TorchServe's, as a folder, with this model-config.yaml."""
    (place / "MAR-INF").mkdir(parents=True)
    model = {"modelName": name, "modelVersion": version, "handler": "handler.py"}
    if document is not None:
        model["configFile"] = "model-config.yaml"
        (place / "model-config.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    (place / "MAR-INF" / "MANIFEST.json").write_text(json.dumps({"runtime": "python", "model": model}))
    (place / "handler.py").write_text("def handle(data, context):\n    return data\n")
    return place


def djl_folder(place: Path, values: Mapping[str, str], behind: str, weights: Path) -> Path:
    """A model folder of DJL Serving's with this serving.properties, and what it speaks of: `weights`, beside it or in
    it, a `handler`, or a `module` of TorchScript.
    """
    folder = place / "models" / "m"
    folder.mkdir(parents=True)
    if behind == "weights":
        shutil.copytree(weights, folder, dirs_exist_ok=True)
    elif behind == "handler":
        (folder / values.get("option.entryPoint", "model.py")).write_text(_DJL_HANDLER)
    elif behind == "module":
        _torch(folder / f"{values.get('option.modelName', 'm')}.pt", 1)
    if "{weights}" in values.values():
        (place / "weights").symlink_to(weights)
    properties(folder / "serving.properties", values, place)
    return folder


_DJL_HANDLER = "def handle(inputs):\n    return None\n"


def _onnx(file: Path, made_of: Mapping[str, Any]) -> None:
    """A model that answers constants in the shapes that are declared, of as many rows as its first input has."""
    sides = {
        side: [
            helper.make_tensor_value_info(
                name, _ONNX[kind], [f"{name}{axis}" if size < 0 else size for axis, size in enumerate(dims)]
            )
            for name, kind, dims in made_of[side]
        ]
        for side in ("inputs", "outputs")
    }
    rows = made_of["inputs"][0][0]
    nodes = [
        helper.make_node("Constant", [], [f"{end}.at"], value=helper.make_tensor(end, _INT64, [1], [at]))
        for end, at in (("first", 0), ("second", 1))
    ]
    nodes += [
        helper.make_node("Shape", [rows], ["whole"]),
        helper.make_node("Slice", ["whole", "first.at", "second.at"], ["rows"]),
    ]
    for name, kind, dims in made_of["outputs"]:
        has_rows = bool(dims) and dims[0] < 0
        values = [b""] if kind == "STRING" else [0]
        rest = [max(size, 1) for size in dims[has_rows:]]
        one = helper.make_tensor("one", _ONNX[kind], [], values)
        shape = helper.make_tensor("shape", _INT64, [len(rest)], rest)
        parts = [*(["rows"] if has_rows else []), f"{name}.rest"]
        nodes += [
            helper.make_node("Constant", [], [f"{name}.one"], value=one),
            helper.make_node("Constant", [], [f"{name}.rest"], value=shape),
            helper.make_node("Concat", parts, [f"{name}.shape"], axis=0),
            helper.make_node("Expand", [f"{name}.one", f"{name}.shape"], [name]),
        ]
    graph = helper.make_graph(nodes, "g", sides["inputs"], sides["outputs"])
    file.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )


def _torch(file: Path, made_of: int) -> None:
    """A scripted module of so many inputs."""
    example = tuple(torch.zeros(1) for _ in range(made_of))
    torch.jit.trace(_First(), example).save(str(file))


class _First(torch.nn.Module):
    def forward(self, first: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        return first + sum(other.sum() for other in others)


def _text(file: Path, made_of: str) -> None:
    file.write_text(made_of)


_MAKE = {".onnx": _onnx, ".pt": _torch}
