"""Flags of the server: the help that shows them in groups, and what a command does with faults and notices."""

import logging
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from trivium.catalogue import CATALOGUE
from trivium.cli import options
from trivium.cli.options import ServerCommand, configure, server_options
from trivium.config import loading

SCHEMA = CATALOGUE.schema


def run(*words: str, **variables: str) -> Result:
    """A command that only prints the port, and the profile, that it would serve."""

    @click.command("serve", cls=ServerCommand)
    @server_options
    def command(config_file: Path | None, **flags: Any) -> None:
        config = configure(config_file, flags)
        click.echo(f"{config.server.profile} on {config.http.port}")

    return CliRunner().invoke(command, words, env=variables, terminal_width=200)


@pytest.fixture(autouse=True)
def _logs_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "log_to_stderr", lambda level, form: None)


def test_what_most_people_need_stands_at_the_top_of_the_help_and_all_else_by_group() -> None:
    top, *sections = run("--help-all").output.split(", [")
    for flag in ("--config", "--http-port", "--host", "--open", "--profile", "--log-level"):
        assert f"  {flag} " in top
    assert [section.split("]")[0] for section in sections] == list(SCHEMA.groups)
    for section in sections:
        group = section.split("]")[0]
        rest = {each.flag for each in SCHEMA.options.values() if each.group == group and not each.is_common}
        assert {line.split()[0] for line in section.splitlines() if line.startswith("  --")} == rest


def test_flags_win_over_variables() -> None:
    assert run("--http-port", "7", TRIVIUM_HTTP_PORT="8", TRIVIUM_PROFILE="djl").output == "djl on 7\n"


def test_a_fault_ends_the_command_with_its_sentence() -> None:
    done = run("--http-port", "70000")
    assert done.exit_code == 1
    assert done.output.startswith(
        "Error: command line: --http-port: 70000; expected a whole number from 0 to 65535"
    )


def test_notices_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        done = run(
            TRIVIUM_HTTP_PROT="7", TRIVIUM_SERVICE_HOST="10.0.0.1", TRIVIUM_HTTP_PORT="tcp://10.0.0.1:80"
        )
    assert done.output == "native on 8080\n"
    unknown, skipped = caplog.messages
    assert "Did you mean TRIVIUM_HTTP_PORT?" in unknown
    assert "TRIVIUM_HTTP_PORT, TRIVIUM_SERVICE_HOST" in skipped


@pytest.mark.parametrize("words", [["--grpc-lair"], ["--grpc-lair", "own"], ["--grpc-lair=own"]])
def test_a_flag_that_was_removed_says_what_to_do(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    assert run(*words).exit_code == 2
    monkeypatch.setitem(loading.REMOVED, "grpc_lair", "Drop it: there is one lair.")
    done = run(*words)
    assert done.exit_code == 1
    assert "--grpc-lair: this option was removed. Drop it: there is one lair." in done.output
    assert "lair" not in run("--help").output


@pytest.mark.parametrize("value", ["own", "grpcio"])
def test_grpc_has_one_layer(value: str) -> None:
    done = run("--grpc-layer", value)
    assert done.exit_code == 1
    assert (
        "--grpc-layer: this option was removed. Drop it: gRPC is served by Trivium's own HTTP/2"
        in done.output
    )
