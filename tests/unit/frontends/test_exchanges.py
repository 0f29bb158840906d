"""Whole exchanges as lists of bytes: keep-alive, pipelining, bodies of every kind, HEAD, HTTP/1.0, upgrades."""

import pytest
from tests.harness.fake_core import EchoProtocol, FakeCore
from tests.harness.http_client import get, post, read_answers
from tests.harness.http_connection import HttpHarness

from trivium.frontends.limits import HttpLimits
from trivium.types.wire import Head, Target

BIG = bytes(range(256)) * 1024  # 256 KiB


@pytest.mark.parametrize("pieces_of", [None, 1, 3, 50])
def test_bodies_come_back_however_the_bytes_are_cut(pieces_of: int | None) -> None:
    stage = HttpHarness()
    stage.send(
        post("a", b"first") + get("b") + post("c", b"") + post("a", b"first") * 2 + post("a", b"other"),
        pieces_of,
    )
    assert [answer.body for answer in stage.answers] == [b"first", b"b", b"c", b"first", b"first", b"other"]
    assert set(stage.statuses) == {200}
    assert all(b"connection" not in answer.fields for answer in stage.answers)
    assert stage.answers[0].fields[b"x-echo"] == b"1"
    assert not stage.is_closed
    stage.check_nothing_is_left()


def test_a_repeated_head_is_recalled_with_its_own_body() -> None:
    stage = HttpHarness()
    for body in (b"11111", b"22222", b"33333"):
        stage.send(post("a", body))
    stage.send(get("a"))
    stage.send(get("a"))
    stage.send(post("a", b"44444"))
    stage.send(b"P")  # the same bytes at another place of the stream mean something else
    stage.send(post("a", b"55555"))
    assert [answer.body for answer in stage.answers[:6]] == [
        b"11111",
        b"22222",
        b"33333",
        b"a",
        b"a",
        b"44444",
    ]
    assert stage.statuses[6:] == [400]
    stage.check_nothing_is_left()


@pytest.mark.parametrize("body", [b"12345", BIG])
@pytest.mark.parametrize("abort", [1, 20])
def test_what_is_left_of_an_earlier_head_in_the_shared_buffer_is_no_head(body: bytes, abort: int) -> None:
    """Behind the first bytes of a head there may be the rest of the same one, from another connection."""
    stage = HttpHarness()
    request = post("a", body)
    head = request[: len(request) - len(body)]
    stage.send(request)
    stage.site.scratch[: len(head)] = head
    stage.send(request[:abort])
    stage.send(request[abort:])
    assert [answer.body for answer in stage.answers] == [body, body]
    stage.check_nothing_is_left()


def test_what_stands_around_a_request_is_not_taken_for_its_head() -> None:
    stage = HttpHarness()
    request = post("a", b"\r\n\r\nx")
    for data in (
        b"\r\n" + request,
        request + b"\r\n",
        request,
        b"\r\n" + request,
        request + b"\r\n",
        request,
    ):
        stage.send(data)
    assert [answer.body for answer in stage.answers] == [b"\r\n\r\nx"] * 6


@pytest.mark.parametrize("pieces_of", [None, 1, 7])
def test_chunks(pieces_of: int | None) -> None:
    stage = HttpHarness()
    head = b"POST /echo/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
    stage.send(head + b"3;ext=1\r\nabc\r\n02\r\nde\r\n0\r\nTrailer: t\r\n\r\n" + get("next"), pieces_of)
    assert [answer.body for answer in stage.answers] == [b"abcde", b"next"]
    assert stage.site.held_bytes == 0
    stage.check_nothing_is_left()


@pytest.mark.parametrize("pieces_of", [None, 1, 7])
@pytest.mark.parametrize("length", [0, 1, 9, 5_000_000])
@pytest.mark.parametrize("is_length_first", [True, False])
def test_of_chunks_and_a_length_the_chunks_count_and_nothing_behind_them_is_read(
    pieces_of: int | None, length: int, is_length_first: bool
) -> None:
    stage = HttpHarness()
    fields = [b"Content-Length: %d\r\n" % length, b"Transfer-Encoding: chunked\r\n"]
    head = b"POST /echo/a HTTP/1.1\r\nHost: x\r\n" + b"".join(fields[:: 1 if is_length_first else -1])
    stage.send(get("before") + head + b"\r\n3\r\nabc\r\n0\r\n\r\n" + get("smuggled") * 2, pieces_of)
    assert [answer.body for answer in stage.answers] == [b"before", b"abc"]
    assert stage.answers[1].fields[b"connection"] == b"close"
    assert stage.is_closed
    stage.check_nothing_is_left()


