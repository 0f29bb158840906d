"""The options of `torchserve`: each has a row in the manual, and stands for a property or is told to have no effect."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from trivium.servers.torchserve.command.options import (
    Refused,
    check_log_config,
    check_model_store,
    check_other_places,
    notices_of,
    parser,
    settings_of,
)
from trivium.servers.torchserve.command.properties_table import CONFIG

PAGE = (Path(__file__).parents[5] / "docs" / "torchserve.md").read_text()
OPTIONS = sorted(set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", parser().format_help())) - {"-h", "--help"})
ALL = [
    "--model-store",
    "a",
    "--workflow-store",
    "b",
    "--models",
    "m",
    "n=o",
    "--plugins-path",
    "p",
    "--cpp-log-config",
    "c",
    "--disable-token-auth",
    "--enable-model-api",
]


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_has_a_row(option: str) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `-")]
    assert any(f"`{option}`" in row or f"`{option} " in row for row in rows)


def test_options_stand_for_properties() -> None:
    found = settings_of(parser().parse_args(ALL))
    assert found.keys() <= CONFIG.rows.keys()
    assert found["load_models"].value == "m,n=o"
    assert str(found["disable_token_authorization"].origin) == "the command line (--disable-token-auth)"
    assert not settings_of(parser().parse_args([]))
    short = parser().parse_args(["--dt", "--ncs", "--ppath", "p"])
    assert (short.disable_token_auth, short.no_config_snapshots, short.plugins_path) == (True, True, "p")


def test_what_stands_for_no_property_is_told() -> None:
    assert not notices_of(parser().parse_args(["--ncs"]))
    assert not notices_of(parser().parse_args([]))
    assert (
        "--log-config x has no effect" in notices_of(parser().parse_args(["--ncs", "--log-config", "x"]))[0]
    )


@pytest.mark.parametrize("words", [["--start", "--stop"], ["--start", "-v"], ["--st"], ["--models"]])
def test_a_line_that_cannot_be_read_ends_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parser().parse_args(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: torchserve")


@pytest.mark.parametrize(
    ("check", "option", "word"),
    [
        (check_log_config, "--log-config", "file"),
        (check_model_store, "--model-store", "directory"),
        (check_other_places, "--workflow-store", "directory"),
        (check_other_places, "--cpp-log-config", "file"),
    ],
)
def test_files_and_folders_have_to_be_what_they_are_said_to_be(
    check: Callable[[argparse.Namespace], None], option: str, word: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    right, wrong = (tmp_path / "file", tmp_path) if word == "file" else (tmp_path, tmp_path / "file")
    check(parser().parse_args([option, str(right)]))
    with pytest.raises(Refused, match=f"^{option} {word} not found: {wrong}$"):
        check(parser().parse_args([option, str(wrong)]))
    check(parser().parse_args([]))


@pytest.mark.parametrize(
    ("short", "name"), [("--disable-token", "disable_token_auth"), ("--fore", "foreground")]
)
def test_an_option_may_be_cut_short_as_in_the_original(short: str, name: str) -> None:
    assert getattr(parser().parse_args([short]), name)
