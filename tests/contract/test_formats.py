"""What every format owes: names, and a claim that never raises, whatever the path is."""

import json
import os
from pathlib import Path

import pytest
from tests.harness.llm_folders import checkpoint

from trivium.catalogue import CATALOGUE
from trivium.core.models.source_policy import applied
from trivium.types.interfaces import SupportsMembers
from trivium.types.spec import Defaults, ReadResult

every_format = pytest.mark.parametrize("form", CATALOGUE.formats, ids=lambda form: form.name)


def unreadable(root):
    """A folder that may not be listed, below one that may; a test run by root may read it all the same."""
    (root / "shut").mkdir(mode=0)
    return root


def dangling(root):
    (root / "model.onnx").symlink_to(root / "gone.onnx")
    return root / "model.onnx"


def dangling_inside(root):
    (root / "m").symlink_to(root / "gone")
    return root


def looping(root):
    (root / "m").symlink_to(root / "m")
    return root / "m"


def not_utf_8(root):
    path = Path(os.fsdecode(os.fsencode(root) + b"/\xff.onnx"))
    path.mkdir()
    return path


def a_file(root, name="f"):
    (root / name).write_bytes(b"\0")
    return root / name


def a_fifo(root):
    os.mkfifo(root / "pipe.onnx")
    return root / "pipe.onnx"


ODD = {
    "missing": lambda root: root / "missing",
    "missing, by its suffix a model": lambda root: root / "missing.onnx",
    "a file": a_file,
    "below a file": lambda root: a_file(root) / "x.onnx",
    "an empty folder": lambda root: root,
    "a folder called like a model": lambda root: (root / "x.onnx").mkdir() or root / "x.onnx",
    "a dangling link": dangling,
    "a folder with a dangling link": dangling_inside,
    "a link to itself": looping,
    "a folder that may not be read": unreadable,
    "a name that is not UTF-8": not_utf_8,
    "a name that is too long": lambda root: root / ("x" * 300 + ".onnx"),
    "a path that is too long": lambda root: root.joinpath(*["x" * 200] * 30, "m.onnx"),
    "a pipe": a_fifo,
    "nothing": lambda root: Path(),
    "no file system's": lambda root: Path("/dev/null"),
}


@every_format
@pytest.mark.parametrize("name", ODD)
def test_claims_never_raises(form, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert form.claims(ODD[name](tmp_path)) is False


@every_format
def test_claims_never_raises_where_the_rights_lack(form, tmp_path, monkeypatch):
    def denied(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "m.onnx").mkdir()
    for name in ("stat", "lstat", "scandir", "listdir"):
        monkeypatch.setattr(os, name, denied)
    assert form.claims(tmp_path) is False
    assert form.claims(tmp_path / "m.onnx") is False


@every_format
def test_names_and_expectations(form):
    assert form.name.isidentifier()
    assert form.expects[0].islower()
    assert not form.expects.endswith(".")
    assert len({other.name for other in CATALOGUE.formats}) == len(CATALOGUE.formats)


def a_bare_model(root):
    return a_file(root, "digits.onnx")


def a_repository(root):
    for name in ("a", "b"):
        (root / name / "1").mkdir(parents=True)
        a_file(root / name / "1", "model.onnx")
    return root


def a_djl_folder(root):
    (root / "model.py").write_text("def handle(inputs):\n    return None\n")
    (root / "serving.properties").write_text("engine=Python\n")
    return root


def an_archive(root):
    manifest = {
        "model": {"modelName": "m", "handler": "handler.py", "modelVersion": "1.0"},
        "runtime": "python",
    }
    (root / "MAR-INF").mkdir()
    (root / "MAR-INF" / "MANIFEST.json").write_text(json.dumps(manifest))
    (root / "handler.py").write_text("def handle(data, context):\n    return data\n")
    return root


def a_folder_of_mlflow(root):
    a_file(root, "model.onnx")
    (root / "MLmodel").write_text("flavors:\n  onnx:\n    data: model.onnx\n")
    return root


def a_typed_handler(root):
    (root / "app.py").write_text(
        "class Echo:\n    def predict(self, text: str) -> str:\n        return text\n"
    )
    return root


def a_lone_file(root):
    a_file(root, "whatever.onnx")
    a_file(root, "metadata.json")
    return root


def a_lone_table(root):
    a_file(root, "model.skops")
    return root


MODELS = {
    **{"bare": a_bare_model, "triton": a_repository, "djl": a_djl_folder, "torchserve": an_archive},
    **{"huggingface": checkpoint, "mlflow": a_folder_of_mlflow, "typed": a_typed_handler},
    **{"lone_file": a_lone_file, "lone_table": a_lone_table},
}
"""A path per format that it claims: a new format needs a row here."""

BEHIND = {"lone_table": ["djl"]}
"""Formats that claim the path of another one, and come behind it: DJL's own command reads it as theirs."""


@every_format
def test_what_it_claims_it_reads_and_nobody_else_claims(form, tmp_path):
    path = MODELS[form.name](tmp_path)
    assert [other.name for other in CATALOGUE.formats if other.claims(path)] == [
        form.name,
        *BEHIND.get(form.name, ()),
    ]
    reading = form.read(path, Defaults(queue_items=17))
    assert isinstance(reading, ReadResult)
    assert reading.unreadable == ()
    assert len({(spec.name, spec.version) for spec in reading.specs}) == len(reading.specs) > 0
    for spec in reading.specs:
        assert (spec.root / spec.entry).is_file()
        assert spec.groups
        assert spec.limits.queue_items == 17
        assert {"name", "version", "engine", "limits.queue_items"} <= set(spec.origin)


def a_workflow(root):
    (root / "glue.py").write_text("def f(one):\n    return one\n")
    document = {
        "models": {"m": f"{root}/m", "own": str(root)},
        "functions": {"f": "glue:f"},
        "workflow": {"out": ["m", ["own", ["f", "in"]]]},
    }
    (root / "workflow.json").write_text(json.dumps(document))
    (root / "m").mkdir()
    a_djl_folder(root / "m")
    return a_djl_folder(root)


GRAPHS = {"djl": a_workflow}
"""A path per format whose models bring others: what a graph brings is read like anything else."""


@pytest.mark.parametrize(
    "form", [form for form in CATALOGUE.formats if isinstance(form, SupportsMembers)], ids=lambda f: f.name
)
def test_what_a_graph_brings_is_read_under_the_names_of_its_steps(form, tmp_path):
    (spec,) = form.read(GRAPHS[form.name](tmp_path), Defaults()).specs
    sources = form.members(spec)
    assert {source.name for source in sources} == set(spec.scheduling.models)
    for source in sources:
        path = Path(source.uri)
        (claiming,) = [other for other in CATALOGUE.formats if other.claims(path)]
        reading = applied(claiming.read_source(path, source, Defaults()), source, True)
        assert reading.unreadable == ()
        (member,) = reading.specs
        assert (member.name, claiming.members(member)) == (source.name, ())


@every_format
def test_reading_a_path_that_went_away_does_not_raise(form, tmp_path):
    path = MODELS[form.name](tmp_path)
    gone = path.with_name("gone" + path.suffix)
    path.rename(gone)
    reading = form.read(path, Defaults())
    assert isinstance(reading, ReadResult)
    gone.rename(path)
