"""Asks the system whether the other end of a connection is still there, where the loop does not hear of it.

A loop hears that a client has left when it reads; while nothing is read, this has to be asked.
"""

from enum import Enum
from select import POLLRDHUP, poll
from typing import Any


class Departure(Enum):
    """Names how far a client has left: not at all; it sends no more, which may be all; its connection is gone."""

    STAYS = "stays"
    SENDS_NO_MORE = "sends no more"
    GONE = "gone"


def departure_of(plug: Any) -> Departure:
    """Return how far the client at the other end of a socket has left, over TCP or a Unix socket. Reads nothing."""
    looker = poll()
    looker.register(plug.fileno(), POLLRDHUP)
    signs = looker.poll(0)
    if not signs:
        return Departure.STAYS
    return Departure.SENDS_NO_MORE if signs[0][1] == POLLRDHUP else Departure.GONE
