"""Answers which versions and models there are: all, a page of them, or what serves requests without a version."""

import msgspec

from trivium.core.models.registry import Registry
from trivium.types.operations import List, Listing, ListServed, ServedModels
from trivium.types.state import VersionState


def listed(registry: Registry, operation: List | ListServed, is_starting: bool) -> Listing | ServedModels:
    """Return the answer to either."""
    if isinstance(operation, ListServed):
        return ServedModels(registry.served())
    found = page(registry.listing(), operation.ready, operation.limit, operation.after)
    return msgspec.structs.replace(found, is_starting=True) if is_starting else found


def page(listing: Listing, ready: bool, limit: int, after: str) -> Listing:
    """Return the rows of at most `limit` models (0: of all) behind the model `after`, or those alone that are ready."""
    rows = [
        row
        for row in listing.versions
        if (not ready or row.state is VersionState.READY) and (not after or row.model > after)
    ]
    names = list(dict.fromkeys(row.model for row in rows))
    if not 0 < limit < len(names):
        return Listing(tuple(rows))
    last = names[limit - 1]
    return Listing(tuple(row for row in rows if row.model <= last), last)
