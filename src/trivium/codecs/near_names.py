"""Finds the name that somebody may have meant. The only place that compares texts by their likeness, which is dear. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

LONGEST = 100
"""Characters that are compared: the time grows with the product of two lengths, and a name may come from a stranger."""

MOST = 1000
"""Names that it is compared with."""


def near(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name that is most like it, empty where none is by `cutoff`, from 0 to 1."""
    found = get_close_matches(name[:LONGEST], [one[:LONGEST] for one in islice(known, MOST)], 1, cutoff)
    return found[0] if found else ""
