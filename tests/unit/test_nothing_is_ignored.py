"""No option, key or header that is accepted is ignored in silence: a sweep over all tables.

What a row says of itself (used, passed on, reported, refused) is tested beside its table, by writing the key into a
file. Here each row that says *used* is held against the code: something outside the table asks for it, by its name.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from trivium.catalogue import CATALOGUE
from trivium.servers.djl.command.keys import CONFIG as DJL
from trivium.servers.djl.words.engines import ENGINES, LANGUAGE_MODEL
from trivium.servers.torchserve.command.properties_table import CONFIG as TORCHSERVE
from trivium.servers.torchserve.words.keys import ROWS as MODEL_CONFIG
from trivium.servers.triton.command.flag_table import FLAGS
from trivium.servers.triton.words.keys import ROWS as CONFIG_PBTXT
from trivium.settings.judging import unserved
from trivium.settings.setting import Setting, Support
from trivium.settings.sources import SettingsTable
from trivium.types.findings import Severity
from trivium.types.spec import Origin

SRC = Path(__file__).parents[2] / "src" / "trivium"
DOCS = Path(__file__).parents[2] / "docs"
USED = (Support.YES, Support.PARTLY)
LONG_ENOUGH = 6
"""Letters that a text with gaps has beside them: with fewer it would fit any name."""


class Asked:
    """What code asks for: names of attributes, whose they are, texts, and texts with gaps."""

    def __init__(self) -> None:
        self.chains: set[tuple[str, str]] = set()
        self.texts: set[str] = set()
        self.patterns: set[re.Pattern[str]] = set()

    def add(self, other: "Asked") -> None:
        """Take what other code asks for, too."""
        self.chains |= other.chains
        self.texts |= other.texts
        self.patterns |= other.patterns

    def read(self, tree: ast.Module) -> None:
        """Take what this code asks for."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                of = node.value
                owner = (
                    of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
                )
                self.chains.add((owner, node.attr))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                value = node.value
                self.texts.add(value if isinstance(value, str) else value.decode("latin-1"))
            elif isinstance(node, ast.JoinedStr):
                self._read_gaps(node)

    def _read_gaps(self, node: ast.JoinedStr) -> None:
        texts = [str(each.value) if isinstance(each, ast.Constant) else None for each in node.values]
        if sum(len(text) for text in texts if text) >= LONG_ENOUGH:
            parts = (r"[\w.]+" if text is None else re.escape(text) for text in texts)
            self.patterns.add(re.compile("".join(parts)))

    def asks(self, name: str) -> bool:
        """Does something ask for a setting of this name?"""
        return name in self.texts or any(pattern.fullmatch(name) for pattern in self.patterns)


@cache
def of_file(file: Path) -> Asked:
    """What one module asks for."""
    found = Asked()
    found.read(ast.parse(file.read_text()))
    return found


@cache
def asked(*folders: str, but: tuple[str, ...] = ()) -> Asked:
    """What these folders ask for, without some of their modules, which are tables."""
    found = Asked()
    for folder in folders:
        for file in sorted((SRC / folder).rglob("*.py")):
            if str(file.relative_to(SRC)) not in but:
                found.add(of_file(file))
    return found


def used(rows: Iterable[Setting]) -> list[str]:
    """The names of those that say that they are used."""
    return sorted({row.name for row in rows if row.support in USED})


def test_the_sweep_sees_what_nobody_asks_for(tmp_path: Path) -> None:
    found = Asked()
    found.read(ast.parse('a.config.port\nvalue("inference_address")\nf"grpc_{role}_port"\nf"{x}_{y}"'))
    assert found.asks("inference_address")
    assert found.asks("grpc_inference_port")
    assert not found.asks("grpc_port")
    assert not found.asks("io_ratio")
    assert ("config", "port") in found.chains
    assert ("other", "port") not in found.chains


@pytest.mark.parametrize("name", CATALOGUE.schema.options)
def test_an_option_of_serve_is_read(name: str) -> None:
    option = CATALOGUE.schema.options[name]
    found = asked(".", but=("config/schema.py",))
    owners = {owner for owner, key in found.chains if key == option.key}
    assert owners & OWNERS.get(option.group, {option.group, "self", "options", "own"}), (option.place, owners)


OWNERS = {name: {"own", "options", ""} for name in ("djl", "torchserve")}
"""What the options of a server that we stand in for are called where they are read; those of others by their group."""

BY_THEIR_KIND = {"keystore_type"}
"""Settings of which the one value that can be had is all that their kind takes: nothing is left to ask for."""

BY_THEIR_FIELDS = {"ModelConfig.model_operations", "ModelConfig.model_repository_agents"}
"""Blocks of which each field is refused, with a row of its own."""


@pytest.mark.parametrize("name", sorted({*used(DJL.rows.values())} - BY_THEIR_KIND))
def test_a_key_of_djls_configuration_is_read(name: str) -> None:
    assert asked("servers/djl", but=("servers/djl/command/keys.py",)).asks(name)


@pytest.mark.parametrize("name", sorted({*used(TORCHSERVE.rows.values())} - BY_THEIR_KIND))
def test_a_property_of_torchserve_is_read(name: str) -> None:
    assert asked("servers/torchserve", but=("servers/torchserve/command/properties_table.py",)).asks(name)