@pytest.mark.parametrize("pieces_of", [None, 1000, 65536])
def test_a_large_body_is_received_in_place_and_the_next_request_is_parsed(pieces_of: int | None) -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(post("a", BIG) + get("next"), pieces_of)
    lease = stage.core.tickets[0].operation.payload.lease
    assert lease is not None
    assert bytes(lease.view[: len(BIG)]) == BIG
    stage.core.tickets[0].echo()
    stage.core.tickets[1].echo()
    assert [answer.body for answer in stage.answers] == [BIG, b"next"]
    assert stage.lent == 0
    stage.check_nothing_is_left()


@pytest.mark.parametrize("pieces_of", [None, 1000, 65536])
def test_a_repeated_head_of_large_bodies_is_recalled_with_its_own_body(pieces_of: int | None) -> None:
    stage = HttpHarness()
    bodies = [bytes([number]) * len(BIG) for number in range(4)]
    for body in bodies:
        stage.send(post("a", body), pieces_of)
    stage.send(post("a", b"small") + get("next"), pieces_of)
    assert [answer.body for answer in stage.answers] == [*bodies, b"small", b"next"]
    assert stage.lent == 0
    stage.check_nothing_is_left()


def test_the_last_read_of_a_large_body_asks_for_more_than_there_is() -> None:
    """A transport that gets less than it asks for need not ask again."""
    stage = HttpHarness()
    for _ in range(2):
        request = post("a", BIG)
        stage.send(request[:-1000])
        assert len(stage.connection.get_buffer(-1)) == 1001
        stage.send(request[-1000:])
    assert [answer.body for answer in stage.answers] == [BIG, BIG]
    stage.check_nothing_is_left()


@pytest.mark.parametrize(
    ("behind", "statuses", "is_closed"),
    [
        (b"G", [200], False),
        (b"GE", [200], False),
        (b"\r\n" + get("next"), [200, 200], False),
        (b"\r\n" + post("a", BIG) + get("next"), [200, 200, 200], False),
        (post("a", b"small")[:-1], [200], False),
        (b"\0", [200, 400], True),
        (b"\0" + get("next"), [200, 400], True),
    ],
)
@pytest.mark.parametrize("is_recalled", [False, True])
def test_what_comes_with_the_end_of_a_large_body_is_the_next_request(
    behind: bytes, statuses: list[int], is_closed: bool, is_recalled: bool
) -> None:
    stage = HttpHarness()
    if is_recalled:
        stage.send(post("a", BIG))
    stage.send(post("a", BIG) + behind)
    assert stage.statuses == [200] * is_recalled + statuses
    assert stage.is_closed is is_closed
    assert stage.lent == 0
    stage.check_nothing_is_left()


def test_behind_a_large_body_that_closes_anything_may_come() -> None:
    stage = HttpHarness()
    stage.send(post("a", BIG).replace(b"Host", b"Connection: close\r\nHost") + b"\0")
    assert stage.statuses == [200]
    assert stage.is_closed
    stage.check_nothing_is_left()


def test_pipelined_large_bodies_with_one_head_wait_their_turn() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    bodies = [bytes([number]) * len(BIG) for number in range(4)]
    stage.send(post("a", bodies[0]))
    stage.core.tickets[0].echo()
    stage.send(b"".join(post("a", body) for body in bodies[1:]))
    for number in range(1, 4):
        stage.core.tickets[number].echo()
        stage.read()
    assert [answer.body for answer in stage.answers] == bodies
    assert stage.lent == 0
    stage.check_nothing_is_left()


def test_the_lease_is_kept_until_the_answer_has_left() -> None:
    stage = HttpHarness()
    stage.send(get("first"))
    stage.transport.is_stuck = True
    stage.send(post("a", BIG))
    assert stage.core.tickets[1].is_over
    assert stage.lent == 1
    stage.flush(10)
    assert stage.lent == 1
    stage.flush()
    assert stage.lent == 0
    assert stage.answers[1].body == BIG
    stage.check_nothing_is_left()


def test_a_lease_that_cannot_be_had_is_refused() -> None:
    stage = HttpHarness()
    stage.send(post("unlendable", BIG))
    assert stage.statuses == [503]
    assert stage.is_closed
    stage.check_nothing_is_left()


