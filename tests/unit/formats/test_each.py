"""Whatever is wrong with one folder is its own finding, and what lies in it is never waited for."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.virtual_models import make_spec

from trivium.files import oddity, open_file
from trivium.formats.each import read_each


def test_only_files_are_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    with open_file(tmp_path / "file") as file:
        assert file.read() == b"text"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name, said in (
        ("pipe", "a named pipe"),
        ("zero", "a device"),
        (".", "directory"),
        ("none", "No such file"),
    ):
        with pytest.raises(OSError, match=said):
            open_file(tmp_path / name)
    assert [oddity(tmp_path / name) for name in ("file", "pipe", "zero", ".", "none")] == [
        "", "a named pipe", "a device", "", "",
    ]  # fmt: skip


def test_each_model_has_its_own_fault_and_its_neighbours_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "good.onnx").touch()

    def read(place: Path):
        if place.name == "buggy":
            raise KeyError("ours")
        if place.name == "denied":
            raise PermissionError(13, "Permission denied", str(place))
        return [replace(make_spec(), name=place.name, root=tmp_path, entry=f"{place.name}.onnx")]

    names = ["good", "buggy", "denied", "pipe", "esc\x1b", "good2"]
    reading = read_each([tmp_path / name for name in names], read, lambda place: place.name)
    assert [spec.name for spec in reading.specs] == ["good", "good2"]
    found = {model.name: model.findings[0].found for model in reading.unreadable}
    assert list(found) == ["buggy", "denied", "pipe", "esc\\x1b"]
    assert found["buggy"] == "reading it failed: KeyError: 'ours'"
    assert found["denied"] == "Permission denied"
    assert found["pipe"] == "a named pipe"
    assert "control characters" in found["esc\\x1b"]
