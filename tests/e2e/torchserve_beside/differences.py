"""The differences to the original that were accepted: which request shows each, in what, and why it stays.

`docs/torchserve.md` has a table made of this. The suite holds it to both: what is not here must not differ, and what is
here must. Imports nothing of the project: the manual's maker reads it by itself.
"""

from typing import NamedTuple


class Difference(NamedTuple):
    """`requests`: setting and pattern of the names that show it; `aspects`: what differs in them; the rest is told."""

    requests: tuple[tuple[str, str], ...]
    aspects: frozenset[str]
    what: str
    torchserve: str
    trivium: str
    reason: str


ACCEPTED: tuple[Difference, ...] = ()
"""At most 15."""
