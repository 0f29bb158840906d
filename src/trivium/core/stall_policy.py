"""Decides why an event loop was held up, and whether that is worth a line in the log. Pure."""

from enum import Enum

import msgspec

STALL_SECONDS = 0.25
SAYING_SECONDS = 60.0
"""In which one line is said, however often the loop is held up."""

_MANY_PAGES = 50
"""Read from disk again in one stall: each takes a good part of a millisecond, on a machine that does nothing else."""


class LoopCounters(msgspec.Struct, frozen=True, gc=False):
    """Counts, up to now: seconds that the process has computed, and that the loop's thread has waited for a processor;
    pages that the process had to wait for until they were read from disk.
    """

    computed: float = 0.0
    waited: float = 0.0
    pages: int = 0

    def since(self, before: "LoopCounters") -> "LoopCounters":
        """Return what has come to it."""
        return LoopCounters(
            self.computed - before.computed, self.waited - before.waited, self.pages - before.pages
        )


class LoopDelay(msgspec.Struct, frozen=True, gc=False):
    """Says how late a loop was, in seconds, what was counted meanwhile, and whether models were loading."""

    late: float
    counted: LoopCounters
    is_loading: bool


class StallCause(Enum):
    """Names what most likely has held a loop up, in the words of the log."""

    LOADING = "models were loading"
    SWAPPING = "memory is short, and pages were read from disk again; stop something, or serve fewer models or workers"
    OTHERS = "other programs had the processors; give the server more of them, or stop something"
    COMPUTING = "the server was computing; the log level debug shows where"
    UNKNOWN = "it waited for the machine"


def likely_cause(delay: LoopDelay) -> StallCause:
    """Return what most likely has held the loop up. Loads explain whatever comes with them."""
    counted = delay.counted
    if delay.is_loading:
        return StallCause.LOADING
    if counted.pages >= _MANY_PAGES:
        return StallCause.SWAPPING
    if counted.waited > delay.late / 2:
        return StallCause.OTHERS
    if min(delay.late, counted.computed) > STALL_SECONDS:
        return StallCause.COMPUTING
    return StallCause.UNKNOWN


def is_stall(delay: LoopDelay) -> bool:
    """Has this process itself held its loop up? A machine with much else to do is no fault of a server's."""
    return min(delay.late, delay.counted.computed) > STALL_SECONDS


def is_said(cause: StallCause, now: float, said_at: float) -> bool:
    """Is a line due now, the last one having been said then?"""
    return cause is not StallCause.LOADING and now - said_at >= SAYING_SECONDS
