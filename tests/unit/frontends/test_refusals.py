"""What is refused, with which status, and whether the connection survives it."""

import logging

import pytest
from tests.harness.fake_core import FakeCore
from tests.harness.http_client import get, post
from tests.harness.http_connection import HttpHarness

from trivium.frontends.http.request import STEP
from trivium.frontends.limits import HttpLimits

HOST = b"Host: x\r\n"
CHUNKED = b"POST /echo/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

MALFORMED = {
    "no request": b"rubbish\r\n\r\n",
    "binary": bytes(range(128, 200)),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "unknown method": b"FOO /echo/a HTTP/1.1\r\n" + HOST + b"\r\n",
    "bare LF": b"GET /echo/a HTTP/1.1\nHost: x\n\n",
    "bare LF in a field": b"GET /echo/a HTTP/1.1\r\nHost: x\nX: y\r\n\r\n",
    "bare CR in a field": b"GET /echo/a HTTP/1.1\r\nHost: x\rX: y\r\n\r\n",
    "folded line": b"GET /echo/a HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    "space before colon": b"GET /echo/a HTTP/1.1\r\n" + HOST + b"Content-Length : 3\r\n\r\nabc",
    "space before the first field": b"GET /echo/a HTTP/1.1\r\n X: a\r\n" + HOST + b"\r\n",
    "NUL in a field": b"GET /echo/a HTTP/1.1\r\n" + HOST + b"X: a\x00\r\n\r\n",
    "no colon": b"GET /echo/a HTTP/1.1\r\n" + HOST + b"X\r\n\r\n",
    "no host": b"GET /echo/a HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /echo/a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "two content types": post("a", b"abc", b"Content-Type: a/b\r\nContent-Type: c/d\r\n"),
    "two equal lengths": post("a", b"abc", b"Content-Length: 3\r\n"),
    "two one-digit lengths": b"POST /echo/a HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n" * 2 + b"\r\nabc",
    "two different lengths": post("a", b"abc", b"Content-Length: 1\r\n"),
    "a list of lengths": b"POST /echo/a HTTP/1.1\r\n" + HOST + b"Content-Length: 3, 3\r\n\r\nabc",
    "signed length": b"POST /echo/a HTTP/1.1\r\n" + HOST + b"Content-Length: +3\r\n\r\nabc",
    "hexadecimal length": b"POST /echo/a HTTP/1.1\r\n" + HOST + b"Content-Length: 0x3\r\n\r\nabc",
    "empty length": b"POST /echo/a HTTP/1.1\r\n" + HOST + b"Content-Length: \r\n\r\n",
    "length beyond 64 bits": b"POST /echo/a HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 99999999999999999999\r\n\r\n",
    "length, then chunks that are none": post("a", b"abc", b"Transfer-Encoding: chunked\r\n"),
    "chunks, then length, and no chunks": CHUNKED[:-2] + b"Content-Length: 3\r\n\r\nabc",
    "chunks and two lengths": CHUNKED[:-2] + b"Content-Length: 5\r\n" * 2 + b"\r\n0\r\n\r\n",
    "chunks that are not the last coding": post("a", b"abc", b"Transfer-Encoding: chunked, identity\r\n"),
    "chunks and no length": CHUNKED[:-2] + b"Content-Length: x\r\n\r\n0\r\n\r\n",
    "chunks twice": CHUNKED[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n",
    "chunk size of letters": CHUNKED + b"xyz\r\n",
    "chunk size beyond 64 bits": CHUNKED + b"FFFFFFFFFFFFFFFFF\r\nabc",
    "negative chunk": CHUNKED + b"-1\r\nabc",
    "chunk longer than its size": CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n",
    "chunks with bare LF": CHUNKED + b"3\nabc\n0\n\n",
    "fragment": b"GET /echo/a#f HTTP/1.1\r\n" + HOST + b"\r\n",
    "asterisk": b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n",
    "tunnel": b"CONNECT a:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    "other scheme": b"GET ftp://h/a HTTP/1.1\r\n" + HOST + b"\r\n",
    "space in the target": b"GET /echo/a b HTTP/1.1\r\n" + HOST + b"\r\n",
    "bytes beyond ASCII in the target": b"GET /echo/\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "two hosts in a trailer": CHUNKED + b"0\r\nHost: a\r\nHost: b\r\n\r\n",
}


@pytest.mark.parametrize("pieces_of", [None, 1], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_requests(case: str, pieces_of: int | None) -> None:
    stage = HttpHarness()
    stage.send(get("before") + MALFORMED[case] + get("behind"), pieces_of)
    assert stage.statuses == [200, 400]
    assert len(stage.answers[1].body) > 20
    assert stage.answers[1].fields[b"connection"] == b"close"
    assert stage.is_closed
    stage.check_nothing_is_left()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (post("a", b"").replace(b"Content-Length: 0", b"Transfer-Encoding: gzip, chunked"), 501),
        (post("a", b"").replace(b"Content-Length: 0", b"Transfer-Encoding: gzip"), 501),
        (post("a", b"abc", b"Transfer-Encoding: identity\r\n"), 501),
        (b"GET / HTTP/2.0\r\n\r\n", 505),
        (b"GET / HTTP/0.9\r\n\r\n", 505),
        (b"GET /\r\n\r\n", 505),
        (get("a", b"Expect: 200-ok\r\n").replace(b"GET", b"POST"), 417),
        (post("a", b"xyz", b"Expect: tea\r\n"), 417),
        (get("a" * 9000), 414),
        (get("a" * 100_000), 414),
        (get("a", b"X: " + b"a" * 40_000 + b"\r\n"), 431),
        (get("a", b"X: " + b"a" * 1_000_000 + b"\r\n"), 431),
        (get("a", b"".join(b"X-%d: y\r\n" % i for i in range(200))), 431),
        (get("a", b"X: y\r\n" * 200), 431),
        (b"\r\n" * 100_000, 431),
        (CHUNKED + b"0\r\nT: " + b"a" * 100_000, 431),
        (CHUNKED + b"1;" + b"a" * 100_000, 431),
    ],
)
def test_other_refusals_of_http(request_bytes: bytes, status: int) -> None:
    stage = HttpHarness()
    stage.send(request_bytes)
    if b"Expect: 200" in request_bytes:  # no body, so that nothing is in doubt
        assert stage.statuses == [417]
        assert not stage.is_closed
    else:
        assert stage.statuses == [status]
        assert stage.is_closed
        assert stage.answers[0].fields[b"connection"] == b"close"
    stage.check_nothing_is_left()