def test_answers_keep_their_order_and_one_request_is_in_work() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(get("a") + get("b") + get("missing") + get("c"))
    assert [ticket.operation.model for ticket in stage.core.tickets] == ["a"]
    assert not stage.transport.reads
    stage.core.tickets[0].echo()
    assert [ticket.operation.model for ticket in stage.core.tickets] == ["a", "b"]
    stage.core.tickets[1].echo()
    stage.core.tickets[2].echo()
    assert [answer.body for answer in stage.answers] == [b"a", b"b", b"no such verb", b"c"]
    assert stage.transport.reads


def test_a_pipelined_large_body_waits_its_turn_in_the_kernel() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(get("a") + post("b", BIG) + post("c", BIG))
    assert len(stage.kernel) > 400_000
    assert stage.lent == 0
    stage.core.tickets[0].echo()
    stage.read()
    assert stage.lent == 1
    stage.core.tickets[1].echo()
    stage.read()
    stage.core.tickets[2].echo()
    assert [len(answer.body) for answer in stage.answers] == [1, len(BIG), len(BIG)]
    stage.check_nothing_is_left()


def test_head_is_answered_like_get_without_the_body() -> None:
    stage = HttpHarness()
    request = get("abc").replace(b"GET", b"HEAD")
    stage.send(request)
    stage.send(request)  # recalled
    first, second = read_answers(bytes(stage.transport.sent), asked_by_head=True)
    assert first.fields[b"content-length"] == second.fields[b"content-length"] == b"3"


@pytest.mark.parametrize(("fields", "stays"), [(b"", False), (b"Connection: Keep-Alive\r\n", True)])
def test_http10(fields: bytes, stays: bool) -> None:
    stage = HttpHarness()
    stage.send(b"GET /echo/a HTTP/1.0\r\n" + fields + b"\r\n")
    assert stage.answers[0].fields[b"connection"] == (b"keep-alive" if stays else b"close")
    assert stage.is_closed is not stays


def test_an_answer_may_say_that_its_connection_stays_open() -> None:
    stage = HttpHarness(HttpLimits(says_keep_alive=True))
    stage.send(get("a") + get("b", b"Connection: close\r\n"))
    assert [answer.fields[b"connection"] for answer in stage.answers] == [b"keep-alive", b"close"]
    assert stage.is_closed


def test_an_answer_in_parts_may_say_so_too() -> None:
    stage = HttpHarness(HttpLimits(says_keep_alive=True), FakeCore(is_prompt=False))
    stage.send(get("a"))
    (ticket,) = stage.core.tickets
    ticket.say(b"1")
    ticket.say(b"2", final=True)
    (answer,) = stage.answers
    assert (answer.fields[b"connection"], answer.body) == (b"keep-alive", b"12")


def test_connection_close_ends_it_and_what_follows_is_ignored() -> None:
    stage = HttpHarness()
    stage.send(get("a", b"Connection: close\r\n") + get("b") + b"rubbish")
    assert [answer.body for answer in stage.answers] == [b"a"]
    assert stage.answers[0].fields[b"connection"] == b"close"
    assert stage.transport.is_gone


@pytest.mark.parametrize("verb", ["a", "costly"])
def test_expect_100_continue(verb: str) -> None:
    stage = HttpHarness()
    whole = post(verb, BIG, b"Expect: 100-Continue\r\n")
    head, body = whole[: -len(BIG)], whole[-len(BIG) :]
    stage.send(head, pieces_of=10)
    assert stage.statuses == [100]
    stage.send(body)
    stage.decode_all()
    assert stage.statuses == [100, 200]
    stage.send(get("next"))
    assert stage.statuses == [100, 200, 200]
    stage.check_nothing_is_left()


def test_no_continue_for_a_body_that_has_begun_nor_before_its_turn() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    expecting = post("b", b"xyz", b"Expect: 100-continue\r\n")
    stage.send(get("a") + expecting[:-3])
    assert stage.statuses == []
    stage.core.tickets[0].echo()
    assert stage.statuses == [200, 100]
    stage.send(b"xyz")
    stage.core.tickets[1].echo()
    stage.send(expecting)
    stage.core.tickets[2].echo()
    assert stage.statuses == [200, 100, 200, 200]


