"""Keeps the bytes of a request booked until nobody holds them: no client of them, no thread, and not the core.

Decides who holds what: the front end until the request has been answered, the core for as long as its payload lives.
"""

from typing import Protocol

import msgspec

from trivium.frontends.shares import AddressUse
from trivium.types.buffers import Lease
from trivium.types.interfaces import InferenceCore, Sink, Ticket
from trivium.types.operations import Defer, Infer, InferLazily, Operation, ResponsePart
from trivium.types.payload import Tensors

_EMPTY = memoryview(b"")


class BoundedPool(Protocol):
    """Has room for so many bytes of requests."""

    def reserve(self, size: int, use: AddressUse) -> None:
        """Room for so many bytes more; ServeError where there is none."""
        ...

    def unreserve(self, size: int, use: AddressUse) -> None:
        """They are needed no more."""
        ...


class Booking:
    """Implements `Books`: bytes of a pool that one address has taken for one request, `size` of them so far."""

    __slots__ = ("_pool", "_size", "_use")

    def __init__(self, pool: BoundedPool, use: AddressUse, size: int) -> None:
        self._pool = pool
        self._use = use
        self._size = size

    def add(self, size: int) -> None:
        """See `Books`."""
        self._pool.reserve(size, self._use)
        self._size += size

    def close(self) -> None:
        """See `Books`."""
        self._pool.unreserve(self._size, self._use)


def message_lease(pool: BoundedPool, use: AddressUse, size: int) -> Lease:
    """Return the lease of a message for which so many bytes are reserved. It keeps none of them: what is read from a
    message is a copy, which takes its place.
    """
    lease = Lease(_EMPTY, nothing)
    lease.enter(Booking(pool, use, size), size)
    return lease


def submit(core: InferenceCore, operation: Operation, sink: Sink, lease: Lease) -> Ticket:
    """Submit an operation that was read from these bytes: they stay held until the core has dropped what it runs, or
    has said its last word on what cannot be cancelled.
    """
    lease.hold()
    if isinstance(operation, Infer | Defer | InferLazily):
        try:
            return core.submit(leased(operation, lease), sink)
        finally:
            lease.release()

    def hear(part: ResponsePart) -> None:
        if part.final:
            lease.release()
        sink(part)

    try:
        return core.submit(operation, hear)
    except BaseException:
        lease.release()
        raise


def leased(operation: Infer | Defer | InferLazily, lease: Lease) -> Infer | Defer | InferLazily:
    """Return the operation with a payload that owns the lease, unless it owns one already."""
    if not isinstance(operation, Infer):
        return msgspec.structs.replace(operation, infer=_leased(operation.infer, lease))
    return _leased(operation, lease)


def _leased(infer: Infer, lease: Lease) -> Infer:
    payload = infer.payload
    if payload.lease is not None:
        return infer
    if isinstance(payload, Tensors):  # they need not lie in it
        return msgspec.structs.replace(infer, payload=Tensors(payload.items, lease))
    return msgspec.structs.replace(infer, payload=msgspec.structs.replace(payload, lease=lease))


def nothing(lease: Lease) -> None:
    """There is nothing to give back."""
