"""Limits on what a client may ask of a connection that costs work and earns it nothing: pings, resets, empty frames.

Pure: the time is given. A budget that time and served calls fill again, and the rules by which gRPC counts pings
("ping strikes"): both end the connection with ENHANCE_YOUR_CALM.
"""

from trivium.frontends.h2.frames import ENHANCE_YOUR_CALM, ConnectionFault

RESET, SETTING, SMALL = 4, 4, 1
"""What a frame costs that cancels work, changes settings, or does nothing else."""

TINY = 64
"""Bytes of DATA below which a frame costs, too: a message in such pieces is a message in a thousand times the work."""

EARNED = 2
"""What a frame of ours earns that serves a call: clients acknowledge by pings and window updates."""

_PER_SECOND = 1000
_IDLE_SECONDS = 7200.0
TOO_MANY_PINGS = "too_many_pings"


class Guard:
    """`most` is the full budget. Times are seconds of one clock."""

    __slots__ = ("_left", "_most", "_when")

    def __init__(self, most: int, now: float) -> None:
        self._most = most
        self._left = most
        self._when = now

    def spend(self, cost: int, now: float) -> None:
        """Raises ConnectionFault when nothing is left."""
        self._left -= cost
        if self._left >= 0:
            return
        self._left = min(self._most, self._left + int((now - self._when) * _PER_SECOND))
        self._when = now
        if self._left < 0:
            raise ConnectionFault(
                ENHANCE_YOUR_CALM,
                "Too many resets, settings, pings, window updates or empty frames for too few calls.",
            )

    def earn(self, amount: int) -> None:
        """Something was served."""
        self._left = min(self._most, self._left + amount)


class PingStrikes:
    """A client's own pings: `seconds` apart, hours where it has no call and `without_calls` is not allowed; more than
    `most` too early ones are too many (0: never).
    """

    __slots__ = ("_last", "_most", "_seconds", "_strikes", "_without_calls")

    def __init__(self, seconds: float, without_calls: bool, most: int) -> None:
        self._seconds = seconds
        self._without_calls = without_calls
        self._most = most
        self._last = float("-inf")
        self._strikes = 0

    def forgive(self) -> None:
        """We have sent something of a call: clients ping then to measure."""
        self._last = float("-inf")
        self._strikes = 0

    def count(self, now: float, has_calls: bool) -> None:
        """A ping has come. Raises ConnectionFault for one too many."""
        apart = self._seconds if has_calls or self._without_calls else _IDLE_SECONDS
        is_early = now < self._last + apart
        self._last = now
        self._strikes += is_early
        if is_early and self._strikes > self._most > 0:
            raise ConnectionFault(ENHANCE_YOUR_CALM, TOO_MANY_PINGS)
