"""Divides what a server has room for among its clients, so that no one of them takes everybody's. Pure."""

LEAST_SHARE = 16
"""Connections, calls or answers that any client may have, where the pool has as many."""


def share_of(limit: int, least: int = LEAST_SHARE) -> int:
    """Return how much of a pool of `limit` one client may have: a quarter, `least` at least, all at most."""
    return min(limit, max(limit // 4, least))
