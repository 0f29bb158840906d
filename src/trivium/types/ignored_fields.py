"""Collects the fields of a request to generate that are taken and have no effect, so that its answer can name them."""

from collections.abc import Collection

MOST = 20
"""Fields of one request that are named."""


class IgnoredFields:
    """One per request. `found` has a field's whole name, and the names that its sender may have meant."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: dict[str, Collection[str]] = {}

    def add(self, name: str, known: Collection[str] = ()) -> None:
        """Take note of a field; `known` are the names of those that there are, where nobody knows this one."""
        if len(self.found) < MOST:
            self.found.setdefault(name, known)
