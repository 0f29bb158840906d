"""100,000 seeded conversations with one connection: valid exchanges, mutated, cut anywhere, ended anyhow.

No exception may escape, nothing may hang or be left, whatever is answered must be well-formed, and each whole
valid request that stands before the first mutation must get exactly one answer, its own.
"""

import random
from dataclasses import dataclass

import pytest
from tests.fuzz.http1 import LIMITS, TOKENS, finish
from tests.fuzz.mutations import (
    Mutation,
    delete,
    duplicate,
    enlarge_a_number,
    flip,
    inserting,
    pieces,
    repeat_a_line,
    rubbish,
    truncate,
)
from tests.harness.fake_core import FakeCore
from tests.harness.http_client import get, post
from tests.harness.http_connection import HttpHarness

CONVERSATIONS = 10_000
MUTATIONS: tuple[Mutation, ...] = (
    flip, inserting(TOKENS), delete, duplicate, repeat_a_line, enlarge_a_number, rubbish, truncate,
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


@pytest.mark.parametrize("seed", range(10))
def test_conversations(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(CONVERSATIONS):
        try:
            converse(random.Random(seed * CONVERSATIONS + number))
        except Exception as error:
            error.add_note(f"the conversation of seed {seed * CONVERSATIONS + number}")
            raise
    assert not caplog.records, "a fault of our own was logged"