@pytest.mark.parametrize("name", used(MODEL_CONFIG.values()))
def test_a_key_of_model_config_yaml_is_read(name: str) -> None:
    assert asked(
        "servers/torchserve/archive", "servers/torchserve/words", but=("servers/torchserve/words/keys.py",)
    ).asks(name)


@pytest.mark.parametrize("name", used(FLAGS.values()))
def test_a_flag_of_tritonserver_is_read(name: str) -> None:
    tables = ("servers/triton/command/flag_table.py", "servers/triton/command/usage.py")
    assert asked("servers/triton/command", but=tables).asks(name)


@pytest.mark.parametrize("name", sorted({*used(CONFIG_PBTXT.values())} - BY_THEIR_FIELDS))
def test_a_field_of_config_pbtxt_is_read(name: str) -> None:
    field = name.rpartition(".")[2]
    found = asked("servers/triton/repository", "servers/triton/words", but=("servers/triton/words/keys.py",))
    assert field in {name for _, name in found.chains} or any(
        field in re.split(r"\W+", text) for text in found.texts
    )


def _serving_properties() -> Mapping[str, Setting]:
    return {
        key: row
        for engine in (*ENGINES, LANGUAGE_MODEL)
        for key, row in engine.keys.items()
        if row.support in USED
    }


@pytest.mark.parametrize("name", sorted(_serving_properties()))
def test_a_key_of_serving_properties_is_read(name: str) -> None:
    tables = tuple(
        f"servers/djl/words/{each}.py"
        for each in ("keys", "language_model_keys", "lmi_runtime_options", "values", "names")
    )
    found = asked("servers/djl", "translators", but=(*tables, "servers/djl/command/settings.py"))
    assert found.asks(name) or found.asks(name.removeprefix("option."))


@pytest.mark.parametrize("name", sorted(BY_THEIR_FIELDS))
def test_a_block_of_refused_fields_has_a_row_for_each(name: str) -> None:
    message = {"model_operations": "ModelOperations", "model_repository_agents": "ModelRepositoryAgents"}[
        name.rpartition(".")[2]
    ]
    rows = [row for key, row in CONFIG_PBTXT.items() if key.rpartition(".")[0] == message]
    assert rows
    assert all(row.support is Support.REFUSED for row in rows)


@pytest.mark.parametrize("table", [DJL, TORCHSERVE], ids=lambda table: table.owner)
def test_a_kind_that_takes_one_value_refuses_all_others(table: SettingsTable) -> None:
    for name in BY_THEIR_KIND:
        assert not table.rows[name].fault("PKCS12")
        assert table.rows[name].fault("JKS")


@pytest.mark.parametrize(
    "row", [*DJL.rows.values(), *TORCHSERVE.rows.values()], ids=lambda row: f"{row.name}"
)
def test_what_is_not_used_is_said_when_it_is_written(row: Setting) -> None:
    """With a value that wishes for something: one that is the case anyway is not worth a word."""
    if row.support not in (Support.REPORTED, Support.REFUSED):
        return
    value = next(
        each for each in VALUES if not row.fault(each) and each != row.default and each not in row.harmless
    )
    finding = unserved(Origin("config.properties", row.name, 3), row, value)
    assert finding is not None
    severity = Severity.ERROR if row.support is Support.REFUSED else Severity.NOTICE
    assert (finding.severity, finding.line, finding.key) == (severity, 3, row.name)
    assert row.how


VALUES = ("true", "false", "7", "http://127.0.0.1:9000", "something", "1", "503")
"""One of them fits each kind of setting."""

HEADER = re.compile(r"`((?:x|inference|endpoint|triton|ts|traceparent)[-_][a-z][\w-]*[a-z])`", re.IGNORECASE)


def _headers() -> list[str]:
    pages = (page.read_text() for page in sorted(DOCS.glob("*.md")))
    return sorted({name.lower() for page in pages for name in HEADER.findall(page) if "-" in name})


@pytest.mark.parametrize("name", _headers())
def test_a_header_of_the_manual_is_read_or_written(name: str) -> None:
    found = asked(".")
    assert any(name in text.lower() for text in found.texts)


def _constants() -> list[tuple[str, str]]:
    """Every header that a module has a name for, with that name."""
    found = []
    for folder in ("wires", "servers", "frontends", "access", "types"):
        for file in sorted((SRC / folder).rglob("*.py")):
            for node in ast.parse(file.read_text()).body:
                value = getattr(node, "value", None)
                if (
                    isinstance(node, ast.Assign)
                    and isinstance(value, ast.Constant)
                    and _is_header(value.value)
                ):
                    found += [
                        (f"{file.relative_to(SRC)}", each.id)
                        for each in node.targets
                        if isinstance(each, ast.Name)
                    ]
    return found


def _is_header(value: object) -> bool:
    return isinstance(value, bytes) and re.fullmatch(rb"[a-z]+([-_][a-z]+)+", value) is not None


@pytest.mark.parametrize(("file", "name"), _constants())
def test_a_header_that_has_a_name_is_asked_for_by_it(file: str, name: str) -> None:
    """In its own module, or in another that imports it."""
    sources = [SRC / file] if name.startswith("_") else sorted(SRC.rglob("*.py"))
    word = re.compile(rf"\b{name}\b")
    assert sum(len(word.findall(source.read_text())) for source in sources) > 1
