"""What `GET /v2/models/MODEL/config` prints is read: beside the model's own files it gives the same model."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from tests.contract.test_formats import an_archive
from tests.fixtures import models
from tests.harness import djl_folders, language_models, python_models, triton_folders
from tests.harness.triton_configs import DIRECT, OLDEST
from tests.models import folders
from tests.models.places import DIGITS, QUESTIONS, SENTENCES
from tests.unit.servers.djl.folder.test_djl_workflows import flow

from trivium.catalogue import CATALOGUE
from trivium.servers.triton.repository.override import config_text
from trivium.servers.triton.repository.repository import FORMAT
from trivium.servers.triton.words.description import config_json
from trivium.types.interfaces import Format
from trivium.types.spec import Defaults, ModelSpec

HERE = Defaults(cpus=2)


def scripted(name: str) -> Callable[[Path], Path]:
    def write(root: Path) -> Path:
        pytest.importorskip("torch")
        from tests.harness.scripted_modules import write_scripted

        write_scripted(root)
        return root / name

    return write


def bare(*dims: int | str) -> Callable[[Path], Path]:
    return lambda root: models.bare_add(root, "bare", dims)


def mixed(root: Path) -> Path:
    """A tensor without a dimension beside one with, and one that may be left out."""
    scale = helper.make_tensor_value_info("scale", TensorProto.FLOAT, [])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "scale"], ["y"])], "g", [x, scale], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, root / "mixed.onnx")
    return root / "mixed.onnx"


def triton(config: str, *files: str) -> Callable[[Path], Path]:
    return lambda root: triton_folders.make(root, "configured", config, *files)


def ensemble(root: Path) -> Path:
    steps = (
        'step { model_name: "add" model_version: -1 input_map { key: "a" value: "x" } '
        'input_map { key: "b" value: "x" } output_map { key: "sum" value: "y" } }'
    )
    ends = (
        'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 }'
    )
    (root / "both" / "1").mkdir(parents=True)
    (root / "both" / "config.pbtxt").write_text(
        f'platform: "ensemble" {ends} ensemble_scheduling {{ {steps} }}'
    )
    models.add(root, "add")
    return root


def python(root: Path) -> Path:
    python_models.place(root, "python", "    def execute(self, requests): pass", "dynamic_batching { }")
    return root


ENDS = (
    'backend: "python" input { name: "x" data_type: TYPE_INT32 dims: 1 } '
    'output { name: "y" data_type: TYPE_INT32 dims: 1 } '
)
SEQUENCES = {
    "direct": DIRECT[: DIRECT.index("  state {")] + "}\n",
    "oldest": OLDEST.replace("  iterative_sequence: true\n", ""),
}
MODELS: Mapping[str, Callable[[Path], Path]] = {
    "triton repository": models.write_repository,
    "ensemble": ensemble,
    "python backend": python,
    **{f"sequences, {name}": triton(f"{ENDS}{text}", "1/model.py") for name, text in SEQUENCES.items()},
    "bare, no dimension": bare(),
    "bare, fixed": bare(4),
    "bare, of any size": bare("n", 4),
    "bare, mixed": mixed,
    **{f"shipped {name}": lambda _, path=path: path for name, path in (
        ("traced", DIGITS / "digits.pt"),
        ("questions, ONNX", QUESTIONS / "questions.onnx"),
        ("questions, scripted", QUESTIONS / "questions.pt"),
        ("sentences, ONNX", SENTENCES / "sentences.onnx"),
        ("sentences, scripted", SENTENCES / "sentences.pt"),
    )},
    **{f"scripted {name}": scripted(name) for name in
       ("two.pt", "choice.pt", "pictures.pt", "named.pt", "binary", "stacked")},
    **{f"djl {name}": lambda root, make=make, name=name: make(root / name) for name, make in folders.EACH.items()},
    "language model": lambda root: language_models.write(root / "lm", "llama"),
}  # fmt: skip
OF_OTHER_LAYOUTS: Mapping[str, Callable[[Path], Path]] = {
    "djl handler": lambda root: djl_folders.make(root, "h", "engine=Python", model_py=djl_folders.HANDLER),
    "torchserve handler": an_archive,
    "workflow": flow,
}


def finished(spec: ModelSpec, form: Format) -> ModelSpec:
    if spec.engine not in CATALOGUE.engines:
        return spec
    engine = CATALOGUE.find_engine(spec)
    return form.finish(spec, engine.facts(spec)) if engine.has_facts else spec


def served(path: Path) -> Iterator[ModelSpec]:
    """The models of a path, as they are served."""
    form = next(form for form in CATALOGUE.formats if form.claims(path))
    reading = form.read(path, HERE)
    assert reading.unreadable == ()
    for spec in reading.specs:
        yield finished(spec, form)


def written(spec: ModelSpec, root: Path) -> Path:
    """A model folder of its printed configuration and its own files."""
    folder = root / "again" / spec.name
    if spec.foreign is not None and spec.foreign.dialect == "triton":
        shutil.copytree(spec.root.parent, folder)
    elif spec.root == root or spec.engine in ("onnx", "torch"):
        (folder / "1").mkdir(parents=True)
        shutil.copy(spec.root / spec.entry, folder / "1" / spec.entry)
    else:
        shutil.copytree(spec.root, folder / "1")
    (folder / "config.pbtxt").write_text(config_text(config_json(spec).decode()))
    return folder


def seen(spec: ModelSpec) -> object:
    """What a client sees of a model, and what is run for it."""
    plain = [
        [(tensor.name, tensor.wire, tensor.dims or (1,), tensor.optional, tensor.many) for tensor in side]
        for side in (spec.inputs, spec.outputs)
    ]
    return spec.name, spec.engine, spec.entry, plain, dict(spec.parameters)


@pytest.mark.parametrize("kind", MODELS)
def test_a_printed_configuration_gives_the_same_model(kind: str, tmp_path: Path) -> None:
    found = 0
    for spec in served(MODELS[kind](tmp_path)):
        folder = written(spec, tmp_path)
        reading = FORMAT.read(folder, HERE)
        assert [str(one) for model in reading.unreadable for one in model.findings] == []
        (again,) = (finished(each, FORMAT) for each in reading.specs if each.version == spec.version)
        assert json.loads(config_json(again)) == json.loads(config_json(spec))
        assert seen(again) == seen(spec)
        if spec.foreign is not None and spec.foreign.dialect == "triton":
            same = {
                "root": spec.root,
                "origin": spec.origin,
                "foreign": spec.foreign,
                "reports": spec.reports,
            }
            assert replace(again, **same) == spec
        found += 1
    assert found


@pytest.mark.parametrize("kind", OF_OTHER_LAYOUTS)
def test_what_no_configuration_describes_is_said_to_be_that(kind: str, tmp_path: Path) -> None:
    (spec,) = served(OF_OTHER_LAYOUTS[kind](tmp_path))
    (tmp_path / "again" / spec.name / "1").mkdir(parents=True)
    folder = tmp_path / "again" / spec.name
    (folder / "config.pbtxt").write_text(config_text(config_json(spec).decode()))
    (unreadable,) = FORMAT.read(folder, HERE).unreadable
    (finding,) = unreadable.findings
    assert (finding.key, finding.line is not None) == ("backend", True)
    assert "Serve that folder as it is" in finding.hint


def test_one_open_tensor_of_a_batch_has_to_be_told(tmp_path: Path) -> None:
    """With a batch dimension nobody could say which of the dims that is."""
    ends = 'input { name: "x" dims: -1 } output { name: "y" data_type: TYPE_FP32 dims: -1 }'
    for rows, keys in ((0, []), (4, ["input[0].data_type"])):
        folder = triton_folders.make(
            tmp_path, f"m{rows}", f'backend: "pytorch" max_batch_size: {rows} {ends}', "1/model.pt"
        )
        reading = FORMAT.read(folder, HERE)
        assert [one.key for model in reading.unreadable for one in model.findings] == keys
        assert [tensor.open for spec in reading.specs for tensor in spec.inputs] == [True] * (not rows)
