import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.codecs.java_properties import MAX_BYTES, read, written
from trivium.servers.djl.words.stray_commas import without_stray_commas
from trivium.types.findings import Severity


def values(text):
    data = text if isinstance(text, bytes) else text.encode()
    return {key: entry.value for key, entry in read("f", data).entries.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a=1\nb:2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a = 1 \r\n\t! note\r# note=1\n\nb", {"a": "1 ", "b": ""}),
        ("a=1\\\n   ,2\\\\\nb=3", {"a": "1,2\\", "b": "3"}),
        ("a\\=b\\:c\\ d=1", {"a=b:c d": "1"}),
        ("a==1", {"a": "=1"}),
        ("a:=1", {"a": "=1"}),
        ("a = : 1", {"a": ": 1"}),
        ("=1", {"": "1"}),
        (r"a=\t\n\r\f\q\u00e4\uD83D\uDE00", {"a": "\t\n\r\fqä\U0001f600"}),
        ("a=ä", {"a": "ä"}),
        ("a=ä".encode("latin-1"), {"a": "ä"}),
        ("\ufeffa=1", {"a": "1"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\\\n", {"a": "1"}),
        ("a\\\nb=1", {"ab": "1"}),
        ("option.env=A=1,B=2", {"option.env": "A=1,B=2"}),
        ("# a\\\nb=1", {"b": "1"}),
        (r"a=\ud800", {"a": "\ufffd"}),
    ],
)
def test_the_grammar(text, expected):
    assert values(text) == expected


def test_lines_are_those_of_the_file():
    found = read("f", b"a=1\n\n# note\nb=2\\\n  3\nc=4\na=5")
    assert {key: entry.line for key, entry in found.entries.items()} == {"a": 7, "b": 4, "c": 6}
    (finding,) = found.findings
    assert str(finding) == "f:7: a: a second value; that of line 1 is not used. Remove one of them."
    assert finding.severity is Severity.NOTICE


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("224,", "224"),
        ("true,", "true"),
        ("False ,", "False"),
        (" -1, ", "-1"),
        ("+0.5,", "+0.5"),
        (".5,,", ".5"),
        ("1e-3, ,", "1e-3"),
    ],
)
def test_a_comma_behind_a_number_or_a_truth_value_is_dropped_and_named(written: str, meant: str) -> None:
    found = without_stray_commas(read("f", f"a=1\nwidth={written}".encode()))
    assert found.entries["width"].value == meant
    (notice,) = found.findings
    assert (notice.severity, notice.line, notice.key) == (Severity.NOTICE, 2, "width")
    assert f"read as width={meant}" in notice.found


@pytest.mark.parametrize("written", ["1,2", "1,2,", "a,", "true,false,", "cpu,", ",", "", "1", "True", "٤,"])
def test_other_commas_stay(written: str) -> None:
    given_ = read("f", f"a={written}".encode())
    assert without_stray_commas(given_) == given_


def test_a_damaged_escape_is_an_error_with_its_line():
    found = read("f", rb"a=1" + b"\n" + rb"b=\u00g1")
    assert list(found.entries) == ["a"]
    assert (found.findings[0].severity, found.findings[0].line) == (Severity.ERROR, 2)
    assert r"\\u00g1" in found.findings[0].found


def test_a_huge_file_is_refused():
    found = read("f", b"a" * (MAX_BYTES + 1))
    assert found.entries == {}
    assert found.findings[0].severity is Severity.ERROR


@settings(max_examples=examples(300))
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_named(data):
    for entry in read("f", data).entries.values():
        assert entry.value.encode() is not None


_KEY = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)


@settings(max_examples=examples(150))
@given(st.dictionaries(_KEY, _KEY, max_size=4))
def test_what_java_writes_is_read(pairs):
    def written(text):
        return "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))

    text = "".join(f"{written(key)}={written(value)}\n" for key, value in pairs.items())
    assert values(text) == pairs


@pytest.mark.parametrize(
    "value",
    [
        "",
        "a",
        " a b ",
        "a=b:c#d!e",
        "C:\\x\\",
        "line\nline\r\tand\f",
        "é€𝄞",
        "$$A$$",
        '{"a": {"b": 1}}',
        "\\u12",
        "\x00",
    ],
)
def test_what_is_written_is_read_again(value: str) -> None:
    found = read("f", (written("first", "1") + written("key", value) + written("last", "2")).encode("ascii"))
    assert [(key, entry.value) for key, entry in found.entries.items()] == [
        ("first", "1"),
        ("key", value),
        ("last", "2"),
    ]
    assert not found.findings
