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
ANSWERED = ServeError(Code.CANCELLED, "The call has been answered; what follows cannot be sent.")


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
    operation, encoder = site.protocol.decode(call, message)
    done: asyncio.Future[RpcAnswer] = asyncio.get_running_loop().create_future()
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
        ticket.cancel(CANCELLED)
        raise
