"""model-config.yaml: values by kind, lines, keys that are not served, and documents that must not be read."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.servers.torchserve.words.keys import ANY, NUMBERS, ROWS
from trivium.servers.torchserve.words.model_config import MAX_BYTES, ModelConfig, read_model_config
from trivium.settings.kinds import SWITCH, TEXT, Whole
from trivium.settings.setting import Setting, Support
from trivium.types.findings import Severity

VALUES = {NUMBERS: "[0, 1]", SWITCH: "true", TEXT: "text", ANY: "{a: 1}"}
WRONG = {NUMBERS: "[a]", SWITCH: "1", TEXT: "5"}


def right(row: Setting) -> str:
    """A value that it may have."""
    return "7" if isinstance(row.kind, Whole) else VALUES[row.kind]


def wrong(row: Setting) -> str:
    """A value that it cannot have."""
    return "'7'" if isinstance(row.kind, Whole) else WRONG[row.kind]


def read(text: str) -> ModelConfig:
    return read_model_config("C", text.encode())


def test_values_and_lines() -> None:
    config = read("minWorkers: 2\n\nbatchSize: 4\ndeviceIds: [1, 0]\nown: {a: [x, 1.5, null]}\n")
    assert config.findings == ()
    assert (config.number("minWorkers"), config.number("batchSize"), config.number("maxWorkers")) == (
        2,
        4,
        None,
    )
    assert config.numbers("deviceIds") == (1, 0)
    assert config.lines["batchSize"] == 3
    assert config.document["own"] == {"a": ["x", 1.5, None]}


@pytest.mark.parametrize("key", ROWS)
def test_every_key_has_its_role(key: str) -> None:
    row = ROWS[key]
    config = read(f"x: 1\n{key}: {right(row)}\n")
    found = [(finding.severity, finding.key, finding.line) for finding in config.findings]
    expected = {
        Support.REPORTED: [(Severity.NOTICE, key, 2)],
        Support.REFUSED: [(Severity.ERROR, key, 2)],
    }
    assert found == expected.get(row.support, [])
    assert (key in config.values) is (row.support is Support.YES)
    assert key in config.document


@pytest.mark.parametrize("key", [key for key, row in ROWS.items() if row.kind is not ANY])
def test_a_value_of_the_wrong_type_counts_as_absent(key: str) -> None:
    config = read(f"{key}: {wrong(ROWS[key])}\n")
    (finding,) = config.findings
    assert (finding.severity, finding.key, finding.line) == (Severity.NOTICE, key, 1)
    assert ROWS[key].kind.expected in finding.found
    assert key not in config.values


@pytest.mark.parametrize("key", [key for key, row in ROWS.items() if row.harmless])
def test_a_harmless_value_is_not_worth_a_word(key: str) -> None:
    for value in ROWS[key].harmless:
        assert read(f"{key}: {json.dumps(value)}\n").findings == ()


@pytest.mark.parametrize(
    "text", ["batchSize: 0", "batchSize: -1", "batchSize: true", "maxBatchDelay: 99999999999"]
)
def test_numbers_out_of_range(text: str) -> None:
    assert read(text).findings[0].severity is Severity.NOTICE


def test_keys_written_twice() -> None:
    config = read("batchSize: 2\nbatchSize: 3\n")
    assert config.number("batchSize") == 3
    assert "written 2 times" in str(config.findings[0])


BOMB = "a: &a [x, x]\n" + "".join(
    f"b{i}: &b{i} [{', '.join([f'*b{i - 1}' if i else '*a'] * 9)}]\n" for i in range(30)
)
MERGES = "a: &a {" + ", ".join(f"k{i}: 1" for i in range(3000)) + "}\nb: {<<: *a}\n"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("- 1\n", 1, "mapping"),
        ("just text", 1, "mapping"),
        ("a: 1\nb: [", 2, ""),
        ("a: 1\n\tb: 2\n", 2, ""),
        ("a: !!python/object/apply:os.system [ls]\n", 1, "constructor"),
        ("a: !own 1\n", 1, "constructor"),
        ("a: 1\n---\nb: 2\n", 2, ""),
        (BOMB, 3, "aliases"),
        (MERGES, 2, "aliases"),
        ("a: &a [*a]\n", None, "levels"),
        ("a: " + "[" * 60 + "]" * 60, 1, "nested"),
        ("a: " + "9" * 5000, 1, "a number of 5000 characters"),
        ("a: 1" + ":1" * 130_000, 1, "a number of 260001 characters"),
        ("a: 1\nb: 2001-99-99\n", 2, "'2001-99-99' is no timestamp (month must be in 1..12)"),
        ("a: !!timestamp x", 1, "'x' is no timestamp"),
        ("a:\n  b: !!int ''", 2, "'' is no int"),
        ("a: !!float ''", 1, "'' is no float"),
        ("a: [!!bool x]", 1, "'x' is no bool"),
        ("a: \x00", None, ""),
        ("x" * (MAX_BYTES + 1), None, "bytes"),
    ],
)
def test_what_is_refused(text: str, line: int | None, words: str) -> None:
    began = time.process_time()
    (finding,) = read(text).findings
    assert finding.severity is Severity.ERROR
    assert finding.line == line
    assert words in finding.found
    assert time.process_time() - began < 5


def test_not_text() -> None:
    assert read_model_config("C", b"\xff\xfe\xff").findings[0].severity is Severity.ERROR
    assert read("").findings == ()
    assert read("# nothing\n").values == {}


@given(st.text() | st.text("ab:-[]{}&*!<>|'\"#% \n\t?,0", max_size=60))
def test_never_raises(text: str) -> None:
    config = read_model_config("C", text.encode("utf-8", "surrogatepass"))
    json.dumps(config.document, allow_nan=False)
