"""A gRPC call with one request and one response, from its message to what shall be sent.

Decides what an answer, a cancellation and a deadline mean for this call; calls nothing of grpcio.
"""

import asyncio

from trivium.frontends.grpc_site import GrpcSite
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import Ticket
from trivium.types.operations import ResponsePart
from trivium.types.wire import Call, RpcAnswer

CANCELLED = ServeError(Code.CANCELLED, "The client cancelled the call, left, or stopped waiting for it.")
LATE = ServeError(Code.EXPIRED, "The client's deadline passed before its answer.")
ANSWERED = ServeError(Code.CANCELLED, "The call has been answered; what follows cannot be sent.")

_SLACK, _ON_ITS_WAY = 0.1, 0.02
"""How much of its timeout, and how many seconds, a client's deadline may be ahead of ours."""


def why_reset(timeout: float | None, waited: float) -> ServeError:
    """Why a call ends that its client reset, or left, after `waited` of the `timeout` seconds that it gave (None: it
    waits for ever).

    A client resets its call at its own deadline, which it mostly reaches before us: our time begins when the head of
    the call is here, and grpc rounds a timeout of more than a second up, by as much as 1 % (measured with grpcio 1.85).
    That is late, and counts as such, whichever of both tells first.
    """
    if timeout is not None and waited >= (1 - _SLACK) * timeout - _ON_ITS_WAY:
        return LATE
    return CANCELLED


def reset_status(why: ServeError) -> int:
    """What the access log says of such a call: as it is counted, gRPC's DEADLINE_EXCEEDED or CANCELLED."""
    return 4 if why is LATE else 1


async def answer(site: GrpcSite, call: Call, message: bytes) -> RpcAnswer:
    """What to send: a message or a status. Cancelled, it cancels what runs."""
    size = len(message)
    try:
        site.reserve(size)
    except ServeError as error:
        return site.refuse(call, error)
    try:
        return await _answer(site, call, message)
    except Exception as error:
        return site.refuse(call, error)
    finally:
        site.unreserve(size)


async def _answer(site: GrpcSite, call: Call, message: bytes) -> RpcAnswer:
    loop = asyncio.get_running_loop()
    began = loop.time()
    operation, encoder = site.protocol.decode(call, message)
    done: asyncio.Future[RpcAnswer] = loop.create_future()
    ticket: Ticket | None = None
    is_early = False  # the answer is complete before the core's last part

    def take(part: ResponsePart) -> None:
        nonlocal is_early
        if done.done():
            return
        try:
            said = encoder.encode(part)
        except Exception as error:
            said = site.refuse(call, error)
        if not said.final:
            return
        done.set_result(said)
        is_early = not part.final
        if is_early and ticket is not None:
            ticket.cancel(ANSWERED)

    ticket = site.core.submit(operation, take)
    if is_early:
        ticket.cancel(ANSWERED)
    try:
        return done.result() if done.done() else await done
    except asyncio.CancelledError:
        ticket.cancel(why_reset(call.timeout, loop.time() - began))
        raise
