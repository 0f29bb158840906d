"""Finds the name that somebody may have meant: comparing texts by likeness is dear, and stands here alone. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

LONGEST = 100
"""Characters that are compared: the time grows with the product of two lengths, and a name may come from a stranger."""

MOST = 1000
"""Names that it is compared with."""


def near(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name that is most like it; empty where none is, by `cutoff` from 0 to 1."""
    return next(iter(nearest(name, known, 1, cutoff)), "")


def nearest(name: str, known: Iterable[str], count: int, cutoff: float = 0.6) -> list[str]:
    """Return so many known names that are like it at most, the likest first."""
    compared = [one for one in islice(known, MOST) if len(one) <= LONGEST]
    return get_close_matches(name[:LONGEST], compared, count, cutoff)
