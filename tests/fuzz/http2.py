"""HTTP/2 with HPACK and gRPC's messages, from bytes on a connection to calls: in any pieces."""

import asyncio
import random
from functools import cache

from hpack import Encoder
from tests.fuzz.mutations import pieces
from tests.fuzz.target import Change, Target
from tests.harness.echo_rpc import SERVER_STREAM, STREAM, UNARY
from tests.harness.fake_core import FakeCore
from tests.harness.h2_peer import GREETING, USUAL, Peer, data, prefixed
from tests.harness.h2_session import H2SessionHarness

from trivium.frontends.h2 import frames
from trivium.frontends.h2.frames import ConnectionFault
from trivium.frontends.h2.header_blocks import HeaderBlocks

NUMBERS = (0, 1, 2, 3, 5, 7, 9, 2**31 - 1, 2**32 - 1)
FLAGS = (0, 1, 4, 5, 8, 9, 0xC, 0x20, 0x24, 0x2D, 0xFF)


def conversation(*calls: tuple[str, bytes]) -> bytes:
    peer = Peer()
    wire = peer.greeting()
    for number, (path, message) in enumerate(calls):
        wire += peer.call(2 * number + 1, path, message, more=(("grpc-timeout", "9S"), ("x-a", "b" * number)))
    return wire


def in_pieces() -> bytes:
    """A call whose head and message take several frames, padded, with all that may stand between."""
    block = Encoder().encode([*USUAL[:2], (":path", STREAM), *USUAL[2:], ("x-long", "v" * 60)])
    message = prefixed(b"echo hello") + prefixed(b"echo", 1)
    return b"".join(
        (
            GREETING,
            frames.window_update(0, 1000),
            frames.head(10 + 5, frames.HEADERS, frames.HAS_PRIORITY, 1) + bytes(5) + block[:10],
            frames.head(len(block) - 10, frames.CONTINUATION, frames.END_HEADERS, 1) + block[10:],
            frames.head(8 + 1 + 3, frames.DATA, frames.PADDED, 1) + b"\3" + message[:8] + bytes(3),
            frames.window_update(1, 5),
            frames.ping(b"12345678"),
            frames.settings([(frames.INITIAL_WINDOW_SIZE, 10), (frames.MAX_FRAME_SIZE, 2**14), (99, 1)]),
            frames.SETTINGS_ACK,
            data(1, message[8:], ends=True),
            frames.reset(1, frames.CANCEL),
            frames.goaway(0, 0, "bye"),
        )
    )


CORPUS = (
    conversation((UNARY, b"echo hello")),
    conversation((UNARY, b"echo a"), (STREAM, b"echo b"), (SERVER_STREAM, b"echo c"), (UNARY, b"costly")),
    conversation((UNARY, b"bad"), ("/nobody/Here", b"")),
    in_pieces(),
)
BLOCKS = (
    Encoder().encode([*USUAL[:2], (":path", UNARY), *USUAL[2:]]),
    Encoder().encode(
        [*USUAL[:2], (":path", "/" + "~" * 100), *USUAL[2:], ("grpc-timeout", "1H")], huffman=False
    ),
    Encoder().encode([(b":method", b"GET"), (b"a-bin", b"AAAA"), (b"te", b"x"), (b"grpc-encoding", b"zip")]),
)
TOKENS = (
    frames.PREFACE, frames.SETTINGS_ACK, frames.ping(b"12345678"), frames.reset(1, 8),
    frames.window_update(0, 2**31 - 1),
    frames.window_update(1, 0), frames.settings([(4, 2**31 - 1)]), frames.settings([(1, 2**32 - 1)]), data(1,
    b"", True),
    frames.head(0, frames.HEADERS, 0, 3), frames.head(0, frames.CONTINUATION, 4, 1), b"\x20\x20\x20",
    b"\x3f\xff\xff\xff\xff\xff\xff",
    b"\x82\x87\x84", b"\xff" * 12, b"\x40\x80\x80", b"\x7f\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", b"\0\0\0\0\0",
    b"\1\0\0\0\5",
    b"\0\xff\xff\xff\xff", *BLOCKS,
)  # fmt: skip


