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


def seconds(phase: Phase, limits: HttpLimits) -> float:
    """From entering the phase to its deadline."""
    match phase:
        case Phase.IDLE:
            return limits.idle_seconds
        case Phase.HEAD:
            return limits.header_seconds
        case Phase.BODY:
            return limits.body_seconds
        case Phase.UNSENT:
            return limits.write_seconds
        case Phase.CLOSING:
            return limits.linger_seconds
        case Phase.WORK | Phase.LOST:
            return NEVER
