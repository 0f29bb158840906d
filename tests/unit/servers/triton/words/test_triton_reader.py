"""The reader: each fault with its line and key, and agreement with protobuf's own parser."""

import warnings
from collections.abc import Iterator

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples
from tests.harness.triton_configs import RICH

from trivium.codecs.protobuf_schema import Field
from trivium.servers.triton.words.checks import check
from trivium.servers.triton.words.reader import MAX_BYTES, MAX_FINDINGS, read_config
from trivium.types.findings import Severity
from trivium.wires.v2.descriptor import new_config
from trivium.wires.v2.schema import ENUMS, MESSAGES, fields_of, is_block

ACCEPTED = [
    "",
    "# only a comment",
    'name: "a"; max_batch_size: 4, backend: "x"',
    "input [ { dims: [ ] }, < dims: 1 dims: [2,3] > ] input: { } input: [ ]",
    'name: "a" \'b\'\n"c"',
    r'name: "\x41\102\n\"\\ \u00e9 \U0001F600"',
    "input { data_type: 11 optional: t } input { data_type: 0xB optional: 1 }",
    "input { optional: True } input { optional: false } input { optional: 0 }",
    "max_batch_size: 0x10",
    "max_batch_size: 010",
    "max_batch_size: 0 max_batch_size: 3",
    'parameters { value { string_value: "v" } key: "k" } parameters: [ { key: "k" }, { } ]',
    "dynamic_batching { priority_queue_policy { key: 3 value < max_queue_size: 2 > } }",
    "model_metrics { metric_control { histogram_options { buckets: [ .5, 1e3, 2f, -inf ] } } }",
    "version_policy: { all: { } }",
    'metric_tags { key: "a" value: "b" }',
    "model_warmup { inputs { key: 'x' value { zero_data: false } } }",
]

REFUSED = [
    ('name: "a"\nmax_batch: 4', 2, "max_batch", "unknown field"),
    ("input {\n  dim: 4\n}", 2, "input[0].dim", "unknown field"),
    ("input [ { }, {\n  optional: yes } ]", 2, "input[1].optional", "the word yes"),
    ("input {\n dims: [ 1,\n 2.5 ] }", 3, "input[0].dims[1]", "the number 2.5"),
    ("max_batch_size: 3000000000", 1, "max_batch_size", "3000000000"),
    ("dynamic_batching { priority_levels: -1 }", 1, "dynamic_batching.priority_levels", "-1"),
    ("max_batch_size: 2\nmax_batch_size: 3", 2, "max_batch_size", "a second time"),
    ("optimization { }\noptimization { }", 2, "optimization", "a second time"),
    ("dynamic_batching { }\nsequence_batching { }", 2, "sequence_batching", "beside dynamic_batching"),
    ("input {\n  dims: 1\n", 1, "input[0]", "still open"),
    ("}\n", 1, "", "closes nothing"),
    ("input { dims: 1 >", 1, "input[0]", "at the end of"),
    ('name: "a\nbackend: "b"', 1, "name", "without its closing quote"),
    (r'name: "\q"', 1, "name", r"\q"),
    (r'name: "\400"', 1, "name", "escape"),
    (r'name: "\ud800"', 1, "name", "no character"),
    (r'name: "\xff"', 1, "name", "not UTF-8"),
    ('name "a"', 1, "name", "after name"),
    ("name: [ 'a' ]", 1, "name", "`[`"),
    ("input: 5", 1, "input[0]", "the number 5"),
    ("max_batch_size:\ninput { }", 1, "max_batch_size", "where the value"),
    ("max_batch_size: }", 1, "max_batch_size", "where the value"),
    ("input { dims: [ 1 2 ] }", 1, "input[0].dims", "the number 2"),
    ("input { dims: [ 1, ] }", 1, "input[0].dims", "`,` before `]`"),
    ("input { dims: [ 1", 1, "input[0].dims", "the end of the file"),
    ("input { data_type: FP32 }", 1, "input[0].data_type", "the word FP32"),
    ("input { data_type: 99 }", 1, "input[0].data_type", "the number 99"),
    ('input { data_type: "TYPE_FP32" }', 1, "input[0].data_type", 'the text "TYPE_FP32"'),
    ("name: \u201ca\u201d", 1, "name", "U+201C"),
    ("[some.extension]: 5", 1, "", "`[`"),
    ("parameters { key: 'a' value: 'b' }", 1, "parameters[0].value", "the text 'b'"),
]


@pytest.mark.parametrize("text", [*ACCEPTED, RICH])
def test_accepts_what_protobuf_accepts(text: str) -> None:
    read = read_config("c", text.encode())
    assert [finding for finding in read.findings if finding.severity is Severity.ERROR] == []
    assert read.config == text_format.Parse(text, new_config())


@pytest.mark.parametrize(("text", "line", "key", "found"), REFUSED)
def test_names_the_fault(text: str, line: int, key: str, found: str) -> None:
    first = read_config("c", text.encode()).findings[0]
    assert (first.line, first.key) == (line, key)
    assert found in first.found
    assert first.expected
    assert first.hint


def test_names_all_faults_of_a_file() -> None:
    text = 'nam: "a"\ninput {\n  dims: x\n  optional: 5\n}\noutput { }\nbackend: 5\ninstance_group: 3\n'
    assert [finding.line for finding in read_config("c", text.encode()).findings] == [1, 3, 4, 7, 8]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("inpt { }", "Did you mean input?"),
        ("input { data_type: FP32 }", "Did you mean TYPE_FP32?"),
        ('max_batch_size: "8"', "Write it without quotes: max_batch_size: 8."),
        ("name: abc", 'Put it in quotes: name: "abc".'),
        ("input { preferred_batch_size: 3 }", "It is a field of ModelDynamicBatching"),
    ],
)
def test_says_how_to_mend_it(text: str, hint: str) -> None:
    assert hint in read_config("c", text.encode()).findings[0].hint


