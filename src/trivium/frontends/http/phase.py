"""What a connection waits for, and for how long it may."""

from enum import Enum

from trivium.frontends.limits import HttpLimits

NEVER = float("inf")


class Phase(Enum):
    """The value completes the sentence "waiting for ..."."""

    IDLE = "a request"
    HEAD = "the rest of a request's head"
    BODY = "the rest of a request's body"
    WORK = "the core"
    UNSENT = "the client to read"
    CLOSING = "the last bytes to leave and the client to close"
    LOST = "nothing"


IDLE, HEAD, BODY, WORK, UNSENT, CLOSING, LOST = Phase
"""For the path of every request: looking a member up in its class takes ten times as long (Python 3.11)."""


def seconds(phase: Phase, limits: HttpLimits) -> float:
    """From entering the phase to its deadline."""
    if phase is WORK or phase is LOST:
        return NEVER
    if phase is IDLE:
        return limits.idle_seconds
    if phase is HEAD:
        return limits.header_seconds
    if phase is BODY:
        return limits.body_seconds
    return limits.write_seconds if phase is UNSENT else limits.linger_seconds
