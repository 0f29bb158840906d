import os
import tarfile

import pytest
from tests.harness.djl_folders import FORMAT, HANDLER, TORCHSERVE, TRITON, make, zipped


@pytest.mark.parametrize(
    "files",
    [
        {"serving_properties": ""},
        {"serving_properties": "engine=TensorFlow"},
        {"model_py": HANDLER},
        {"m_py": HANDLER},
        {"model_pt": ""},
        {"m_pt": ""},
        {"model_onnx": ""},
        {"saved_model.pb": ""},
        {"serving_properties": "", "model_py": TRITON},
        {"model_py": HANDLER, "_hidden": ""},
    ],
    ids=str,
)
def test_model_folders(tmp_path, files):
    folder = make(tmp_path, "m", **files)
    assert FORMAT.claims(folder)
    assert FORMAT.claims(tmp_path)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"readme_md": ""},
        {"model_py": TRITON},
        {"model_py": TORCHSERVE},
        {"model_py": "def handle("},
        {"model_onnx": "", "config_pbtxt": ""},
        {"serving_properties": "", "config_pbtxt": ""},
        {"config_json": "{}"},
    ],
    ids=str,
)
def test_folders_of_others(tmp_path, files):
    folder = make(tmp_path, "m", **files)
    assert not FORMAT.claims(folder)
    assert not FORMAT.claims(tmp_path)


def test_folders_of_other_formats(tmp_path):
    triton = make(tmp_path / "repository", "a")
    make(triton, "1", model_onnx="")
    assert not FORMAT.claims(triton)
    assert not FORMAT.claims(triton.parent)
    torchserve = make(tmp_path, "t", model_pt="")
    (torchserve / "MAR-INF").mkdir()
    assert not FORMAT.claims(torchserve)
    nested = make(tmp_path, "n")
    (nested / "MAR-INF").mkdir()
    assert not FORMAT.claims(nested)


def test_a_nested_folder_stands_for_its_model(tmp_path):
    make(tmp_path / "outer" / "m", "inner", model_py=HANDLER)
    assert FORMAT.claims(tmp_path / "outer" / "m")


def test_archives(tmp_path):
    folder = make(tmp_path, "m", "engine=Python", model_py=HANDLER)
    assert FORMAT.claims(zipped(folder, tmp_path / "a.zip"))
    assert FORMAT.claims(zipped(folder, tmp_path / "b.zip", "m/"))
    assert not FORMAT.claims(zipped(folder, tmp_path / "b.mar"))
    for suffix, mode in (("tar", "w"), ("tar.gz", "w:gz"), ("tgz", "w:gz")):
        with tarfile.open(tmp_path / f"c.{suffix}", mode) as opened:
            opened.add(folder, "m")
        assert FORMAT.claims(tmp_path / f"c.{suffix}")
    (folder / "MAR-INF").mkdir()
    assert not FORMAT.claims(zipped(folder, tmp_path / "d.zip"))
    (tmp_path / "e.zip").write_bytes(b"PK no archive")
    assert not FORMAT.claims(tmp_path / "e.zip")
    empty = make(tmp_path, "empty", readme_md="")
    assert not FORMAT.claims(zipped(empty, tmp_path / "f.zip"))


def test_stores(tmp_path):
    store = tmp_path / "store"
    folder = make(store, "a", model_py=HANDLER)
    zipped(folder, store / "b.zip")
    make(store, "empty")
    make(store, "broken", readme_md="")
    (store / ".hidden").touch()
    assert FORMAT.claims(store)
    (store / "stray.txt").touch()
    os.mkfifo(store / "pipe.zip")
    assert FORMAT.claims(store)
    make(store, "triton", config_pbtxt="")
    assert not FORMAT.claims(store)


def test_a_store_of_archives_of_others(tmp_path):
    folder = make(tmp_path, "m", model_py=HANDLER)
    store = tmp_path / "store"
    store.mkdir()
    zipped(folder, store / "a.zip")
    assert FORMAT.claims(store)
    zipped(folder, store / "b.mar")
    assert not FORMAT.claims(store)


def test_odd_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").symlink_to(tmp_path / "m")
    (tmp_path / "d.zip").mkdir()
    (tmp_path / "model.onnx").mkdir()
    os.mkfifo(tmp_path / "pipe.zip")
    for name in ("m", "d.zip", "pipe.zip", "missing", "missing.zip", "x" * 300 + ".zip", "", "a\0b.zip"):
        assert not FORMAT.claims(tmp_path / name)
