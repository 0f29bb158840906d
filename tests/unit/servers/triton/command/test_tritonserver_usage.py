"""The command line of `tritonserver`: how words become values, and what a person reads where they do not."""

from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from trivium.servers.triton.command.usage import Usage, given, options


def parsed(*words: str) -> dict[str, Any]:
    """The flags that a command line gives."""
    found: dict[str, Any] = {}
    command = Usage("tritonserver", params=options(), callback=lambda **values: found.update(given(values)))
    command.main(list(words), standalone_mode=False)
    return found


def called(*words: str) -> Result:
    """What the command does with such a line."""
    return CliRunner().invoke(Usage("tritonserver", params=options(), callback=lambda **values: None), words)


def test_nothing_is_given_by_default() -> None:
    assert parsed() == {}


@pytest.mark.parametrize("words", [["--http-port=0"], ["--http-port", "0"]])
def test_a_value_comes_with_or_behind_its_flag(words: list[str]) -> None:
    assert parsed(*words) == {"--http-port": 0}


def test_a_value_may_look_like_a_flag() -> None:
    assert parsed("--trace-count", "-1") == {"--trace-count": -1}


def test_some_flags_add_up_and_of_others_the_last_one_counts() -> None:
    assert parsed("--load-model=a", "--load-model", "b", "--id=x", "--id=y", "--allow-grpc=off") == {
        "--load-model": ("a", "b"),
        "--id": "y",
        "--allow-grpc": False,
    }


def test_a_switch_has_no_value() -> None:
    assert parsed("--disable-auto-complete-config") == {"--disable-auto-complete-config": True}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nonsense=1"], "unrecognized option '--nonsense'"),
        (["--http-prot=1"], "Did you mean --http-port"),
        (["--model-repo=x"], "unrecognized option '--model-repo'"),
        (["--http-port"], "requires an argument"),
        (["--http-port=x"], "Invalid option value. Got x"),
        (["models"], "unexpected extra argument (models)"),
    ],
)
def test_what_cannot_be_read_ends_with_the_usage(words: list[str], says: str) -> None:
    done = called(*words)
    assert done.exit_code == 1
    assert says in done.stderr
    assert "Usage: tritonserver [options]" in done.stderr
    assert done.stdout == ""


def test_help_names_groups_flags_and_what_is_not_served() -> None:
    done = called("--help")
    assert done.exit_code == 0
    text = " ".join(done.output.split())
    assert "Usage: tritonserver [options]" in text
    for words in ("HTTP:", "GRPC:", "DEPRECATED:", "--http-port <integer>", "[default: 8000]"):
        assert words in text
    assert "--pinned-memory-pool-byte-size <integer> Bytes of pinned memory. (no, reported:" in text


def test_click_is_told_of_every_flag_once() -> None:
    names = [name for option in options() for name in option.opts]
    assert len(names) == len(set(names))
    assert all(isinstance(option, click.Option) for option in options())
