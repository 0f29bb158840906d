"""HTTP/1.1, from bytes on a connection to answers: in any pieces, ended anyhow."""

import random

from tests.fuzz.mutations import pieces
from tests.fuzz.target import Target
from tests.harness.fake_core import FakeCore
from tests.harness.http_client import get, post
from tests.harness.http_connection import HttpHarness

from trivium.frontends.limits import HttpLimits

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
TOKENS = (
    b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\x00", b":", b" ", b"\t", b";", b",", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0",
    b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"Host: y\r\n",
    b"Connection: close\r\n", b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"Expect: 100-continue\r\n",
    b"Expect: x\r\n", b"0\r\n\r\n", b"GET ", b"POST ", b"CONNECT ", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\xff\xfe",
    b"A" * 300, b"X: " + b"B" * 3000,
)  # fmt: skip
CHUNKED = b"POST /echo/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED += b"5;ext=1\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: t\r\n\r\n"
CORPUS = (
    get("a"),
    get("a") + post("b", b"hello"),
    post("costly", b"x" * 300, b"X-Y: z\r\nAccept: a\r\nAccept: b\r\n"),
    CHUNKED,
    CHUNKED + get("a"),
    post("a", b"body", b"Connection: Upgrade\r\nUpgrade: h2c\r\n"),
    post("a", b"body", b"Expect: 100-continue\r\n") * 3,
    post("a", b"y" * 9000) + get("missing"),
    b"HEAD /echo/a?b=c HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
)


def settle(stage: HttpHarness, chance: random.Random) -> None:
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


def finish(stage: HttpHarness, chance: random.Random) -> None:
    """Every conversation ends: by the client, or by the clock."""
    settle(stage, chance)
    if chance.random() < 0.5:
        stage.end_sending()
        settle(stage, chance)
    stage.wait(20)
    settle(stage, chance)
    stage.wait(20)
    assert stage.transport.is_gone, "it hangs"


def read(data: bytes, chance: random.Random) -> None:
    """Refusals are answers: nothing is raised, what is said is well-formed, and nothing is left."""
    stage = HttpHarness(LIMITS, FakeCore(is_prompt=chance.random() < 0.5))
    stage.transport.is_stuck = chance.random() < 0.2
    for piece in pieces(data, chance):
        stage.send(piece)
        if chance.random() < 0.2:
            stage.decode_all()
        if chance.random() < 0.01:
            stage.site.drain()
    finish(stage, chance)
    said = bytes(stage.transport.sent)
    if b"HEAD " not in data:  # else a reader of the answers alone does not know which of them have no body
        assert said == b"" or stage.answers
    assert b"HTTP/1.1 500 " not in said, said[:2000]
    stage.check_nothing_is_left()


TARGETS = (Target("http1", CORPUS, read, (), TOKENS),)
