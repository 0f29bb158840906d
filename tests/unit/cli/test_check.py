"""`trivium check` names the file that a value is from, whichever of a model's configurations was preferred."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from trivium.cli.check import command

CONFIG = """backend: "identity"
max_batch_size: {}
input {{ name: "x" data_type: TYPE_FP32 dims: 1 }}
output {{ name: "y" data_type: TYPE_FP32 dims: 1 }}
"""


@pytest.mark.parametrize(
    ("words", "said"), [((), "config.pbtxt:2"), (("--model-config-name", "small"), "small.pbtxt:2")]
)
def test_the_file_is_named(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    model = tmp_path / "m"
    (model / "1").mkdir(parents=True)
    (model / "configs").mkdir()
    (model / "config.pbtxt").write_text(CONFIG.format(8))
    (model / "configs/small.pbtxt").write_text(CONFIG.format(2))
    done = CliRunner(env={"COLUMNS": "200"}).invoke(command, [str(model), *words])
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.output.splitlines() if line.split()[:1] == ["max_batch_size"]]
    assert said in line


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [str(tmp_path), "--model-config-name", "a/b"])
    assert done.exit_code == 1
    assert "is no name of a file" in done.output
