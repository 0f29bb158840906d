"""Decides which instances share the processor of the loop, and when. Pure: a view and a time -> a decision.

A run of microseconds waits for the loop before it and has the loop wait for it behind: the two hardly ever work at the
same time. On two processors each hand-over wakes one up, and fetches the other's caches; on one it does neither.
"""

import msgspec

BRIEF = 0.0001
"""Mean seconds of a run up to which it is brief: a few times what waking another processor costs."""

LEAST_RATE = 50.0
"""Hand-overs per second below which there is nothing to gain."""

FULL, IDLE = 0.05, 0.9
"""Where the shared processor idles less than the one share of its time, and another one more than the other, two
would do more than one.
"""

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
"""Seconds for which nothing is shared after that: twice as many each time it happens again at once."""


class Idleness(msgspec.Struct, frozen=True, gc=False):
    """Shares of the last second in which the shared processor had nothing to do, and the idlest of the others."""

    shared: float
    other: float


class View(msgspec.Struct, frozen=True, gc=False):
    """The facts for a decision: hand-overs per second of those that could share; whether instances are being opened,
    which
    inherit the place of whoever opens them; how idle processors were, where instances share now and a second is over;
    until when nothing is to be shared (seconds of the clock), and how long that pause is.
    """

    rate: float
    is_opening: bool
    idleness: Idleness | None = None
    until: float = 0.0
    pause: float = 0.0


class AffinityDecision(msgspec.Struct, frozen=True, gc=False):
    """A decision: whether to share, and what to show in the next view."""

    is_shared: bool
    until: float
    pause: float


def decide(view: View, now: float) -> AffinityDecision:
    """Share while it is worth it, unless it was found to hold back what two processors could do."""
    pause = view.pause
    if view.idleness is not None:
        if view.idleness.shared < FULL and view.idleness.other > IDLE:
            pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
            return AffinityDecision(False, now + pause, pause)
        pause = 0.0
    is_worth_it = view.rate >= LEAST_RATE and now >= view.until and not view.is_opening
    return AffinityDecision(is_worth_it, view.until, pause)
