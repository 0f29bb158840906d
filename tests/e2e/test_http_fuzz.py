"""100,000 seeded conversations with one connection: valid exchanges, mutated, cut anywhere, ended anyhow.

No exception may escape, nothing may hang or be left, whatever is answered must be well-formed, and each whole
valid request that stands before the first mutation must get exactly one answer, its own.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.harness.fake_core import FakeCore
from tests.harness.http_client import get, post
from tests.harness.http_connection import HttpHarness

from trivium.frontends.limits import HttpLimits

CONVERSATIONS = 10_000
LIMITS = HttpLimits(
    header_bytes=2000,
    url_bytes=200,
    header_count=20,
    body_bytes=200_000,
    total_body_bytes=300_000,
    unsent_bytes=50_000,
    idle_seconds=5,
    header_seconds=3,
    body_seconds=3,
    write_seconds=3,
    linger_seconds=1,
)
HUGE = (
    b"99999999999999999999999",
    b"-1",
    b"18446744073709551616",
    b"4294967296",
    b"0x10",
    b"1e9",
    b"00000000003",
)
TOKENS = (
    b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\x00", b":", b" ", b"\t", b";", b",", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0",
    b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"Host: y\r\n",
    b"Connection: close\r\n", b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"Expect: 100-continue\r\n",
    b"Expect: x\r\n", b"0\r\n\r\n", b"GET ", b"POST ", b"CONNECT ", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\xff\xfe",
    b"A" * 300, b"X: " + b"B" * 3000,
)  # fmt: skip


@dataclass
class Asked:
    """A valid request and the body that answers it."""

    data: bytes
    answer: bytes


def a_request(chance: random.Random) -> Asked:
    body = chance.randbytes(chance.choice((1, 2, 5, 64, 300)))
    match chance.randrange(10):
        case 0 | 1:
            verb = chance.choice(("a", "b", "costly"))
            return Asked(get(verb), verb.encode())
        case 2 | 3 | 4:
            return Asked(post("a", body), body)
        case 5:
            return Asked(post("costly", body, b"X-Y: z\r\nAccept: a\r\nAccept: b\r\n"), body)
        case 6:
            chunks, rest = b"", body
            while rest:
                size = chance.randint(1, len(rest))
                chunks += b"%x\r\n" % size + rest[:size] + b"\r\n"
                rest = rest[size:]
            head = b"POST /echo/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            return Asked(head + chunks + b"0\r\n\r\n", body)
        case 7:
            body = body * (70_000 // len(body) + 1) if chance.random() < 0.2 else body
            return Asked(post("a", body), body)
        case 8:
            return Asked(post("a", body, b"Connection: Upgrade\r\nUpgrade: h2c\r\n"), body)
        case _:
            return Asked(post("a", body, b"Expect: 100-continue\r\n"), body)


def flip(data: bytearray, at: int, chance: random.Random) -> None:
    data[at] ^= 1 << chance.randrange(8)


def insert(data: bytearray, at: int, chance: random.Random) -> None:
    data[at:at] = chance.choice(TOKENS)


def delete(data: bytearray, at: int, chance: random.Random) -> None:
    del data[at : at + chance.choice((1, 2, 5, 50))]


def duplicate(data: bytearray, at: int, chance: random.Random) -> None:
    piece = data[at : at + chance.choice((1, 5, 30, 100))]
    data[at:at] = piece * chance.choice((1, 2, 30))


def repeat_a_line(data: bytearray, at: int, chance: random.Random) -> None:
    start = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at) + 1 or len(data)
    data[start:start] = data[start:end]


def enlarge_a_number(data: bytearray, at: int, chance: random.Random) -> None:
    for place in range(at, len(data)):
        if data[place : place + 1].isdigit():
            data[place : place + 1] = chance.choice(HUGE)
            return


def rubbish(data: bytearray, at: int, chance: random.Random) -> None:
    data[at : at + 20] = chance.randbytes(chance.randrange(60))


def truncate(data: bytearray, at: int, chance: random.Random) -> None:
    del data[at:]


MUTATIONS: tuple[Callable[[bytearray, int, random.Random], None], ...] = (
    flip, insert, delete, duplicate, repeat_a_line, enlarge_a_number, rubbish, truncate,
)  # fmt: skip


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    match chance.randrange(4):
        case 0:
            return [data]
        case 1:
            size = chance.choice((1, 2, 7, 100)) if len(data) < 3000 else 1000
            return [data[at : at + size] for at in range(0, len(data), size)]
        case _:
            cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(1, 6)))
            return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def serve_all(stage: HttpHarness, chance: random.Random) -> None:
    """Answer what is open, in the core's own time, until nothing moves any more."""
    for _ in range(1000):
        stage.decode_all()
        stage.flush()
        waiting = [ticket for ticket in stage.core.tickets if not ticket.is_over]
        if not waiting and not stage.offloaded and not stage.transport.unsent:
            return
        for ticket in waiting:
            if chance.random() < 0.1:
                data = ticket.operation.payload.parts[0].data
                ticket.say(bytes(data[:5]))
                ticket.say(bytes(data[5:]), final=True)
            else:
                ticket.echo()
    raise AssertionError("it goes on for ever")


def converse(chance: random.Random) -> None:
    stage = HttpHarness(LIMITS, FakeCore(is_prompt=chance.random() < 0.5))
    asked = [a_request(chance) for _ in range(chance.randrange(1, 5))]
    valid = len(asked)
    data = bytearray().join(request.data for request in asked)
    if chance.random() < 0.85:
        valid = chance.randrange(len(asked))
        start = sum(len(request.data) for request in asked[:valid])
        end = min(len(data), start + len(asked[valid].data))
        for _ in range(chance.choice((1, 1, 2, 4))):
            if start < min(end, len(data)):
                chance.choice(MUTATIONS)(data, chance.randrange(start, min(end, len(data))), chance)
    stage.transport.is_stuck = chance.random() < 0.2
    for piece in pieces(bytes(data), chance):
        stage.send(piece)
        if chance.random() < 0.2:
            stage.decode_all()
        if chance.random() < 0.01:
            stage.site.drain()
            valid = 0
    finish(stage, chance)
    answers = [answer for answer in stage.answers if answer.status != 100]
    assert [answer.body for answer in answers[:valid]] == [request.answer for request in asked[:valid]]
    if valid == len(asked):
        assert len(answers) == valid
    stage.check_nothing_is_left()


def finish(stage: HttpHarness, chance: random.Random) -> None:
    """Every conversation ends: by the client, or by the clock."""
    serve_all(stage, chance)
    if chance.random() < 0.5:
        stage.end_sending()
        serve_all(stage, chance)
    stage.wait(20)
    serve_all(stage, chance)
    stage.wait(20)
    assert stage.transport.is_gone, "it hangs"


@pytest.mark.parametrize("seed", range(10))
def test_conversations(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(CONVERSATIONS):
        try:
            converse(random.Random(seed * CONVERSATIONS + number))
        except Exception as error:
            error.add_note(f"the conversation of seed {seed * CONVERSATIONS + number}")
            raise
    assert not caplog.records, "a fault of our own was logged"
