"""Hostile clients on real sockets against a real front end; `loopback` checks what they leave behind."""

import asyncio
import contextlib
import gc
import resource
import socket
import time
from pathlib import Path

import pytest
import uvloop
from tests.harness.fake_core import EchoProtocol
from tests.harness.http_client import get, post, read_answers
from tests.harness.loopback import BIG, PROCESS, Served, StubCore, all_that_comes, leave, run, until

from trivium.frontends.http.frontend import HttpFrontend
from trivium.frontends.limits import HttpLimits
from trivium.types.listeners import BindAddress


@pytest.mark.parametrize("size", [100, len(BIG)])
def test_a_body_cut_short(size: int) -> None:
    async def scene(stub: Served) -> None:
        half = post("echo", BIG[:size])[: -size // 2]
        status, text = await stub.ask(half)
        assert status == 400
        assert b"cut short" in text
        _, writer = await asyncio.open_connection("127.0.0.1", stub.port)
        writer.write(half)
        await writer.drain()
        await leave(writer, by_reset=True)

    run(HttpLimits(), scene)


def test_a_header_of_a_megabyte_gets_to_read_why() -> None:
    async def scene(stub: Served) -> None:
        for request in (get("echo", b"X: " + b"a" * 1_000_000 + b"\r\n"), get("a" * 1_000_000)):
            reader, writer = await asyncio.open_connection("127.0.0.1", stub.port)
            writer.write(request)
            status = read_answers(await all_that_comes(reader))[0].status
            assert status in (414, 431)
            await leave(writer)

    run(HttpLimits(), scene)


@pytest.mark.parametrize("size", [3, len(BIG) * 8])
def test_a_body_beyond_the_limit_gets_to_read_why(size: int) -> None:
    async def scene(stub: Served) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", stub.port)
        writer.write(b"POST /echo/echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (size))
        writer.write(bytes(size))
        answer = read_answers(await all_that_comes(reader))[0]
        assert answer.status == 413
        assert answer.fields[b"connection"] == b"close"
        await leave(writer)

    run(HttpLimits(body_bytes=2), scene, takes_bodies=False)


@pytest.mark.parametrize(
    "start", [b"", get("echo")[:10], post("echo", b"x" * 100)[:-100], post("echo", BIG)[:70_000]]
)
def test_a_byte_at_a_time(start: bytes) -> None:
    async def scene(stub: Served) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", stub.port)
        writer.write(start)
        answer = asyncio.create_task(all_that_comes(reader))
        source = iter(get("echo", b"X: " + b"y" * 1000 + b"\r\n") if not start else b"A" * 1000)
        while not answer.done():
            writer.write(bytes([next(source)]))  # raises StopIteration where it waits for all of it
            await asyncio.sleep(0.1)
        assert read_answers(await answer)[0].status == 408
        await leave(writer)

    run(HttpLimits(header_seconds=1, body_seconds=1, slowest_rate=1_000_000, linger_seconds=0.5), scene)


def test_a_client_that_never_reads() -> None:
    async def scene(stub: Served) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", stub.port, limit=1)
        writer.transport.pause_reading()
        writer.write(post("echo", BIG * 4))
        await until(lambda: stub.lent == 1)
        await until(lambda: not stub.frontend.debug_state().connections)
        assert stub.lent == 0
        await leave(writer)

    run(HttpLimits(write_seconds=1), scene)


def test_forty_pipelined_requests_of_four_megabytes_and_nothing_read() -> None:
    async def scene(stub: Served) -> None:
        await stub.ask(post("echo", BIG))
        gc.collect()
        before = PROCESS.memory_info().rss
        request = post("echo", BIG)
        plug = socket.create_connection(("127.0.0.1", stub.port))
        plug.setblocking(False)
        sending = asyncio.create_task(send_all(plug, request, 40))
        await asyncio.sleep(2)
        assert not sending.done(), "the server took all of it"
        assert stub.lent <= 1
        growth = PROCESS.memory_info().rss - before
        assert growth < 64 * 2**20, f"grew by {growth / 2**20:.0f} MiB"
        received = 0
        whole = len(read_whole_answer(request)) * 40
        while received < whole:
            received += len(await asyncio.get_running_loop().sock_recv(plug, 2**20))
        await sending
        assert received == whole
        plug.close()

    run(HttpLimits(), scene)


async def send_all(plug: socket.socket, request: bytes, times: int) -> None:
    for _ in range(times):
        await asyncio.get_running_loop().sock_sendall(plug, request)


def read_whole_answer(request: bytes) -> bytes:
    body = request.partition(b"\r\n\r\n")[2]
    return b"HTTP/1.1 200 OK\r\nX-Echo: 1\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def test_two_thousand_idle_connections_cost_next_to_nothing() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 5000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"this machine allows {hard} descriptors, and {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))

    async def scene(stub: Served) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as stack:
            plugs = [stack.enter_context(socket.socket()) for _ in range(2000)]
            for plug in plugs:
                plug.setblocking(False)
                await loop.sock_connect(plug, ("127.0.0.1", stub.port))
            await until(lambda: stub.frontend.debug_state().connections == 2000)
            await until(lambda: stub.frontend.debug_state().is_asleep)  # asleep, for all of them are idle
            used, began = time.process_time(), time.monotonic()
            await asyncio.sleep(3)
            assert (time.process_time() - used) / (time.monotonic() - began) < 0.05
            await loop.sock_sendall(plugs[777], get("echo"))
            answer = await loop.sock_recv(plugs[777], 1000)
            assert answer.endswith(b"\r\n\r\necho")
            assert (await stub.ask(get("echo")))[0] == 200

    try:
        run(HttpLimits(), scene)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_one_connection_too_many_is_told_so() -> None:
    async def scene(stub: Served) -> None:
        plugs = [await asyncio.open_connection("127.0.0.1", stub.port) for _ in range(3)]
        await until(lambda: stub.frontend.debug_state().connections == 3)
        assert (await stub.ask(b""))[0] == 503
        for _, writer in plugs:
            await leave(writer)
        await until(lambda: not stub.frontend.debug_state().connections)

    run(HttpLimits(connections=3), scene)


def test_a_thousand_cancelled_requests() -> None:
    async def scene(stub: Served) -> None:
        for turn in range(20):
            plugs = [await asyncio.open_connection("127.0.0.1", stub.port) for _ in range(50)]
            for number, (_, writer) in enumerate(plugs):
                is_pipelining = turn == 0 and number % 5 == 0  # a reset behind unread bytes is noticed later
                writer.write(
                    post("never", BIG[:100_000]) if number % 2 else get("never") * (1 + is_pipelining)
                )
            await until(lambda: sum(not ticket.is_over for ticket in stub.core.tickets) == 50)
            for _, writer in plugs:
                await leave(writer, by_reset=True)
            await until(lambda: all(ticket.is_over for ticket in stub.core.tickets))
        assert len(stub.core.tickets) == 1000
        assert all(ticket.cancelled is not None for ticket in stub.core.tickets)

    run(HttpLimits(), scene)


def test_who_closes_its_side_is_served_if_its_answer_begins_soon() -> None:
    async def scene(stub: Served) -> None:
        assert await stub.ask(post("slow", b"abc")) == (200, b"abc")
        assert await stub.ask(post("slow", BIG)) == (200, BIG)

    run(HttpLimits(), scene)


@pytest.mark.parametrize("pipelined", [1, 3])
def test_who_closes_its_side_or_all_is_cancelled_if_its_answer_does_not_begin(pipelined: int) -> None:
    """With three requests nothing is read of the connection when its end comes."""

    async def scene(stub: Served) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", stub.port)
        writer.write(get("never") * pipelined)
        writer.write_eof()
        _, other = await asyncio.open_connection("127.0.0.1", stub.port)
        other.write(get("never") * pipelined)
        await until(lambda: len(stub.core.tickets) == 2)
        await leave(other)
        await until(lambda: all(ticket.is_over for ticket in stub.core.tickets))
        assert all(ticket.cancelled is not None for ticket in stub.core.tickets)
        assert len(stub.core.tickets) == 2, "what is behind one that has left is not begun"
        assert b"the client closed its sending side" in await all_that_comes(reader)
        await leave(writer)

    run(HttpLimits(half_close_seconds=0.5), scene)


def test_neighbours_of_rubbish_are_answered() -> None:
    async def scene(stub: Served) -> None:
        good = [stub.ask(post("slow", b"%d" % number)) for number in range(50)]
        bad = [stub.ask(b"\x16\x03\x01" + b"%d" % number) for number in range(50)]
        answers = await asyncio.gather(*good, *bad)
        assert answers[:50] == [(200, b"%d" % number) for number in range(50)]
        assert {status for status, _ in answers[50:]} == {400}

    run(HttpLimits(), scene)


def test_costly_bodies_are_decoded_in_threads() -> None:
    async def scene(stub: Served) -> None:
        request = post("echo/costly", BIG)
        answers = await asyncio.gather(*(stub.ask(request) for _ in range(20)))
        assert answers == [(200, BIG)] * 20
        for _ in range(20):
            _, writer = await asyncio.open_connection("127.0.0.1", stub.port)
            writer.write(request)
            await writer.drain()
            await leave(writer, by_reset=True)

    run(HttpLimits(), scene)


def test_draining_finishes_what_it_can_and_reports_the_rest() -> None:
    async def scene() -> None:
        core = StubCore(is_prompt=False)
        stub = Served(None, core, 0)  # type: ignore[arg-type]
        limits = HttpLimits()
        stub.frontend = HttpFrontend(core, {"echo": EchoProtocol()}, EchoProtocol(), limits)
        stub.port = (await stub.frontend.start(BindAddress("127.0.0.1"))).port
        idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", stub.port)
        asked = [asyncio.create_task(stub.ask(get("slow"))) for _ in range(5)]
        lost_reader, lost_writer = await asyncio.open_connection("127.0.0.1", stub.port)
        lost_writer.write(get("never?x=y"))
        await until(lambda: len(core.tickets) == 6)
        began = time.monotonic()
        report = await stub.frontend.drain(1.0)
        assert time.monotonic() - began > 0.9
        assert report.answered == 5
        assert len(report.unfinished) == 1
        assert report.unfinished[0].startswith("GET /echo/never (")
        assert [await task for task in asked] == [(200, b"slow")] * 5
        assert await all_that_comes(idle_reader) == b""
        assert b"went down before this request was done" in await all_that_comes(lost_reader)
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", stub.port)
        await leave(idle_writer)
        await leave(lost_writer)
        await stub.frontend.close()
        assert all(ticket.is_over for ticket in core.tickets)

    uvloop.run(scene())


def test_a_port_that_is_taken_is_the_callers_to_explain() -> None:
    async def scene(stub: Served) -> None:
        second = HttpFrontend(stub.core, {}, EchoProtocol(), HttpLimits())
        with pytest.raises(OSError, match=r"in use|98"):
            await second.start(BindAddress("127.0.0.1", stub.port))
        await second.close()

    run(HttpLimits(), scene)


def test_a_unix_socket_is_served_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "http.sock"

    async def scene(stub: Served) -> None:
        front = HttpFrontend(StubCore(), {"echo": EchoProtocol()}, EchoProtocol(), HttpLimits())
        assert await front.start(BindAddress(path=str(path))) == BindAddress(path=str(path))
        second = HttpFrontend(stub.core, {}, EchoProtocol(), HttpLimits())
        with pytest.raises(OSError, match="in use"):
            await second.start(BindAddress(path=str(path)))
        await second.close()
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(get("hello"))
        writer.write_eof()
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        await leave(writer)
        await front.close()
        assert not path.exists()

    run(HttpLimits(), scene)
