"""Heads of gRPC calls: credentials, metadata of any length and kind, deadlines; and the status that goes back."""

import random
from urllib.parse import unquote_to_bytes

from hpack import Decoder, Encoder, NeverIndexedHeaderTuple
from tests.fuzz.target import Change, Target
from tests.harness.echo_rpc import UNARY
from tests.harness.fake_core import FakeCore
from tests.harness.h2_peer import Heard, prefixed
from tests.harness.h2_peer import data as data_frame
from tests.harness.h2_session import H2SessionHarness

from trivium.access.authorizer import KeyAuthorizer
from trivium.access.keys import AccessKey, digest_of
from trivium.frontends.h2 import frames
from trivium.frontends.h2.frames import ConnectionFault
from trivium.frontends.h2.header_blocks import HeaderBlocks
from trivium.frontends.h2.responses import refusal
from trivium.frontends.h2.rpc_head import RpcHead, read_head
from trivium.types.access import AccessScope

KEY = "bsecret"
KEYS = (AccessKey("own", digest_of(KEY), frozenset(AccessScope)),)
MOST_LIST, MOST_BLOCK = 4000, 2**17
MOST_SECONDS = (10**8 - 1) * 3600

USUAL = (
    b":method: POST\n:scheme: http\n:path: /test.Echo/Unary\nte: trailers\ncontent-type: application/grpc\n"
)
CORPUS = (
    USUAL,
    USUAL + b"authorization: Bearer bsecret\ngrpc-timeout: 2S\n",
    USUAL + b"authorization: Bearer bsecret\nauthorization: Bearer other\n",
    USUAL
    + b"x-bin: AAAA\nx-bin: \xff\xfe\x01\nuser-agent: grpc-python/1.85\ngrpc-accept-encoding: identity, gzip\n",
    USUAL + b"grpc-encoding: gzip\ngrpc-timeout: 99999999H\nx: " + b"v" * 3000 + b"\n",
    USUAL + b"a: 1\na: 2\na: 3\nx-long: " + b"~" * 5000 + b"\n",
)
TOKENS = (
    b"authorization: Bearer bsecret\n", b"authorization: \n", b"Authorization: Bearer bsecret\n",
    b"authorization : x\n",
    b"authorization-bin: AAAA\n", b"grpc-timeout: 1n\n", b"grpc-timeout: 123456789S\n", b"grpc-timeout: -1S\n",
    "grpc-timeout: \u0663S\n".encode(), b"grpc-timeout: S\n", b"grpc-timeout: 1\n", b":authority: a\n",
    b":status: 200\n",
    b"te: x\n", b"connection: close\n", b"content-type: application/grpc+proto\n", b"content-type: text/html\n",
    b"grpc-encoding: %41\n", b"x-bin: ,,,\n", b"\0", b"\r", b"%00", b"%E2%82", b"\xe2\x82", b": ", b"\n", b"\xff",
    b"grpc-message: a\n", b"grpc-status: 0\n", b"x: " + b"y" * 6000 + b"\n", b"z: 1\n" * 200,
)  # fmt: skip


def headers_of(data: bytes) -> list[tuple[bytes, bytes]]:
    """A header a line: names may begin with a colon, and a value may be empty."""
    found = []
    for line in data.split(b"\n"):
        if line:
            name, _, value = line[1:].partition(b": ")
            found.append((line[:1] + name, value))
    return found


def rebuilt(entry: bytes, change: Change, chance: random.Random) -> bytes:
    """The usual headers as they are, and others behind them."""
    lines = entry.splitlines(keepends=True)
    usual, others = lines[:5], lines[5:] + [chance.choice(TOKENS) for _ in range(chance.randrange(4))]
    chance.shuffle(others)
    if others:
        at = chance.randrange(len(others))
        others[at] = change(others[at])
    return b"".join((*usual, *others))


