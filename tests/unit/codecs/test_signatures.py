"""First bytes: what each form begins with, and that none is taken for another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.payload_bodies import ONE, PNG, as_ndlist, as_npy, as_npz, as_safetensors

from trivium.codecs import signatures
from trivium.codecs.payload_table import READERS, by_signature

BEGINNINGS = {
    "application/x-npz": as_npz(x=ONE),
    "application/x-npy": as_npy(ONE),
    "tensor/ndlist": as_ndlist(x=ONE),
    "application/safetensors": as_safetensors(x=ONE),
    "application/json": b' \n{"x": 1}',
}


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_each_form_is_one_row(kind):
    start = BEGINNINGS[kind][: signatures.LOOKED_AT]
    assert [row.media_types[0] for row in READERS if row.begins(start)] == [kind]


@pytest.mark.parametrize(
    "data",
    [b"", b"PKI am text", b"\x93NUM", b'"1234567"', PNG, b"\0" * 40, b'{"abcd"\0{', b"Plain text {", b"{\0"],
)
def test_others_are_none(data):
    assert by_signature(data) is None


def test_json_whose_ninth_byte_is_a_brace_is_json():
    row = by_signature(b'{"abcd":{"x":1}}')
    assert row is not None
    assert row.media_types == ("application/json",)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"II*\0", "image/tiff"),
        (b"RIFF\0\0\0\0WAVE", ""),
        (b"", ""),
    ],
)
def test_pictures(start, kind):
    assert signatures.picture_type(start) == kind


@given(st.binary(max_size=80))
def test_any_bytes_have_a_content_type(data):
    assert "/" in signatures.content_type_of(data)
    assert signatures.content_type_of(memoryview(data)) == signatures.content_type_of(data)
