"""Bytes stay booked for as long as anybody holds them: the core and threads, after their clients have left, too."""

import gzip

import numpy as np
import pytest
from tests.harness.echo_rpc import UNARY
from tests.harness.fake_core import FakeCore
from tests.harness.h2_peer import data, prefixed
from tests.harness.h2_session import H2SessionHarness
from tests.harness.http_client import post
from tests.harness.http_connection import HttpHarness

from trivium.frontends.h2 import frames
from trivium.frontends.shares import Addresses

BIG = bytes(200 * 1024)


def in_chunks(verb: str, body: bytes) -> bytes:
    head = f"POST /echo/{verb} HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


@pytest.mark.parametrize("request_of", [post, in_chunks])
def test_a_body_that_the_core_holds_is_booked_after_its_client_has_left(request_of: object) -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(request_of("a", BIG))  # type: ignore[operator]
    (ticket,) = stage.core.tickets
    lease = ticket.operation.payload.lease
    assert lease is not None
    lease.hold()  # as an instance does that runs it
    stage.leave()
    assert ticket.is_over
    assert stage.site.held_bytes == len(BIG)
    stage.connect()
    assert stage.connection.use.held_bytes == len(BIG), "its address has taken nothing"
    lease.release()
    stage.check_nothing_is_left()


def test_an_address_is_forgotten_with_the_last_of_its_bytes() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(post("a", BIG))
    lease = stage.core.tickets[0].operation.payload.lease
    assert lease is not None
    lease.hold()
    use = stage.connection.use
    stage.leave()
    lease.release()
    stage.connect()
    assert stage.connection.use is not use
    stage.check_nothing_is_left()


def test_who_is_forgotten_takes_no_newcomer_along() -> None:
    addresses = Addresses()
    address, old = addresses.enter(("192.0.2.1", 1))
    addresses.leave(address)
    _, new = addresses.enter(("192.0.2.1", 2))
    addresses.settle(old)  # the last of what it held is dropped only now
    assert addresses.enter(("192.0.2.1", 3))[1] is new
    addresses.leave(address)
    addresses.leave(address)
    assert addresses.connections_from(address) == 0


def test_a_body_that_a_thread_reads_is_booked_after_its_client_has_left() -> None:
    stage = HttpHarness()
    stage.send(post("a/costly", BIG))
    stage.leave()
    assert stage.site.held_bytes == len(BIG)
    stage.check_nothing_is_left()


def test_what_is_made_of_a_small_compressed_body_can_be_booked() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    body = gzip.compress(BIG)
    head = b"POST /echo/a HTTP/1.1\r\nHost: t\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )
    stage.send(head + body)
    lease = stage.core.tickets[0].operation.payload.lease
    assert lease is not None
    lease.cover(len(BIG))
    assert stage.site.held_bytes == len(BIG)
    stage.check_nothing_is_left()


def test_a_small_body_costs_no_lease() -> None:
    stage = HttpHarness(core=FakeCore(is_prompt=False))
    stage.send(post("a", b"small"))
    assert stage.core.tickets[0].operation.payload.lease is None
    stage.check_nothing_is_left()


LARGE = b"echo " + bytes(200 * 1024)


def talk() -> H2SessionHarness:
    return H2SessionHarness(FakeCore(is_prompt=False)).greet()


def test_a_message_that_the_core_holds_is_booked_after_its_call_is_reset() -> None:
    stage = talk()
    stage.call(1, UNARY, LARGE)
    (ticket,) = stage.core.tickets
    lease = ticket.operation.payload.lease
    assert lease is not None
    lease.hold()
    stage.say(frames.reset(1, frames.CANCEL))
    assert ticket.is_over
    assert stage.site.held_bytes == len(LARGE)
    lease.release()
    stage.check_nothing_is_left()


def test_a_message_that_a_thread_reads_is_booked_after_its_call_is_reset() -> None:
    stage = talk()
    message = b"echo costly" + LARGE
    stage.call(1, UNARY, message)
    stage.say(frames.reset(1, frames.CANCEL))
    assert stage.site.held_bytes == len(message)
    stage.threads.run()
    assert not stage.core.tickets
    stage.check_nothing_is_left()


def test_a_message_that_is_unpacked_is_booked_after_its_call_is_reset() -> None:
    stage = talk()
    packed = gzip.compress(np.random.default_rng(1).bytes(100_000))
    stage.say(stage.peer.open(1, UNARY, ("grpc-encoding", "gzip")) + data(1, prefixed(packed, 1), ends=True))
    stage.say(frames.reset(1, frames.CANCEL))
    assert stage.site.held_bytes == len(packed)
    stage.threads.run()
    stage.check_nothing_is_left()


def test_a_message_is_booked_while_its_answer_is_written() -> None:
    stage = talk()
    stage.call(1, UNARY, LARGE)
    stage.core.tickets[0].say(b"slowly", final=True)
    stage.say(frames.reset(1, frames.CANCEL))
    assert stage.site.held_bytes == len(LARGE)
    stage.threads.run()
    stage.check_nothing_is_left()


def test_a_refused_message_is_booked_no_longer() -> None:
    stage = talk()
    assert stage.call(1, UNARY, b"bad " + LARGE).status == 3
    assert stage.call(3, UNARY, b"crash " + LARGE).status == 13
    assert stage.call(5, UNARY, b"bad costly" + LARGE).status is None
    stage.threads.run()
    stage.flush()
    assert stage.peer.streams[5].status == 3
    assert stage.site.held_bytes == 0
    stage.check_nothing_is_left()