def test_header_limits_count_one_head_however_it_comes() -> None:
    stage = HttpHarness(HttpLimits(header_bytes=2000))
    for _ in range(10):
        stage.send(get("a", b"X: " + b"a" * 1500 + b"\r\n"), pieces_of=100)
    stage.send(get("a", b"X: " + b"a" * 1500 + b"\r\n") * 100)
    assert stage.statuses == [200] * 110


def test_an_unknown_path_names_what_is_known_and_the_connection_stays() -> None:
    stage = HttpHarness()
    stage.send(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + get("a"))
    assert stage.statuses == [404, 200]
    assert b"/echo" in stage.answers[0].body
    stage.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert stage.statuses == [404, 200, 404]


@pytest.mark.parametrize("size", [70_000, None])
def test_a_refused_head_with_a_long_body_closes_without_reading_it(size: int | None) -> None:
    stage = HttpHarness()
    framing = b"Transfer-Encoding: chunked" if size is None else b"Content-Length: %d" % size
    stage.send(b"POST /echo/missing HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n")
    assert stage.statuses == [404]
    assert stage.is_closed


def test_a_refused_head_that_expects_100_closes() -> None:
    stage = HttpHarness()
    stage.send(post("missing", b"", b"Expect: 100-continue\r\n").replace(b"Length: 0", b"Length: 3"))
    assert stage.statuses == [404]
    assert stage.is_closed


