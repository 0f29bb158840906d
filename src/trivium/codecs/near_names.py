"""Finds the name that somebody may have meant: comparing texts by likeness is dear, and stands here alone. Pure.

Source: the longest common subsequence by bits, after Crochemore and others (2001) and Hyyrö (2004). Likeness is twice
its length by the length of both: one pass over the letters of each known name, without a call for any of them.
"""

from collections.abc import Iterable
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
    wanted = name[:LONGEST]
    size = len(wanted)
    places: dict[str, int] = {}
    bit = 1
    for letter in wanted:
        places[letter] = places[letter] | bit if letter in places else bit
        bit <<= 1
    found = []
    for one in islice(known, MOST):
        both = size + len(one)
        if both - size > LONGEST:
            continue
        unmatched = bit - 1  # a bit for each letter of the name that has no partner yet
        for letter in one:
            if letter in places:
                here = unmatched & places[letter]
                unmatched = ((unmatched + here) | (unmatched - here)) & (bit - 1)
        likeness = 2 * (size - unmatched.bit_count()) / both if both else 1.0
        if likeness >= cutoff:
            found.append((likeness, one))
    return [one for _, one in sorted(found, reverse=True)[:count]]
