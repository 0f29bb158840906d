"""Reads what the system counts of the thread that asks, and of its process: processor time, waits, pages from disk."""

import resource
from typing import NamedTuple

_SCHEDULED = "/proc/thread-self/schedstat"


class ThreadWaits(NamedTuple):
    """Counts from the start: seconds that this thread waited for a processor, and pages of its process from disk."""

    waited: float
    pages: int


def thread_waits() -> ThreadWaits:
    """Return the counts of now; no waits where the system does not tell of them."""
    try:
        with open(_SCHEDULED, "rb") as file:
            waited = int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        waited = 0.0
    return ThreadWaits(waited, resource.getrusage(resource.RUSAGE_SELF).ru_majflt)
