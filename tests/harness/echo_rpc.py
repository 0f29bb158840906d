"""A protocol for the tests: a request is `verb text`, its answer the text, or what the test says as the core; one that
begins with `slowly` takes long to write.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tests.harness.fake_core import FakeCore, FakeTicket

from trivium.frontends.h2.frontend import H2Frontend
from trivium.frontends.h2.shared import Shared
from trivium.frontends.h2.state import GrpcLimits, GrpcState
from trivium.types.access import AccessScope
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import RpcEncoder, Sink
from trivium.types.listeners import BindAddress
from trivium.types.operations import Infer, Operation, ResponsePart
from trivium.types.payload import Raw, RawPart
from trivium.types.wire import RpcAnswer, RpcCall, RpcKind, costly_rpc

SERVICE = "test.Echo"
UNARY, STREAM, SERVER_STREAM = "/test.Echo/Unary", "/test.Echo/Stream", "/test.Echo/ServerStream"
KINDS = {UNARY: RpcKind.UNARY, STREAM: RpcKind.STREAM, SERVER_STREAM: RpcKind.SERVER_STREAM}


class EchoRpc:
    """Verbs that begin with `crash` are faults of the server's own."""

    def kind(self, method: str) -> RpcKind:
        if method not in KINDS:
            raise ServeError(Code.UNSUPPORTED, f"no RPC {method}")
        return KINDS[method]

    def scope(self, method: str) -> AccessScope:
        return AccessScope.INFER

    def admit(self, call: RpcCall) -> None:
        if "locked" in call.metadata:
            raise ServeError(Code.INVALID, "locked")

    def is_costly(self, call: RpcCall, message: bytes) -> bool:
        return b"costly" in message

    def decode(self, call: RpcCall, message: bytes) -> tuple[Operation, RpcEncoder]:
        verb, _, text = bytes(message).partition(b" ")
        if verb == b"bad":
            raise ServeError(Code.INVALID, "bad message")
        if verb == b"crash":
            raise RuntimeError("a fault in decode")
        return Infer(verb.decode("latin-1"), Raw((RawPart(text),)), deadline=call.timeout), self

    def encode(self, part: ResponsePart) -> RpcAnswer:
        if part.error is not None:
            return self.refuse(RpcCall(""), part.error)
        assert isinstance(part.payload, Raw)
        text = bytes(part.payload.parts[0].data)
        if text == b"crash":
            raise RuntimeError("a fault in encode")
        said = RpcAnswer(text, part.final or text == b"enough")
        return costly_rpc(lambda: _written(said)) if text.startswith(b"slowly") else said

    def refuse(self, call: RpcCall, error: ServeError) -> RpcAnswer:
        if call.method == STREAM and "locked" not in call.metadata:
            return RpcAnswer(f"error: {error.message}".encode())
        return RpcAnswer(code=12 if error.code is Code.UNSUPPORTED else 3, details=error.message)


def _written(said: RpcAnswer) -> RpcAnswer:
    if said.message == b"slowly crash":
        raise RuntimeError("a fault in write")
    return said


class FakeTime:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class FakeThreads(list[tuple[Callable[[], bytes], Callable[[bytes | Exception], None]]]):
    """What is to be done in them, when the test says so."""

    def __call__(self, work: Callable[[], bytes], done: Callable[[bytes | Exception], None]) -> None:
        self.append((work, done))

    def run(self) -> None:
        while self:
            work, done = self.pop(0)
            try:
                result: bytes | Exception = work()
            except Exception as error:
                result = error
            done(result)


def shared(core: FakeCore, time: FakeTime, threads: FakeThreads, **limits: Any) -> Shared:
    """What connections share, over that core."""
    site = GrpcState(core, {SERVICE: EchoRpc()}, GrpcLimits(**limits))
    return Shared(site, time, lambda: 1e9, threads, asyncio.Event())


class ScriptedCore(FakeCore):
    """Answers `count` thrice, `fail` once and then with an error, all else once and then not until it is cancelled."""

    def submit(self, operation: Operation, sink: Sink) -> FakeTicket:
        ticket = super().submit(operation, sink)
        if isinstance(operation, Infer):
            asyncio.get_running_loop().call_soon(_play, operation.model, ticket)
        return ticket


def _play(verb: str, ticket: FakeTicket) -> None:
    if verb == "count":
        for number in range(3):
            ticket.say(b"%d" % number, final=number == 2)
    else:
        ticket.say(b"first")
        if verb == "fail":
            ticket.answer(ResponsePart(error=ServeError(Code.INVALID, "the second failed")))


@contextlib.contextmanager
def echo_server() -> Iterator[tuple[str, ScriptedCore]]:
    """A front end with this service on a free port of loopback, on a loop in a thread: its address, and its core."""
    core = ScriptedCore(is_prompt=False)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> tuple[H2Frontend, BindAddress]:
        front = H2Frontend(core, {SERVICE: EchoRpc()}, GrpcLimits())
        return front, await front.start(BindAddress("127.0.0.1"))

    try:
        front, bind = asyncio.run_coroutine_threadsafe(start(), loop).result(60)
        yield str(bind), core
        asyncio.run_coroutine_threadsafe(front.close(), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
