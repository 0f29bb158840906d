"""The split is a partition, stratified, and the training script never holds the held-out part."""

import ast
import zipfile
from pathlib import Path

import numpy as np
import pytest
from examples.digits import archive, graph, network, shipped, train
from examples.digits.split import held_out_part, training_part
from sklearn.datasets import load_digits

DIGITS = load_digits()


def test_the_parts_are_disjoint_and_make_the_whole() -> None:
    training, held_out = training_part().indices, held_out_part().indices
    assert not set(training) & set(held_out)
    assert sorted([*training, *held_out]) == list(range(len(DIGITS.target)))


def test_of_every_class_a_fifth_is_held_out() -> None:
    whole, held_out = np.bincount(DIGITS.target), np.bincount(held_out_part().labels)
    assert (np.abs(held_out - whole / 5) < 1).all()


@pytest.mark.parametrize("part", [training_part(), held_out_part()], ids=["training", "held out"])
def test_a_part_holds_the_pictures_of_its_indices(part) -> None:
    assert (part.labels == DIGITS.target[part.indices]).all()
    assert part.tensor.shape == (len(part.indices), 1, 8, 8)
    assert part.tensor.dtype == np.float32
    np.testing.assert_allclose(part.tensor[:, 0], DIGITS.images[part.indices] / 16, atol=0.5 / 255 + 1e-6)


@pytest.mark.parametrize("module", [train, network, graph])
def test_what_trains_cannot_reach_the_held_out_part(module) -> None:
    names = _imports(Path(module.__file__))
    assert not {name for name in names if name.startswith("sklearn")}
    assert {name for name in names if ".split" in name} <= {
        "examples.digits.split.Part",
        "examples.digits.split.training_part",
    }


def test_the_script_trains_on_the_training_part_alone(monkeypatch, tmp_path) -> None:
    seen = []

    def record(part, epochs, seed):
        seen.append(part)
        return network.initial_weights(np.random.default_rng(seed))

    monkeypatch.setattr(train, "train", record)
    networks = tuple(tmp_path / name / "model.onnx" for name in "abc")
    monkeypatch.setattr(shipped, "NETWORKS", networks)
    monkeypatch.setattr(shipped, "BARE_MODEL", networks[0])
    monkeypatch.setattr(shipped, "ARCHIVE", tmp_path / "digits.mar")
    train.main()
    (part,) = seen
    assert (part.indices == training_part().indices).all()
    assert len({network.read_bytes() for network in networks}) == 1
    with zipfile.ZipFile(shipped.ARCHIVE) as file:
        assert file.read(archive.NETWORK) == networks[0].read_bytes()


def test_the_shipped_files_hold_one_network_and_the_archive_is_made_of_the_sources(tmp_path) -> None:
    assert len({network.read_bytes() for network in shipped.NETWORKS}) == 1
    archive.write(tmp_path / "again.mar")
    assert (tmp_path / "again.mar").read_bytes() == shipped.ARCHIVE.read_bytes()


def _imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names
