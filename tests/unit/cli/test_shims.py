"""`trivium shims`: the folder that has `ts`, and a file that torch-model-archiver can be given."""

from pathlib import Path

from click.testing import CliRunner

from trivium.cli.shims import command
from trivium.servers.torchserve.words import llm_api_file


def shims(name: str) -> str:
    done = CliRunner().invoke(command, [name])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_folder_has_the_package() -> None:
    assert (Path(shims("torchserve").strip()) / "ts" / "__init__.py").is_file()


def test_the_file_is_the_one_that_is_known_in_an_archive() -> None:
    text = shims("llm_api")
    assert text == llm_api_file.TEXT
    assert text.startswith(llm_api_file.FIRST_LINE)
    assert compile(text, "llm_api.py", "exec")


def test_another_name_is_told_those_that_there_are() -> None:
    done = CliRunner().invoke(command, ["triton"])
    assert done.exit_code == 2
    assert "'torchserve', 'llm_api'" in done.output
