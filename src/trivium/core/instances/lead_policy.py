"""How many batches an instance may hold in advance. Pure.

Where a run is shorter than a wake-up is dear, an instance that finds its next work without sleeping halves
the cost of a request. Longer runs gain a few per cent, and items held in advance are beyond priorities and merging.
"""

from collections.abc import Mapping

LEAD_SECONDS = 0.0005
"""Work that one instance may hold in advance, by the mean of its recent runs."""

MOST = 15
"""Batches in advance at most; more were not faster, however short the runs."""


def lead(mean_run: float, instances: int, merges: bool, in_order: bool) -> int:
    """Batches in advance of the running one. `mean_run`, in seconds, is 0 before the first execution.

    With several instances a long lead would let a slow one hoard; a merging model gains more by waiting. A single
    instance whose items run `in_order`, none overtaking another or running out of time in the queue, always has the
    next one in hand: one that sleeps between two long runs wakes up on another core, with nothing in its caches.
    """
    if merges or not mean_run:
        return 0
    if mean_run > LEAD_SECONDS:
        return 1 if in_order and instances == 1 else 0
    batches = min(int(LEAD_SECONDS / max(mean_run, 1e-6)), MOST if instances == 1 else 1)
    return max(batches, 1) if in_order and instances == 1 else batches


def by_turns(credits: Mapping[int, int], lead: int) -> list[int]:
    """Instances as often as each can take a batch, `lead` in advance included: the least busy one in front."""
    rows = [(turn - count, number) for number, count in credits.items() for turn in range(count + lead)]
    return [number for _, number in sorted(rows)]
