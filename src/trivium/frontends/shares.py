"""Divides what a front end has room for among its clients, so that no one of them takes everybody's.

Decides when a share is bounded: that of a connection always; that of an address only once a pool is three quarters
full, since a proxy is one address for many clients. Pure, but for the books of `Addresses`.
"""

from trivium.types.shares import LEAST_SHARE, share_of


def has_room(limit: int, taken: int, own: int, more: int = 1, least: int = LEAST_SHARE) -> bool:
    """Return True if a pool of `limit` with `taken` taken has room for `more` for an address that has `own` of
    these.
    """
    after = taken + more
    if after > limit:
        return False
    return after <= limit // 4 * 3 or own + more <= share_of(limit, least)


class AddressUse:
    """Counts what all connections from one address have taken: of connections, calls and bytes of bodies."""

    __slots__ = ("address", "calls", "connections", "held_bytes")

    def __init__(self, address: str = "") -> None:
        self.address = address
        self.connections = 0
        self.calls = 0
        self.held_bytes = 0


def address_of(peername: object) -> str:
    """Return the address in what a socket calls `peername`; empty for a socket of this machine."""
    return str(peername[0]) if isinstance(peername, tuple) else ""


class Addresses:
    """Keeps the use of each address that has a connection. Used on the loop only."""

    def __init__(self) -> None:
        self._uses: dict[str, AddressUse] = {}

    def enter(self, peername: object) -> tuple[str, AddressUse]:
        """A connection has come from there, which a socket calls `peername`; returns the address, for `leave`."""
        address = address_of(peername)
        use = self._uses.get(address)
        if use is None:
            use = self._uses[address] = AddressUse(address)
        use.connections += 1
        return address, use

    def connections_from(self, address: str) -> int:
        """Count the connections from there."""
        use = self._uses.get(address)
        return 0 if use is None else use.connections

    def leave(self, address: str) -> None:
        """The connection is gone. What is still held of its requests stays the address's."""
        use = self._uses[address]
        use.connections -= 1
        self.settle(use)

    def settle(self, use: AddressUse) -> None:
        """Forget an address that has nothing any more."""
        if not use.connections and not use.held_bytes and self._uses.get(use.address) is use:
            del self._uses[use.address]
