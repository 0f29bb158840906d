import gc
import gzip
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.codecs.compression import CODINGS, Inflater, accepted, deflate
from trivium.types.errors import Code, ServeError

MEGABYTE = 2**20


def inflater(most=MEGABYTE, together=4 * MEGABYTE):
    return Inflater(most, together)


def refusal(data, coding="gzip", made=None):
    with pytest.raises(ServeError) as caught:
        (made or inflater()).inflate(data, coding)
    return caught.value


@given(st.lists(st.binary(max_size=3000), max_size=4), st.sampled_from(CODINGS))
def test_what_is_compressed_comes_back(pieces, coding):
    buffers = (*pieces, memoryview(b"end"))
    packed = deflate(buffers, coding)
    assert bytes(inflater().inflate(packed, coding)) == b"".join(pieces) + b"end"
    assert bytes(inflater().inflate(memoryview(packed), coding)) == b"".join(pieces) + b"end"


def test_it_is_what_others_read():
    assert gzip.decompress(deflate((b"abc", b"def"), "gzip")) == b"abcdef"
    assert zlib.decompress(deflate((b"abc", b"def"), "deflate")) == b"abcdef"
    assert bytes(inflater().inflate(gzip.compress(b"a") + gzip.compress(b"b"), "gzip")) == b"ab"
    assert bytes(inflater().inflate(zlib.compress(bytes(MEGABYTE)), "deflate")) == bytes(MEGABYTE)


@settings(max_examples=examples(100))
@given(st.binary(max_size=200) | st.binary(max_size=40).map(lambda tail: gzip.compress(b"x" * 50) + tail))
def test_anything_else_is_refused(data):
    for coding in CODINGS:
        made = inflater()
        code = Code.INVALID
        try:
            made.inflate(data, coding)
        except ServeError as error:
            code = error.code
        assert code is Code.INVALID
        assert made.held == 0


@pytest.mark.parametrize(
    ("data", "coding", "words"),
    [
        (gzip.compress(b"abc" * 99, mtime=0)[:-1], "gzip", "ends too early"),
        (b"", "gzip", "ends too early"),
        (b"", "deflate", "ends too early"),
        (b"hello", "gzip", "incorrect header"),
        (zlib.compress(b"a") + b"more", "deflate", "4 bytes follow"),
        (gzip.compress(b"a", mtime=0) + b"more", "gzip", "incorrect header"),
    ],
)
def test_what_is_wrong_is_said(data, coding, words):
    assert words in refusal(data, coding).message


def test_a_bomb_is_refused_before_it_is_allocated():
    bomb = gzip.compress(bytes(8 * MEGABYTE))
    made = inflater()
    error = refusal(bomb, made=made)
    assert error.code is Code.TOO_LARGE
    assert f"more than {MEGABYTE}" in error.message
    del error
    gc.collect()
    assert made.held == 0


def test_bodies_count_until_nobody_views_them():
    made, packed = inflater(MEGABYTE, 2 * MEGABYTE), gzip.compress(bytes(MEGABYTE))
    first, second = made.inflate(packed, "gzip"), made.inflate(packed, "gzip")
    part = second[10:20]
    del second
    assert made.held == 2 * MEGABYTE
    error = refusal(packed, made=made)
    assert (error.code, error.retry_after) == (Code.QUEUE_FULL, 1.0)
    del error, first
    gc.collect()
    assert made.held == MEGABYTE
    del part
    assert made.held == 0


@pytest.mark.parametrize(
    ("field", "coding"),
    [
        (b"", ""),
        (b"gzip", "gzip"),
        (b"deflate", "deflate"),
        (b"deflate, gzip", "gzip"),
        (b"gzip;q=0.5, deflate", "deflate"),
        (b"GZIP; Q=0.5 , identity;q=0.1", "gzip"),
        (b"x-gzip", "gzip"),
        (b"gzip;q=0", ""),
        (b"gzip;q=0, *", "deflate"),
        (b"*", "gzip"),
        (b"*;q=0", ""),
        (b"identity, gzip;q=0.5", ""),
        (b"br, zstd", ""),
        (b"gzip;q=x, deflate;q=nan, ;;,", ""),
        (b"\xff\xfe", ""),
    ],
)
def test_what_a_client_likes_best(field, coding):
    assert accepted(field) == coding
