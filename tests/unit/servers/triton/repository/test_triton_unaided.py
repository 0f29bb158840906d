"""A server that completes nothing refuses what others fill in."""

from pathlib import Path

import pytest
from tests.harness.triton_folders import TENSORS, make

from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.spec import Defaults

WHOLE = 'name: "m" backend: "onnxruntime" ' + TENSORS


def refusals(tmp_path: Path, config: str | None) -> list[str]:
    make(tmp_path, "m", config, "1/model.onnx")
    reading = FORMAT.read(tmp_path, Defaults(completes=False))
    assert bool(reading.specs) != bool(reading.unreadable)
    return [finding.found for model in reading.unreadable for finding in model.findings]


def test_a_whole_configuration_is_served(tmp_path: Path) -> None:
    assert refusals(tmp_path, WHOLE) == []


@pytest.mark.parametrize(
    ("config", "found"),
    [
        (None, ["no config.pbtxt"]),
        ('backend: "onnxruntime" ' + TENSORS, ["no name"]),
        ('name: "m" ' + TENSORS, ["neither backend nor platform"]),
        (
            'name: "m" backend: "onnxruntime"',
            [f"no {part}, and nothing is completed on this server" for part in ("input", "output")],
        ),
    ],
)
def test_what_lacks_is_an_error(tmp_path: Path, config: str | None, found: list[str]) -> None:
    assert [text for text in refusals(tmp_path, config) if text in found] == found


def test_others_complete_all_of_this(tmp_path: Path) -> None:
    make(tmp_path, "m", None, "1/model.onnx")
    assert FORMAT.read(tmp_path, Defaults()).unreadable == ()
