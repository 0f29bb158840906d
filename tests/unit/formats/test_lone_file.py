"""A folder that holds one model file is that model, as KServe lays it out."""

from pathlib import Path

import pytest

from trivium.formats.bare import LONE, LONE_TABLE
from trivium.types.spec import Defaults


def folder(root: Path, *files: str, start: bytes = b"x") -> Path:
    for each in files:
        (root / "models" / each).parent.mkdir(parents=True, exist_ok=True)
        (root / "models" / each).write_bytes(start)
    return root / "models"


@pytest.mark.parametrize(
    ("files", "is_one"),
    [
        (["iris.ubj"], True),
        (["iris.ubj", "README.md", ".lock"], True),
        (["net.pdmodel", "net.pdiparams"], True),
        (["1/saved_model.pb"], True),
        (["1/saved_model.pb", "2/saved_model.pb"], False),
        (["iris.ubj", "iris.onnx"], False),
        (["iris.ubj", "more/iris.onnx"], False),
        (["iris.ubj", "serving.properties"], False),
        (["README.md"], False),
        (["model/iris.ubj"], True),
        (["model/0001/saved_model.pb"], True),
        (["a/b/c/d/iris.ubj"], True),
        (["a/b/c/d/e/iris.ubj"], False),
        (["a/b/iris.ubj", "a/README.md"], False),
    ],
)
def test_which_folders_are_one_file(tmp_path: Path, files: list[str], is_one: bool) -> None:
    assert LONE.claims(folder(tmp_path, *files)) is is_one


def test_it_is_named_after_its_folder(tmp_path: Path) -> None:
    path = folder(tmp_path, "iris.ubj")
    (spec,) = LONE.read(path, Defaults()).specs
    assert (spec.name, spec.entry, spec.engine, spec.groups[0].name) == (
        "models",
        "iris.ubj",
        "xgboost",
        "models",
    )
    assert str(spec.origin["name"]) == "the folder's name"


def test_folders_around_it_do_not_name_it(tmp_path: Path) -> None:
    """What an archive leaves: kserve/kserve#1684."""
    path = folder(tmp_path, "digits/0001/saved_model.pb")
    (spec,) = LONE.read(path, Defaults()).specs
    assert (spec.name, spec.root, spec.engine) == ("digits", path / "digits" / "0001", "tensorflow")


def test_tables_of_two_libraries_alone_go_before_other_formats(tmp_path: Path) -> None:
    assert not LONE_TABLE.claims(folder(tmp_path / "a", "model.ubj"))
    assert LONE_TABLE.claims(folder(tmp_path / "d", "iris/model.joblib"))
    assert not LONE_TABLE.claims(folder(tmp_path / "e", "iris/model.joblib", "iris/serving.properties"))
    assert not LONE_TABLE.claims(folder(tmp_path / "f", "iris/model.joblib", "flowers/model.joblib"))
    assert LONE_TABLE.claims(folder(tmp_path / "b", "model.joblib"))
    assert LONE_TABLE.claims(folder(tmp_path / "c", "model.bst", start=b"tree\nversion=v4"))


def test_a_folder_that_has_changed_since_is_refused(tmp_path: Path) -> None:
    (broken,) = LONE.read(folder(tmp_path, "a.onnx", "b.onnx"), Defaults()).unreadable
    assert broken.findings[0].found == "no model file, or several"
