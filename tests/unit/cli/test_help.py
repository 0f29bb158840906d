"""The help of commands: one screen for what most people need, all by group, or what is about a word; nearest names."""

import click
import pytest
from click.testing import CliRunner, Result

from trivium.cli.main import main

SCREEN = 70
"""Lines of a terminal that is not small."""


def shown(*words: str) -> Result:
    return CliRunner().invoke(main, words, terminal_width=100)


def test_the_first_help_fits_a_screen_and_leads_to_the_rest() -> None:
    result = shown("--help")
    assert (result.exit_code, len(result.output.splitlines()) < 36) == (0, True)
    result = shown("serve", "--help")
    lines = result.output.splitlines()
    assert (result.exit_code, len(lines) <= SCREEN) == (0, True)
    assert 18 <= sum(line.startswith("  -") for line in lines) <= 25
    assert "--help-all" in result.output
    assert "--grpc-min-ping-interval" not in result.output


def test_all_options_are_shown_by_group() -> None:
    result = shown("serve", "--help-all")
    assert result.exit_code == 0
    assert "gRPC, [grpc] in the file:" in result.output
    assert "--grpc-min-ping-interval" in result.output


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_options_about_a_word(flag: str) -> None:
    result = shown("serve", flag, "TLS")
    flags = [line.split()[0] for line in result.output.splitlines() if line.startswith("  --")]
    assert "--http-tls-key" in flags
    assert "--http-port" not in flags
    result = shown("serve", flag, "nothing-is-called-so")
    assert (result.exit_code, "See --help-all." in result.output) == (2, True)


def test_what_stands_behind_two_dashes_is_a_path() -> None:
    result = shown("serve", "--", "--help-all")
    assert "[grpc] in the file" not in result.output


@pytest.mark.parametrize(
    ("word", "hint"),
    [("srve", "Did you mean serve?"), ("zzzzzz", "There are: serve, run, chat, pull, list, rm,")],
)
def test_a_mistyped_command_gets_the_nearest_one(word: str, hint: str) -> None:
    result = shown(word)
    assert (result.exit_code, hint in result.output) == (2, True)


def test_sizes_and_times_take_units() -> None:
    result = shown("serve", "no_such_model", "--max-body-bytes", "1X")
    assert "with a unit like 64M" in result.output
    result = shown("serve", "no_such_model", "--run-timeout", "soon")
    assert "with a unit like 250ms" in result.output
    assert isinstance(main, click.Group)
