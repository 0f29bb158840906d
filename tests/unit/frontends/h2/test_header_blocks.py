"""Header blocks: the examples of RFC 7541, what is remembered and when it is forgotten, and what is too much."""

import contextlib

import pytest
from hpack import Encoder, NeverIndexedHeaderTuple
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.h2_peer import USUAL

from trivium.frontends.h2 import frames
from trivium.frontends.h2.frames import ConnectionFault
from trivium.frontends.h2.header_blocks import HeaderBlocks
from trivium.frontends.h2.rpc_head import read_head, too_long

C3 = (
    "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
    "8286 84be 5808 6e6f 2d63 6163 6865",
    "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
)
C4 = (
    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
    "8286 84be 5886 a8eb 1064 9cbf",
    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
)
PATHS = ("/", "/", "/index.html")


@pytest.mark.parametrize("blocks", [C3, C4])
def test_the_examples_of_the_specification(blocks: tuple[str, ...]) -> None:
    """Three requests on one connection, plain and in Huffman's code; none is a POST."""
    reader = reader_of()
    heads = [reader.head(bytes.fromhex(block)) for block in blocks]
    assert tuple(head.method for head in heads) == PATHS
    assert [head.http for head in heads] == [405] * 3


def reader_of(long: list[int] | None = None, most: int = 4096) -> HeaderBlocks:
    """A reader; `long` gets the bytes of the lists that are too long."""
    return HeaderBlocks(most, 8 * most, [].append if long is None else long.append)


def block_of(encoder: Encoder, path: str, *more: tuple[str, str]) -> bytes:
    return encoder.encode([*USUAL[:2], (":path", path), *USUAL[2:], *more])


def test_what_is_repeated_is_looked_up() -> None:
    encoder, reader = Encoder(), reader_of()
    block_of(encoder, "/a/B")
    first = reader.head(block_of(Encoder(), "/a/B"))
    block = block_of(encoder, "/a/B")
    heads = [reader.head(block) for _ in range(3)]
    assert heads[0] == first
    assert heads[1] is heads[0]
    assert heads[2] is heads[0]


def test_a_changed_table_forgets() -> None:
    """The same bytes mean something else once another entry is in front."""
    reader = reader_of()
    plain = [(name.encode(), value.encode()) for name, value in [*USUAL[:2], (":path", "/a/B"), *USUAL[2:]]]
    literals = b"".join(b"\0%c%s%c%s" % (len(name), name, len(value), value) for name, value in plain)
    newest = literals + b"\xbe"
    for value in (b"1", b"2", b"3"):
        reader.skip(b"\x40\x01k\x01" + value)
        for _ in range(2):
            assert reader.head(newest).metadata == {"k": value.decode()}


NAMES = st.sampled_from(["a", "b", "user-agent", "grpc-timeout"])
VALUES = st.sampled_from(["1S", "2S", "3S", "a longer value that is not in any table"])


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(NAMES, VALUES), max_size=3),
            st.sampled_from([None, 0, 100, 4096]),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_remembering_changes_nothing(calls: list[tuple[list[tuple[str, str]], int | None, bool]]) -> None:
    encoder, reader = Encoder(), reader_of()
    for more, size, is_skipped in calls:
        if size is not None:
            encoder.header_table_size = size
        block = block_of(encoder, "/a/B", *more)
        if is_skipped:
            reader.skip(block)
            continue
        plain = [*USUAL[:2], (":path", "/a/B"), *USUAL[2:], *more]
        expected = read_head([(name.encode(), value.encode()) for name, value in plain])
        assert reader.head(block) == expected


WRONG = [
    (b"\x80", frames.COMPRESSION_ERROR),  # index 0
    (b"\xbe", frames.COMPRESSION_ERROR),  # an entry that is not there
    (b"\x40\x05ab", frames.COMPRESSION_ERROR),  # abort short
    (b"\x40", frames.COMPRESSION_ERROR),
    (b"\x3f\xe2\x1f", frames.COMPRESSION_ERROR),  # a table larger than allowed
    (b"\x82\x20", frames.COMPRESSION_ERROR),  # its size behind a header
    (b"\x40\x01a\x81\xff", frames.COMPRESSION_ERROR),  # no Huffman code
    (b"\xff" * 20, frames.COMPRESSION_ERROR),
    (
        b"\x40\x01a\x7f\x81\x02" + bytes(384) + b"\xbe" * 200,
        frames.ENHANCE_YOUR_CALM,
    ),  # few bytes, a list that is much too long
    (b"\x82" * 5000, frames.ENHANCE_YOUR_CALM),
    (b"\0\1a\x7f\x81\x1f" + bytes(4000), frames.COMPRESSION_ERROR),  # a long one, cut short
    (b"\x82" + b"\x20" + b"\0\1a\x7f\x81\x1f" + bytes(4096), frames.COMPRESSION_ERROR),
    (b"\0\1a\x7f" + b"\x80" * 5000, frames.COMPRESSION_ERROR),  # a number without end
]