def test_says_that_a_later_value_holds() -> None:
    text = 'max_batch_size: 0\nmax_batch_size: 3\nparameters { key: "a" }\nparameters { key: "a" }'
    findings = read_config("c", text.encode()).findings
    assert [(finding.severity, finding.line) for finding in findings] == [
        (Severity.NOTICE, 2),
        (Severity.NOTICE, 4),
    ]


def test_bytes_that_are_no_text() -> None:
    mark, byte = read_config("c", b'\xef\xbb\xbfname: "a"\n# \xff').findings
    assert (mark.line, byte.line) == (1, 2)
    assert "byte-order mark" in mark.found
    assert "0xFF" in byte.found
    assert "too large" in read_config("c", b" " * (MAX_BYTES + 1)).findings[0].found


def test_lines_of_keys() -> None:
    read = read_config("c", RICH.encode())
    lines = RICH.splitlines()
    for key in (
        "max_batch_size",
        "input[1].data_type",
        "model_warmup[0].inputs[0].value.dims",
        "optimization.graph",
    ):
        line = read.line(key)
        assert line is not None
        assert key.rpartition(".")[2].partition("[")[0] in lines[line - 1]
    assert read.line("input[0].reshape.shape") == read.line("input[0]")
    assert read.line("backed") == 1


def test_depth_is_bounded() -> None:
    for text in (
        "{" * 20_000,
        "input {" * 20_000,
        "x: " + "[" * 20_000,
        "input { dims: " + "[{" * 20_000,
    ):
        findings = read_config("c", text.encode()).findings
        assert 0 < len(findings) <= MAX_FINDINGS + 1


# -- properties ------------------------------------------------------------------------------------------------

WORDS = sorted(
    {name for fields in MESSAGES.values() for name in fields} | {name for e in ENUMS.values() for name in e}
)
TOKENS = st.sampled_from(
    [
        *WORDS,
        *"{}[]<>:;,#\n",
        '"a"',
        "'b'",
        '"\\',
        "\\",
        "1",
        "-1",
        "1.5",
        "0x1F",
        "1e9",
        "true",
        "f",
        "\u00a0",
        "é",
        '"',
    ]
)


@settings(max_examples=examples(400))
@given(
    st.one_of(
        st.binary(max_size=200), st.lists(TOKENS, max_size=60).map(lambda words: " ".join(words).encode())
    )
)
def test_hostile_text_never_raises(data: bytes) -> None:
    """What we accept, protobuf accepts too; what protobuf refuses has an error with a line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # protobuf's own, for escapes that do not exist
        try:
            theirs = text_format.Parse(data, new_config())
        except (text_format.ParseError, UnicodeDecodeError):
            theirs = None
    read = read_config("c", data)
    check(read, 0)
    errors = [finding for finding in read.findings if finding.severity is Severity.ERROR]
    assert all(finding.line is not None for finding in errors)
    if not errors:
        assert read.config == theirs
    if theirs is None:
        assert errors


def values(field: Field) -> st.SearchStrategy[str]:
    if field.type == "string":
        return st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=5).map(quoted)
    if field.type == "bool":
        return st.sampled_from(["true", "false", "t", "f", "1", "0", "True", "False"])
    if field.type in ("float", "double"):
        return st.floats(allow_nan=False, width=32).map(repr)
    if field.type in ENUMS:
        return st.sampled_from([*ENUMS[field.type], *map(str, ENUMS[field.type].values())])
    low = 0 if field.type.startswith("u") else -(2**31)
    return st.integers(low, 2**31 - 1).flatmap(lambda n: st.sampled_from([str(n), hex(n)]))


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@st.composite
def blocks(draw: st.DrawFn, type_: str, fields: dict[str, Field], depth: int) -> str:
    names = draw(st.lists(st.sampled_from(sorted(fields)), unique=True, max_size=5)) if fields else []
    used: set[str] = set()
    lines = []
    for field in (fields[name] for name in names):
        if (field.oneof and field.oneof in used) or (is_block(field) and not depth):
            continue
        used.add(field.oneof)
        lines.extend(draw(written(type_, field, depth)))
    return "\n".join(lines)


@st.composite
def written(draw: st.DrawFn, type_: str, field: Field, depth: int) -> list[str]:
    one = values(field)
    if is_block(field):
        inner, fields = fields_of(type_, field)
        brace = st.sampled_from(["{ %s }", "<\n%s\n>"])
        one = st.builds(lambda form, text: form % text, brace, blocks(inner, dict(fields), depth - 1))
    texts = draw(st.lists(one, min_size=1, max_size=2 if field.is_list else 1))
    colon = "" if is_block(field) and draw(st.booleans()) else ":"
    end = draw(st.sampled_from(["", ",", ";", " # a comment\n"]))
    if field.is_list and draw(st.booleans()):
        return [f"{field.name}{colon} [ {', '.join(texts)} ]{end}"]
    return [f"{field.name}{colon} {text}{end}" for text in texts]


@settings(max_examples=examples(80))
@given(blocks("ModelConfig", dict(MESSAGES["ModelConfig"]), 3))
def test_valid_text_reads_as_protobuf_reads_it(text: str) -> None:
    theirs = text_format.Parse(text, new_config())
    read = read_config("c", text.encode())
    assert list(errors_of(read.findings)) == []
    assert read.config == theirs


def errors_of(findings: tuple[object, ...]) -> Iterator[str]:
    return (str(finding) for finding in findings if getattr(finding, "severity", None) is Severity.ERROR)
