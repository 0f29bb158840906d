"""What a hint tells to write exists in the command that speaks: its own flag or key, or a variable that it reads."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import trivium
from trivium.catalogue import CATALOGUE, configured
from trivium.codecs.error_texts import not_from_here
from trivium.codecs.page_rule import rule_of
from trivium.fetchers.policy import judge_address, permitted, read_places
from trivium.frontends.limits import http_limits
from trivium.machine.shared_memory import SWITCHED_OFF
from trivium.servers.djl.command import keys
from trivium.servers.torchserve.command import properties_table
from trivium.servers.torchserve.wire.management_errors import model_api_off
from trivium.servers.torchserve.words.model_urls import ModelStore
from trivium.servers.triton.command import settings
from trivium.servers.triton.command.flag_table import FLAGS
from trivium.servers.triton.repository.repository import FORMAT
from trivium.types.errors import ServeError
from trivium.types.spec import Defaults
from trivium.types.spoken import speak, speak_as_ourselves, spoken

OURS = {option.flag for option in CATALOGUE.schema.options.values()}
VARIABLES = {option.variable for option in CATALOGUE.schema.options.values()}
COMMANDS: Mapping[str, tuple[Mapping[str, str], set[str]]] = {
    "djl-serving": (keys.OWN_WORDS, set(keys.CONFIG.rows)),
    "torchserve": (properties_table.OWN_WORDS, set(properties_table.CONFIG.rows)),
    "tritonserver": (settings.OWN_WORDS, set(FLAGS)),
}
"""Command -> its words for our flags, and all the keys or flags that it has."""


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> Iterator[str]:
    speak(COMMANDS[request.param][0])
    yield request.param
    speak_as_ourselves()


def scenes(root: Path) -> Iterator[str]:
    """Sentences with our options in them that any command may come to say."""

    def refused(call: Callable[[], object]) -> str:
        with pytest.raises(ServeError) as caught:
            call()
        return caught.value.message

    yield refused(lambda: permitted("https://x.example/m.mar", ()))
    yield refused(lambda: read_places("ftp://x", ("https",)))
    yield refused(lambda: judge_address("10.0.0.1", "x.example"))
    yield refused(lambda: rule_of("https://x"))
    yield refused(lambda: http_limits(configured(cors="x y")))
    yield not_from_here().message
    yield spoken(SWITCHED_OFF)
    (root / "m" / "configs").mkdir(parents=True)
    (root / "m" / "configs" / "fast.pbtxt").write_text("")
    (root / "m" / "1").mkdir()
    (root / "m" / "1" / "model.onnx").touch()
    for spec in FORMAT.read(root / "m", Defaults()).specs:
        yield from (f"{one.found} {one.hint}" for one in spec.reports)


def written_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]|TRIVIUM_[A-Z_]+|trivium_[a-z_]+", text))


def test_what_a_hint_names_exists_in_the_command(command: str, tmp_path: Path) -> None:
    _, there = COMMANDS[command]
    said = set[str]()
    for text in scenes(tmp_path):
        assert written_in(text), text
        said |= written_in(text)
    assert len(said) >= 6
    assert said <= there | VARIABLES, said - there - VARIABLES


def test_our_own_command_speaks_of_its_flags(tmp_path: Path) -> None:
    said = {word for text in scenes(tmp_path) for word in written_in(text)}
    assert len(said) >= 6
    assert said <= OURS


def test_what_keeps_a_model_from_being_registered_is_said_in_the_words_of_its_file() -> None:
    speak(COMMANDS["torchserve"][0])
    try:
        assert model_api_off().message.endswith("Its switch is enable_model_api.")
        with pytest.raises(ServeError, match=r"let the operator allow its URL with allowed_urls\.$"):
            ModelStore("/store").place("https://x.example/m.mar")
    finally:
        speak_as_ourselves()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_words_of_a_command_are_its_own(name: str) -> None:
    words, there = COMMANDS[name]
    assert set(words) <= OURS
    assert set(words.values()) <= there


SAYS_ITS_OWN = ("cli", "servers/djl/command", "servers/torchserve/command", "servers/triton/command")
"""Rooms that belong to one command, which they speak of."""


def test_every_error_with_a_flag_of_ours_is_spoken() -> None:
    """Otherwise another command would be told to write what it has not."""
    room = Path(trivium.__file__).parent
    unspoken = []
    for file in sorted(room.rglob("*.py")):
        if str(file.relative_to(room)).startswith(SAYS_ITS_OWN):
            continue
        source = file.read_text()
        for node in ast.walk(ast.parse(source)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("ServeError", "Refusal", "said", "_refused")
            ):
                said = ast.get_source_segment(source, node.args[1]) if len(node.args) > 1 else None
                if said and written_in(said) & OURS and not said.startswith("spoken("):
                    unspoken.append(f"{file.relative_to(room)}:{node.lineno}")
    assert unspoken == []
