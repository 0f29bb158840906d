"""Takes connections over TLS: a handshake counts as a connection, and each has the certificates that are in force.

Source: RFC 9113, section 9.2; gRPC takes "h2" by ALPN and nothing else. Decides who may begin a handshake. Must not
know what is said behind it.
"""

import asyncio
import logging
import os
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import cast

from trivium.frontends.shares import Addresses, address_of, has_room
from trivium.tls import Tls

_log = logging.getLogger(__name__)


def context_of(tls: Tls, protocol: str) -> ssl.SSLContext:
    """Make the context of a server that speaks `protocol`, by its name in ALPN; with authorities, clients have to show
    a certificate of theirs.
    """
    context = tls.context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols([protocol])
    return context


class TlsDoor:
    """Shakes hands with whoever connects to one listener, and lets them in to the protocol that `make` makes. Used on
    the loop only; `protocol` is for the loop's servers.
    """

    def __init__(
        self, tls: Callable[[], Tls], alpn: str, seconds: float, make: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        """`tls` returns what is in force; `seconds` are for one handshake."""
        self._tls = tls
        self._alpn = alpn
        self._seconds = seconds
        self._make = make
        self._read = tls()
        self._context = context_of(self._read, alpn)
        self._under_way: set[asyncio.Task[None]] = set()
        self._from: Counter[str] = Counter()
        self._limit = 0
        self._inside: Callable[[], int] = int
        self._addresses = Addresses()

    def bound(self, limit: int, inside: Callable[[], int], addresses: Addresses) -> None:
        """Let so many in at most: those who are `inside`, and handshakes. An address may have its share of them."""
        self._limit, self._inside, self._addresses = limit, inside, addresses

    def protocol(self) -> asyncio.BaseProtocol:
        """Make the protocol of a new connection, which does not last."""
        return _Arrival(self._arrive)

    def cut(self) -> None:
        """Break off all handshakes."""
        for task in self._under_way:
            task.cancel()

    async def close(self) -> None:
        """Break off all handshakes, and wait until they are gone."""
        self.cut()
        if self._under_way:
            await asyncio.wait(tuple(self._under_way))

    def _arrive(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection from the transport: the handshake needs one that has read nothing."""
        address = address_of(transport.get_extra_info("peername"))
        own = self._addresses.connections_from(address) + self._from[address]
        if has_room(self._limit, self._inside() + len(self._under_way), own):
            try:
                plug = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
            except OSError as error:
                _log.warning("a connection cannot be taken: %s", error)
            else:
                self._from[address] += 1
                task = asyncio.get_running_loop().create_task(self._shake(plug))
                self._under_way.add(task)
                task.add_done_callback(lambda task: self._forget(task, address))
        cast(asyncio.Transport, transport).abort()

    async def _shake(self, plug: socket.socket) -> None:
        try:
            plug.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make, plug, ssl=self._current(), ssl_handshake_timeout=self._seconds
            )
        except (OSError, ValueError) as error:
            _log.debug("a handshake failed: %s", error)
            plug.close()
        except asyncio.CancelledError:
            plug.close()
            raise

    def _forget(self, task: "asyncio.Task[None]", address: str) -> None:
        self._under_way.discard(task)
        self._from[address] -= 1
        if not self._from[address]:
            del self._from[address]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a connection over TLS failed", exc_info=error)

    def _current(self) -> ssl.SSLContext:
        tls = self._tls()
        if tls is not self._read:
            self._context = context_of(tls, self._alpn)
            self._read = tls
        return self._context


class _Arrival(asyncio.Protocol):
    """Hands its transport on at once."""

    def __init__(self, arrive: Callable[[asyncio.BaseTransport], None]) -> None:
        self._arrive = arrive

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._arrive(transport)
