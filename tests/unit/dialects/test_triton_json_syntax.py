"""What Triton's JSON reader says of broken texts, as observed of the original."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.dialects.triton.json_syntax import MAX_DEPTH, syntax_fault

OBSERVED = {
    "": "The document is empty. at 0",
    " ": "The document is empty. at 1",
    "{": "Missing a name for object member. at 1",
    "{]": "Missing a name for object member. at 1",
    '{"a":1,}': "Missing a name for object member. at 7",
    '{"a" 1}': "Missing a colon after a name of object member. at 5",
    '{"a":1': "Missing a comma or '}' after an object member. at 6",
    '{"a":1 "b":2}': "Missing a comma or '}' after an object member. at 7",
    '{"a":01}': "Missing a comma or '}' after an object member. at 6",
    "[1 2]": "Missing a comma or ']' after an array element. at 3",
    "[": "Invalid value. at 1",
    "[1,": "Invalid value. at 3",
    '{"a":': "Invalid value. at 5",
    '{"a":-}': "Invalid value. at 6",
    "nul": "Invalid value. at 3",
    "nothing": "Invalid value. at 1",
    "[tru]": "Invalid value. at 4",
    "-x": "Invalid value. at 1",
    "Nax": "Invalid value. at 2",
    "[Infinit]": "Invalid value. at 8",
    '{"a":1.}': "Miss fraction part in number. at 7",
    '{"a":1e}': "Miss exponent in number. at 7",
    '{"a":1e999}': "Number too big to be stored in double. at 5",
    '{"a":"b': "Missing a closing quotation mark in string. at 7",
    r'{"inputs": "\x"}': "Invalid escape character in string. at 12",
    r'"\ud800"': "The surrogate pair in string is invalid. at 1",
    r'"\u12x"': "Incorrect hex digit after \\u escape in string. at 1",
    '"a\tb"': "Invalid encoding in string. at 2",
    "[1]]": "The document root must not be followed by other values. at 3",
}


@pytest.mark.parametrize(("text", "fault"), OBSERVED.items())
def test_faults_and_their_places(text, fault):
    assert syntax_fault(text.encode()) == fault


@pytest.mark.parametrize(
    "text", ["NaN", "-Inf", "[Infinity, -0.5e+3]", r'"\ud83d\ude00 \n\u00e4"', ' {"a": [] } ']
)
def test_what_the_original_reads(text):
    assert syntax_fault(text.encode()) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_json_has_no_fault(document, is_ascii, indent):
    text = json.dumps(document, ensure_ascii=is_ascii, indent=indent)
    assert syntax_fault(text.encode("utf-8", "surrogatepass")) is None


@given(st.binary(max_size=40) | st.text('{}[]":,\\u019.eE-+nNtfaI ', max_size=20).map(str.encode))
def test_whatever_else_has_one_inside_the_text_or_none(text):
    fault = syntax_fault(text)
    if fault is None:
        json.loads(
            text.decode("utf-8", "replace").replace("Inf", "Infinity").replace("Infinityinity", "Infinity")
        )
    else:
        assert 0 <= int(fault.rpartition(" at ")[2]) <= len(text)


def test_what_is_nested_too_deeply_is_not_looked_at():
    assert syntax_fault(b"[" * (MAX_DEPTH + 2)) is None