def check_head(head: RpcHead, headers: list[tuple[bytes, bytes]]) -> None:
    """One meaning of what may have two, texts only, deadlines that a clock can hold, and a status that arrives."""
    if head.malformed:
        assert not head.code
        return
    for name, value in head.metadata.items():
        name.encode(), value.encode()
        assert not name.endswith("-bin")
    keys = [value for name, value in headers if name == b"authorization"]
    if len(keys) > 1:
        assert head.code, "a credential that comes twice was taken"
        assert not head.metadata
    elif keys and not head.code:
        assert head.metadata.get("authorization", "").encode() in (keys[0], b"")
    assert head.timeout is None or 0 <= head.timeout <= MOST_SECONDS
    if not head.code and any(name == b"grpc-timeout" for name, _ in headers):
        assert head.timeout is not None
    block = refusal(head.code, head.details, head.http)
    assert len(block) < frames.LEAST_FRAME_SIZE
    said = dict(Decoder().decode(block, raw=True))
    if head.details:
        text = unquote_to_bytes(said[b"grpc-message"])
        assert head.details.encode("utf-8", "backslashreplace").startswith(text)
        text.decode()


def read(data: bytes, chance: random.Random) -> None:
    """The headers by themselves."""
    headers = headers_of(data)
    head = read_head(headers)
    check_head(head, headers)
    if head.malformed or head.code:
        raise Refused


class Refused(Exception):
    """The head was read, and its call is none."""


def packed(encoder: Encoder, headers: list[tuple[bytes, bytes]], chance: random.Random) -> bytes:
    """As a client may send it: some of it remembered, some never, in Huffman's code or not."""
    entries = [
        NeverIndexedHeaderTuple(name, value) if chance.random() < 0.3 else (name, value)
        for name, value in headers
    ]
    return bytes(encoder.encode(entries, huffman=chance.random() < 0.5))


def read_packed(data: bytes, chance: random.Random) -> None:
    """Blocks one behind another: however long one is, the next one says what it says."""
    encoder, told = Encoder(), list[int]()
    blocks = HeaderBlocks(MOST_LIST, MOST_BLOCK, told.append)
    headers = headers_of(data)
    usual = headers_of(CORPUS[1])
    for turn in range(chance.randrange(1, 4)):
        block = packed(encoder, headers, chance)
        before = len(told)
        head = blocks.head(block)
        size = sum(len(name) + len(value) + 32 for name, value in headers)
        is_long = size > MOST_LIST or len(block) > MOST_LIST
        assert (len(told) > before) <= is_long
        assert turn or (len(told) > before) == is_long  # one that is remembered costs nothing
        assert (head.code == 8) == is_long
        if not is_long:
            assert head == read_head(headers)
        assert blocks.head(packed(encoder, usual, chance)) == read_head(usual)


def read_call(data: bytes, chance: random.Random) -> None:
    """Two calls of one connection of a server with keys: the first is as it is, and the other one is answered."""
    talk = H2SessionHarness(FakeCore())
    talk.site.authorizer = KeyAuthorizer(lambda: KEYS, lambda: 0.0)
    talk.greet()
    headers = headers_of(data)
    talk.peer.streams[1] = Heard(talk.peer.initial)
    talk.say(
        _framed(1, packed(talk.peer.encoder, headers, chance)), data_frame(1, prefixed(b"echo x"), ends=True)
    )
    heard = talk.peer.streams[1]
    assert heard.has_ended or heard.reset is not None or talk.peer.goaways
    keys = [value for name, value in headers if name == b"authorization"]
    if heard.has_ended and heard.headers[0][":status"] == "200" and heard.status == 0:
        assert [key.split()[1:] for key in keys] == [[KEY.encode()]], "nobody showed that key"
    more = (("authorization", f"Bearer {KEY}"),)
    assert talk.call(3, UNARY, b"echo well", more=more).messages == [b"well"]
    talk.check_nothing_is_left()


def _framed(stream: int, block: bytes) -> bytes:
    pieces = [block[at : at + 2**14] for at in range(0, len(block), 2**14)] or [b""]
    return b"".join(
        frames.head(
            len(piece),
            frames.CONTINUATION if number else frames.HEADERS,
            frames.END_HEADERS * (number == len(pieces) - 1),
            stream,
        )
        + piece
        for number, piece in enumerate(pieces)
    )


TARGETS = (
    Target("rpc_head", CORPUS, read, (Refused,), TOKENS, rebuild=rebuilt),
    Target("rpc_head_packed", CORPUS, read_packed, (ConnectionFault,), TOKENS, rebuild=rebuilt, most=2**13),
    Target("rpc_head_call", CORPUS, read_call, (ConnectionFault,), TOKENS, rebuild=rebuilt, most=20_000),
)