def frames_of(wire: bytes) -> list[tuple[int, int, int, bytes]]:
    """Kind, flags, stream and payload of what stands behind the preface."""
    found, at = [], len(frames.PREFACE)
    while at < len(wire):
        high, low, kind, flags, stream = frames.HEAD.unpack_from(wire, at)
        at += frames.HEAD_BYTES + (size := high << 8 | low)
        found.append((kind, flags, stream, wire[at - size : at]))
    return found


def rebuilt(entry: bytes, change: Change, chance: random.Random) -> bytes:
    """Frames with heads that fit: some of another kind or payload, some more, some fewer."""
    out = [frames.PREFACE]
    for kind, flags, stream, payload in frames_of(entry):
        match chance.randrange(12):
            case 0:
                continue
            case 1:
                payload = change(payload)
            case 2:
                flags = chance.choice(FLAGS)
            case 3:
                stream = chance.choice(NUMBERS)
            case 4:
                kind = chance.randrange(12)
            case 5:
                noise = chance.choice(
                    (*BLOCKS, prefixed(b"echo x"), chance.randbytes(8), chance.randbytes(4))
                )
                other = chance.randrange(12), chance.choice(FLAGS), chance.choice(NUMBERS)
                out.append(frames.head(len(noise), *other) + noise)
            case 6:
                out.append(chance.choice(TOKENS))
        whole = frames.head(len(payload), kind, flags, stream) + payload
        out += [whole] * (chance.choice((2, 60)) if chance.random() < 0.05 else 1)
    return b"".join(out)


@cache
def loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def read(wire: bytes, chance: random.Random) -> None:
    """Either it is understood, or the connection ends by a code; nothing is left of it, and bounds are kept."""
    loop().run_until_complete(_converse(wire, chance))


async def _converse(wire: bytes, chance: random.Random) -> None:
    limits = {"message_bytes": 1000, "total_message_bytes": 3000, "calls": 5}
    talk = H2SessionHarness(FakeCore(chance.random() < 0.5), **limits)
    fault = None
    for piece in pieces(wire, chance):
        try:
            talk.session.feed(memoryview(piece))
        except ConnectionFault as error:
            fault = error
            break
        if chance.random() < 0.5:
            talk.threads.run()
        for ticket in talk.core.tickets:
            if not ticket.is_over and chance.random() < 0.5:
                ticket.echo()
        await _turn(talk, chance.choice((1, 3)))
        assert talk.site.held_bytes <= 3000
        assert len(talk.site.visits) <= 5
        assert talk.session.flow.window >= 0
        talk.time.now += chance.choice((0, 0, 1, 100))
        talk.session.end_late(talk.time.now)
    talk.session.lose()
    talk.threads.run()
    while tasks := [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
        await asyncio.wait(tasks)
    await asyncio.sleep(0)  # for what is called when a task is over
    talk.check_nothing_is_left()
    if fault is not None:
        raise fault


async def _turn(talk: H2SessionHarness, count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
        talk.session.pump()
        talk.session.spare()
        talk.session.out.clear()


def read_blocks(blocks: bytes, chance: random.Random) -> None:
    """Header blocks of one connection, one after another."""
    reader = HeaderBlocks(4000, 16_000, [].append)
    for piece in pieces(blocks, chance):
        if chance.random() < 0.2:
            reader.skip(piece)
        else:
            head = reader.head(piece)
            assert head is reader.head(piece) or head.malformed or head == reader.head(piece)


TARGETS = (
    Target("http2", CORPUS, read, (ConnectionFault,), TOKENS, rebuild=rebuilt),
    Target("hpack", BLOCKS, read_blocks, (ConnectionFault,), TOKENS),
)
