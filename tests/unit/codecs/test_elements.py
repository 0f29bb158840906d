from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.codecs import elements
from trivium.types.errors import Code, ServeError


@settings(max_examples=examples(60))
@given(st.lists(st.binary(max_size=8)))
def test_round_trip(items):
    blob = elements.encode("x", items)
    assert elements.decode("x", blob, len(items)) == items
    assert elements.decode("x", memoryview(blob), len(items)) == items


def test_the_form_is_length_and_bytes():
    assert elements.encode("x", [b"ab", b""]) == b"\x02\0\0\0ab\0\0\0\0"


@pytest.mark.parametrize(
    ("blob", "count", "words"),
    [
        (b"\0\0\0", 1, "3 bytes cannot hold"),
        (b"", 2**40, "0 bytes cannot hold"),
        (b"\x02\0\0\0a", 1, "element 0 claims 2 bytes and 1 follow"),
        (b"\xff\xff\xff\xff", 1, "element 0 claims 4294967295 bytes and 0 follow"),
        (b"\x04\0\0\0abcd\0\0", 2, "end before the length of element 1"),
        (b"\x01\0\0\0ab", 1, "1 bytes are left over"),
        (b"a", 0, "1 bytes are left over"),
    ],
)
def test_refuses_what_does_not_add_up(blob, count, words):
    with pytest.raises(ServeError, match=words) as refused:
        elements.decode("x", blob, count)
    assert refused.value.code is Code.INVALID


@settings(max_examples=examples(60))
@given(st.binary(max_size=40), st.integers(0, 6))
def test_hostile_bytes_are_decoded_or_refused(blob, count):
    with suppress(ServeError):
        assert elements.encode("x", elements.decode("x", blob, count)) == blob


def test_an_element_too_long_is_the_models_fault():
    class Huge(bytes):
        def __len__(self):
            return 2**32

    with pytest.raises(ServeError, match="4294967296 bytes") as refused:
        elements.encode("x", [Huge()])
    assert refused.value.code is Code.MODEL_FAILED
