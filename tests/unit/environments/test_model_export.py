"""Converting a model for OpenVINO: the command, where it may go, and that nothing is left of one that failed."""

import sys
import threading
from pathlib import Path

import pytest

from trivium.environments.model_export import NAME, export_to_openvino, exporting, judge_places
from trivium.environments.named import EnvironmentState, NamedEnvironment
from trivium.environments.store import BuildServices
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import NO_GUARD

CONVERTER = """
import sys
from pathlib import Path
made, source = Path(sys.argv[-1]), Path(sys.argv[sys.argv.index("--model") + 1])
way = (source / "way").read_text()
if way == "dies":
    sys.exit("ValueError: no such architecture")
made.mkdir()
for name in ("openvino_model.xml", "openvino_model.bin", "config.json")[: 2 if way == "lacks" else 3]:
    (made / name).write_text(sys.argv[sys.argv.index("--weight-format") + 1])
"""


class Environments:
    """Has one environment, whose interpreter runs the module that stands in for the converter."""

    def __init__(self, folder: Path) -> None:
        python = folder / "bin" / "python"
        python.parent.mkdir(parents=True)
        (folder / "converter.py").write_text(CONVERTER)
        python.write_text(f'#!/bin/sh\nshift 4\nexec {sys.executable} {folder / "converter.py"} "$@"\n')
        python.chmod(0o755)
        self._made = NamedEnvironment(NAME, folder, EnvironmentState.READY)

    def build(self, name, services):
        assert name == NAME
        return self._made, False


def converted(tmp_path: Path, way: str, weights: str = "fp32") -> Path:
    source, target = tmp_path / "source", tmp_path / "out" / "new"
    source.mkdir()
    (source / "way").write_text(way)
    services = BuildServices(
        tmp_path, {"PATH": "/usr/bin:/bin"}, threading.Event(), NO_GUARD, lambda line: None
    )
    export_to_openvino(Environments(tmp_path / "environment"), source, target, weights, services)
    return target


def test_a_folder_is_made_as_it_was_asked_for(tmp_path):
    target = converted(tmp_path, "works", "int8")
    assert sorted(file.name for file in target.iterdir()) == [
        "config.json",
        "openvino_model.bin",
        "openvino_model.xml",
    ]
    assert (target / "config.json").read_text() == "int8"
    assert [entry.name for entry in target.parent.iterdir()] == ["new"], "no scratch folder is left"


@pytest.mark.parametrize(("way", "words"), [("dies", "no such architecture"), ("lacks", "no config.json")])
def test_one_that_fails_says_why_and_leaves_nothing(tmp_path, way, words):
    with pytest.raises(ServeError, match=words) as caught:
        converted(tmp_path, way)
    assert caught.value.code is Code.LOAD_FAILED
    assert list((tmp_path / "out").iterdir()) == []


def test_nothing_is_overwritten_and_no_model_gets_a_copy_of_itself(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(ServeError, match="is not overwritten"):
        judge_places(tmp_path / "source", tmp_path / "there")
    with pytest.raises(ServeError, match="within the model's own folder"):
        judge_places(tmp_path, tmp_path / "new")
    judge_places(tmp_path / "source", tmp_path / "new")


def test_the_command_runs_no_code_of_the_folder():
    command = exporting(Path("python"), Path("from"), Path("to"), "fp16")
    assert command[:2] == ("python", "-I")
    assert "--trust-remote-code" not in command
    assert command[-1] == "to"