@pytest.mark.parametrize("pieces_of", [None, 1])
@pytest.mark.parametrize("kind", ["websocket", "h2c", "h2c with a body", "h2c with chunks"])
def test_an_upgrade_is_answered_as_http11(kind: str, pieces_of: int | None) -> None:
    fields = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    match kind:
        case "websocket":
            request = get("a", b"Connection: Upgrade\r\nUpgrade: websocket\r\n")
        case "h2c":
            request = get("a", fields)
        case "h2c with a body":
            request = post("x", b"a", fields)
        case _:
            chunks = b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
            request = b"POST /echo/x HTTP/1.1\r\nHost: x\r\n" + fields + chunks
    stage = HttpHarness()
    stage.send(request + get("next") + request * 3, pieces_of)
    assert [answer.body for answer in stage.answers] == [b"a", b"next", b"a", b"a", b"a"]


def test_a_stream_of_upgrades_does_not_exhaust_the_stack() -> None:
    stage = HttpHarness()
    stage.send(get("a", b"Connection: upgrade\r\nUpgrade: x\r\n") * 1000)
    assert stage.statuses == [200] * 1000


def test_an_answer_in_parts_goes_out_in_chunks() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(get("a") + get("b"))
    ticket = stage.core.tickets[0]
    ticket.say(b"one")
    ticket.say(b"")
    ticket.say(b"two" * 40_000)
    ticket.say(b"", final=True)
    stage.core.tickets[1].echo()
    assert [answer.body for answer in stage.answers] == [b"one" + b"two" * 40_000, b"b"]


def test_in_http10_an_answer_in_parts_ends_with_the_connection() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(b"GET /echo/a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    stage.core.tickets[0].say(b"one")
    stage.core.tickets[0].say(b"two", final=True)
    assert stage.answers[0].body == b"onetwo"
    assert stage.answers[0].fields[b"connection"] == b"close"
    assert stage.is_closed


def test_an_answer_in_parts_to_head_has_no_chunks() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(get("a").replace(b"GET", b"HEAD"))
    stage.core.tickets[0].say(b"one")
    stage.core.tickets[0].say(b"two", final=True)
    assert stage.transport.sent.endswith(b"\r\n\r\n")
    assert b"one" not in stage.transport.sent
    assert not stage.is_closed


def test_costly_decoding_happens_elsewhere_and_in_order() -> None:
    stage = HttpHarness()
    stage.send(post("costly", b"abc") + get("next"))
    assert stage.statuses == []
    stage.decode_all()
    assert [answer.body for answer in stage.answers] == [b"abc", b"next"]


def test_a_client_that_leaves_while_its_body_is_decoded() -> None:
    stage = HttpHarness()
    stage.send(post("costly", BIG))
    stage.leave()
    assert stage.lent == 1, "the thread still reads it"
    stage.decode_all()
    assert stage.core.tickets == []
    stage.check_nothing_is_left()


def test_an_absolute_target_and_a_query() -> None:
    stage = HttpHarness()
    stage.send(b"GET http://h:1/echo/a?b=c HTTP/1.1\r\nHost: h:1\r\n\r\n")
    assert stage.answers[0].body == b"a"


def test_parts_behind_one_that_is_written_elsewhere_wait_for_it() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(post("a", b"x") + get("b"))
    ticket = stage.core.tickets[0]
    ticket.say(b"first ")
    ticket.say(b"slowly")
    ticket.say(b" last", final=True)
    assert len(stage.core.tickets) == 1
    stage.decode_all()
    stage.core.tickets[1].echo()
    assert [answer.body for answer in stage.answers] == [b"first slowly last", b"b"]
    stage.check_nothing_is_left()


def test_a_client_that_leaves_while_its_answer_is_written_elsewhere() -> None:
    stage = HttpHarness()
    stage.send(post("a", b"slowly"))
    assert stage.statuses == []
    stage.leave()
    stage.check_nothing_is_left()


class HeadSpy(EchoProtocol):
    """Keeps the heads that it is asked about."""

    def __init__(self) -> None:
        self.heads: list[Head] = []

    def head(self, head: Head) -> Target:
        self.heads.append(head)
        return super().head(head)


def test_of_a_field_that_comes_again_both_all_values_and_the_last_are_known() -> None:
    stage, spy = HttpHarness(), HeadSpy()
    stage.site.routes = {"echo": spy}
    stage.send(get("a", b"X-A: 1\r\nx-a:  2 \r\nX-B: 3\r\n"))
    stage.send(get("b"))
    assert [head.headers.get(b"x-a") for head in spy.heads] == [b"1, 2", None]
    assert [head.last for head in spy.heads] == [{b"x-a": b"2"}, {}]
    assert spy.heads[0].spelt() == {"Host": "x", "x-a": "2", "X-B": "3"}