@pytest.mark.parametrize(("block", "code"), WRONG)
@pytest.mark.parametrize("method", ["head", "skip"])
def test_what_cannot_be_decoded(block: bytes, code: int, method: str) -> None:
    with pytest.raises(ConnectionFault) as caught:
        getattr(reader_of(), method)(block)
    assert caught.value.code == code
    assert len(caught.value.text) < 500, "a frame that a client need not take"


@given(st.binary(max_size=60))
def test_any_bytes_are_a_head_or_a_fault(block: bytes) -> None:
    with contextlib.suppress(ConnectionFault):
        reader_of().head(block)


@pytest.mark.parametrize(
    ("updates", "is_refused"),
    [
        ("", False),
        ("20", False),
        ("3fe11f", False),
        ("20 3fe11f", False),
        ("3fe11f 20", False),
        ("20 20 20", True),
        ("3fe11f 3fe11f 3fe11f", True),
        ("3f00 20 3f808000 20", True),
        ("20" * 16_000, True),
        ("3f" + "80" * 16_000, True),
    ],
)
def test_a_block_begins_with_two_updates_of_the_tables_size_at_most(updates: str, is_refused: bool) -> None:
    """RFC 7541, section 4.2: the least size that there was meanwhile, and the last one."""
    reader = reader_of()
    block = bytes.fromhex(updates) + block_of(Encoder(), "/a/B")
    if is_refused:
        with pytest.raises(ConnectionFault) as refused:
            reader.head(block)
        assert refused.value.code == frames.COMPRESSION_ERROR
    else:
        assert reader.head(block).method == "/a/B"


def test_an_update_behind_a_header_is_refused() -> None:
    with pytest.raises(ConnectionFault) as refused:
        reader_of().head(block_of(Encoder(), "/a/B") + b"\x20")
    assert refused.value.code == frames.COMPRESSION_ERROR


HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "a-bin", "user-agent", "x" * 70]),
        st.sampled_from(
            ["", "1", "value", "~" * 900, "v" * 3000, "w" * 4063, "w" * 4100, "\n" * 4500, "n" * 20_000]
        ),
        st.booleans(),
    ),
    max_size=6,
)


@given(
    st.lists(
        st.tuples(HEADERS, st.booleans(), st.sampled_from([None, None, 100, 4096]), st.booleans()),
        max_size=12,
    )
)
def test_a_list_that_is_too_long_refuses_its_call_and_the_next_is_read(
    calls: list[tuple[list[tuple[str, str, bool]], bool, int | None, bool]],
) -> None:
    """Whatever was sent before, and however it was packed, the table says the same to both sides."""
    encoder, long = Encoder(), list[int]()
    reader = HeaderBlocks(4096, 2**20, long.append)
    for more, packs, size, is_skipped in calls:
        if size is not None:
            encoder.header_table_size = size
        headers = [*USUAL[:2], (":path", "/a/B"), *USUAL[2:]]
        entries = [
            NeverIndexedHeaderTuple(name, value) if never else (name, value) for name, value, never in more
        ]
        block = encoder.encode([*headers, *entries], huffman=packs)
        plain = [*headers, *((name, value) for name, value, _ in more)]
        is_long = sum(len(name) + len(value) + 32 for name, value in plain) > 4096
        told = len(long)
        if is_skipped:
            reader.skip(block)
        else:
            head = reader.head(block)
            expected = read_head([(name.encode(), value.encode()) for name, value in plain])
            assert head == (too_long(4096) if is_long or len(block) > 4096 else expected)
        assert len(long) - told == (is_long or len(block) > 4096)


@pytest.mark.parametrize(
    "block",
    [
        b"\x82" * 2000,
        b"\0\1a\0" * 2000,
        b"\x40\1a\0" * 2000,
        b"\0\1a\x7f\xc1\x7e" + bytes(16_320),
        b"\x82" * 1000 + b"\0\1a\0" * 20,
    ],
)
def test_what_a_long_list_costs_is_told_by_its_bytes(block: bytes) -> None:
    long: list[int] = []
    reader = HeaderBlocks(4096, 2**17, long.append)
    assert reader.head(block).code == 8
    assert len(block) <= long[0] <= 2**17
