"""How many batches an instance may hold in advance. Pure.

Where a run is shorter than a wake-up is dear, an instance that finds its next work without sleeping halves
the cost of a request. Longer runs gain nothing, and items held in advance are beyond priorities and merging.
"""

SHORT_RUN = 0.001
"""Seconds; below it a lead pays (measured: 54 to 24 CPU-us per request)."""


def lead(mean_run: float | None, instances: int, merges: bool) -> int:
    """Batches in advance of the running one. `mean_run` is None before the first execution.

    With several instances a long lead would let a slow one hoard; a merging model gains more by waiting.
    """
    if merges or mean_run is None or mean_run >= SHORT_RUN:
        return 0
    return 3 if instances == 1 else 1