def test_a_body_where_none_is_taken() -> None:
    stage = HttpHarness()
    with_body = get("a", b"Content-Length: 3\r\n") + b"abc"
    stage.send(with_body)
    stage.send(with_body)  # recalled
    stage.send(get("a", b"Content-Length: 70000\r\n"))
    assert stage.statuses == [200, 200, 413]
    assert stage.answers[1].body == b"a"
    assert stage.is_closed


@pytest.mark.parametrize("fields", [b"", b"Expect: 100-continue\r\n"])
def test_a_declared_body_beyond_the_limit(fields: bytes) -> None:
    stage = HttpHarness(HttpLimits(body_bytes=100))
    stage.send(post("a", b"a" * 100))
    assert stage.statuses == [200]
    stage.send(post("a", b"a" * 101, fields))
    assert stage.statuses == [200, 413]
    assert b"101" in stage.answers[1].body
    assert stage.transport.is_shut
    stage.send(b"a" * 1_000_000)  # read and thrown away
    assert not stage.kernel
    stage.check_nothing_is_left()


def test_chunks_beyond_the_limit() -> None:
    stage = HttpHarness(HttpLimits(body_bytes=100))
    stage.send(CHUNKED + b"40\r\n" + b"a" * 64 + b"\r\n")
    assert stage.statuses == []
    stage.send(b"40\r\n" + b"a" * 64 + b"\r\n0\r\n\r\n")
    assert stage.statuses == [413]
    stage.check_nothing_is_left()


def test_bodies_of_all_connections_together_are_bounded() -> None:
    core = FakeCore(is_prompt=False)
    stage = HttpHarness(HttpLimits(total_body_bytes=150_000), core)
    stage.send(post("a", b"a" * 100_000))
    first = stage.connection, stage.transport
    stage.connect()
    stage.send(post("a", b"a" * 100_000))
    assert stage.statuses == [503]
    stage.leave()
    stage.connect()
    core.tickets[0].echo()
    stage.send(post("a", b"a" * 100_000))
    core.tickets[1].echo()
    assert stage.statuses == [200]
    stage.leave()
    stage.connection, stage.transport = first
    stage.check_nothing_is_left()


def test_one_connection_too_many_is_told_so() -> None:
    stage = HttpHarness(HttpLimits(connections=1))
    first = stage.connection, stage.transport
    stage.connect()
    assert stage.statuses == [503]
    assert stage.answers[0].fields[b"connection"] == b"close"
    stage.transport.turn()
    assert stage.transport.is_gone
    stage.connection, stage.transport = first
    stage.send(get("a"))
    assert stage.statuses == [200]
    stage.leave()
    stage.connect()
    stage.send(get("a"))
    assert stage.statuses == [200]


