"""Decides what follows from what control groups allow: how many threads, and how it is said. Pure."""

import math
from typing import NamedTuple


class GroupAllowance(NamedTuple):
    """Holds what the control groups of a process allow it: so many processors' time, so many bytes of memory; None for
    as much as the machine has.
    """

    processors: float | None = None
    memory: int | None = None


def whole_processors(shown: int, allowed: GroupAllowance) -> int:
    """Return how many processors can be kept busy of those that the system shows. A part of one counts as one, as Java
    counts for DJL Serving and TorchServe: with one thread less time would be left over.
    """
    if allowed.processors is None:
        return shown
    return max(1, min(shown, math.ceil(allowed.processors)))


def default_threads(shown: int, allowed: GroupAllowance) -> int | None:
    """Return how many threads an engine takes by default; None where it may have all processors, and counts itself.
    More than there is time for would all be stopped together until the next period of the control group.
    """
    count = whole_processors(shown, allowed)
    return count if count < shown else None


def in_words(allowed: GroupAllowance, machine_memory: int, shown: int) -> str:
    """Say what a control group bounds, and what that comes to; empty where the machine itself is the bound."""
    parts = []
    if allowed.memory is not None and allowed.memory < machine_memory:
        parts.append(f"{_size(allowed.memory)} of memory")
    if allowed.processors is not None and allowed.processors < shown:
        parts.append(f"{allowed.processors:.3g} of {shown} processors")
    if not parts:
        return ""
    count = whole_processors(shown, allowed)
    threads = f"; threads and workers are counted for {count}" if count < shown else ""
    return f"{' and '.join(parts)} by the control group{threads}"


def _size(count: int) -> str:
    return f"{count / 1e9:.3g} GB" if count >= 10**9 else f"{count / 1e6:.3g} MB"
