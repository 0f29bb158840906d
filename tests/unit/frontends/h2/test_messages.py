"""Pieces of DATA to messages: abort anywhere, packed, too large, booked."""

import gzip
import itertools
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.echo_rpc import SERVICE, EchoRpc
from tests.harness.fake_core import FakeCore
from tests.harness.h2_peer import prefixed

from trivium.codecs.compression import Inflater
from trivium.frontends.h2.messages import CallRefused, MessageReader, Packed
from trivium.frontends.h2.state import GrpcLimits, GrpcState
from trivium.frontends.shares import AddressUse
from trivium.types.errors import ServeError


def reader(coding: str = "identity", most: int = 1000, total: int = 10_000) -> MessageReader:
    limits = GrpcLimits(message_bytes=most, total_message_bytes=total)
    state = GrpcState(FakeCore(), {SERVICE: EchoRpc()}, limits)
    return MessageReader(state, AddressUse(), coding, Inflater(most, total))


def feed(at: MessageReader, *pieces: bytes) -> list[bytes]:
    found = []
    for piece in pieces:
        scratch = bytearray(piece)
        for message in at.feed(memoryview(scratch)):
            assert not isinstance(message, Packed)
            found.append(message)
        scratch[:] = bytes(len(scratch))
    return found


MESSAGES = [b"", b"x", bytes(range(200)), b"", b"last"]
WIRE = b"".join(map(prefixed, MESSAGES))


@given(st.lists(st.integers(0, len(WIRE)), max_size=20))
def test_cut_anywhere(cuts: list[int]) -> None:
    at = reader()
    edges = sorted([0, *cuts, len(WIRE)])
    assert feed(at, *(WIRE[begin:end] for begin, end in itertools.pairwise(edges))) == MESSAGES
    assert at.is_between_messages
    assert at.held == sum(map(len, MESSAGES))


def test_what_is_cut_short_is_known() -> None:
    at = reader()
    assert feed(at, b"\0\0") == []
    assert not at.is_between_messages
    assert feed(at, b"\0\0\2a") == []
    assert not at.is_between_messages
    assert feed(at, b"b") == [b"ab"]


def test_bytes_are_booked_as_they_come() -> None:
    """Announcing a message costs the others nothing."""
    at = reader()
    feed(at, prefixed(bytes(500))[:5])
    assert at.held == 0
    feed(at, bytes(200))
    assert at.held == 200
    small = reader(total=100)
    feed(small, prefixed(bytes(500))[:50])
    with pytest.raises(ServeError, match="would exceed the limit of 100"):
        feed(small, bytes(200))


def packed(coding: str, data: bytes) -> bytes:
    return gzip.compress(data) if coding == "gzip" else zlib.compress(data)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_packed_messages(coding: str) -> None:
    at = reader(coding)
    text = b"a long text " * 50
    wire = prefixed(packed(coding, text), 1) + prefixed(b"plain") + prefixed(b"", 1)
    assert feed(at, wire) == [text, b"plain", b""]
    assert at.held == len(text) + 5


REFUSED = [
    (reader(), prefixed(bytes(1001)), 8, "SERVER: Received message larger than max (1001 vs. 1000)"),
    (reader(), b"\0\xff\xff\xff\xff", 8, "SERVER: Received message larger than max (4294967295 vs. 1000)"),
    (
        reader("gzip"),
        prefixed(gzip.compress(bytes(5000), mtime=0), 1),
        8,
        "Decompressed message larger than max",
    ),
    (reader("gzip"), prefixed(b"no gzip", 1), 13, "not packed by gzip"),
    (reader("gzip"), prefixed(gzip.compress(b"text", mtime=0)[:-9], 1), 13, "not packed by gzip"),
    (reader("deflate"), prefixed(zlib.compress(b"text") + b"more", 1), 13, "not packed by deflate"),
    (reader(), prefixed(b"text", 1), 13, "grpc-encoding is 'identity'"),
    (reader("gzip"), prefixed(b"text", 2), 13, "begins with 2"),
]


@pytest.mark.parametrize(("at", "wire", "code", "says"), REFUSED)
def test_what_is_refused(at: MessageReader, wire: bytes, code: int, says: str) -> None:
    with pytest.raises(CallRefused) as caught:
        feed(at, wire)
    assert (caught.value.answer.code, says in caught.value.answer.details) == (code, True)


def test_large_packed_messages_are_unpacked_elsewhere() -> None:
    at = reader("gzip", most=100_000, total=200_000)
    text = np.random.default_rng(0).bytes(10_000)
    wire = gzip.compress(text)
    (packed,) = at.feed(memoryview(prefixed(wire, 1)))
    assert isinstance(packed, Packed)
    assert at.held == len(wire)
    assert packed.unpack() == text
    at.book(len(text))
    assert at.held == len(wire) + len(text)