@pytest.mark.parametrize("where", ["head", "decode", "submit", "encode"])
def test_faults_of_our_own_are_logged_answered_and_close(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    stage = HttpHarness()
    with caplog.at_level(logging.ERROR):
        stage.send(post(f"crash-{where}", b"abc") + get("behind"))
    assert stage.statuses == [500]
    assert b"by a fault of its own" in stage.answers[0].body
    assert stage.answers[0].fields[b"connection"] == b"close"
    assert stage.is_closed
    record = caplog.records[0]
    assert record.exc_info is not None
    assert "a fault in" in str(record.exc_info[1])
    stage.check_nothing_is_left()


def test_a_fault_in_a_decoding_thread_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    stage = HttpHarness()
    stage.send(post("crash-decode/costly", b"abc"))
    stage.decode_all()
    assert stage.statuses == [500]
    assert "decode raised" in caplog.text
    stage.connect()
    stage.send(post("bad/costly", b"abc") + post("crash-submit/costly", b"abc"))
    stage.decode_all()
    stage.decode_all()
    assert stage.statuses == [400, 500]


def test_a_fault_in_refusing_is_answered_bare(caplog: pytest.LogCaptureFixture) -> None:
    stage = HttpHarness()
    stage.send(get("unspeakable") + get("behind"))
    assert [(answer.status, answer.body) for answer in stage.answers] == [(500, b"")]
    assert stage.is_closed
    assert "a fault in refuse" in caplog.text


def test_an_answer_that_is_none_cuts_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    stage = HttpHarness()
    stage.send(get("crash-send"))
    assert stage.transport.is_gone
    assert "send raised" in caplog.text


def test_a_fault_in_encoding_cancels_what_still_runs() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(get("crash-encode"))
    ticket = stage.core.tickets[0]
    ticket.say(b"one")
    assert stage.statuses == [500]
    assert ticket.cancelled is not None
    stage.check_nothing_is_left()


def test_a_fault_in_the_middle_of_an_answer_breaks_it_off(caplog: pytest.LogCaptureFixture) -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(get("a"))
    ticket = stage.core.tickets[0]
    ticket.say(b"one")
    ticket.sink("no part at all")  # type: ignore[arg-type]
    stage.transport.turn()
    assert stage.transport.is_gone
    assert not stage.transport.sent.endswith(b"0\r\n\r\n")
    assert "encode raised" in caplog.text


def test_a_bad_body_is_refused_and_the_connection_stays() -> None:
    stage = HttpHarness()
    stage.send(post("bad", b"abc") + get("a"))
    assert stage.statuses == [400, 200]
    assert not stage.is_closed


def begun(verb: str, size: int) -> bytes:
    """The head of a request whose body is to come."""
    return b"POST /echo/%s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (verb.encode(), size)


def test_what_is_declared_and_not_sent_takes_no_room() -> None:
    stage = HttpHarness(HttpLimits(total_body_bytes=8 * STEP, body_bytes=2**30))
    for _ in range(20):
        stage.connect()
        stage.send(begun("a", 5 * STEP))
    assert stage.site.held_bytes == 0
    for _ in range(5):
        stage.connect()
        stage.send(begun("a", 5 * STEP) + b"x")
    assert stage.site.held_bytes == 5 * STEP
    body = bytes(range(256)) * (3 * STEP // 256)
    stage.connect()
    stage.send(begun("a", 2 * STEP) + body[: 2 * STEP], pieces_of=100_003)
    assert stage.statuses == [200]
    assert stage.answers[0].body == body[: 2 * STEP]


def test_a_body_that_finds_no_room_for_its_next_step_gives_back_what_it_has() -> None:
    stage = HttpHarness(HttpLimits(total_body_bytes=3 * STEP, body_bytes=2**30))
    stage.send(begun("a", 9 * STEP) + bytes(2 * STEP))
    assert stage.site.held_bytes == 3 * STEP
    assert stage.lent == 1
    stage.send(bytes(STEP))
    assert stage.statuses == [503]
    assert stage.answers[0].fields[b"retry-after"] == b"1"
    assert stage.is_closed
    assert (stage.site.held_bytes, stage.lent) == (0, 0)
    stage.check_nothing_is_left()


@pytest.mark.parametrize("spare", [b"", b"G", b"GET /echo/b HTTP/1.1\r\nHost: h\r\n\r\n"])
@pytest.mark.parametrize("pieces_of", [None, STEP - 1, STEP, STEP + 1, 77_777])
def test_steps_lose_no_byte_and_take_none_of_the_next_request(spare: bytes, pieces_of: int | None) -> None:
    stage = HttpHarness()
    body = bytes(range(251)) * (3 * STEP // 251 + 1)
    stage.send(post("a", body) + post("a", body) + spare, pieces_of)
    assert [answer.body for answer in stage.answers[:2]] == [body, body]
    assert len(stage.answers) == 2 + (len(spare) > 1)
    stage.check_nothing_is_left()


def test_a_body_for_what_is_not_served_is_refused_from_its_head() -> None:
    stage = HttpHarness()
    stage.send(begun("unlendable", 2**24).replace(b"Host", b"Expect: 100-continue\r\nHost"))
    assert stage.statuses == [503]
    assert b"100 Continue" not in bytes(stage.transport.sent)
    assert stage.site.held_bytes == 0
