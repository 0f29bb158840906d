"""Times as RFC 3339 writes them: in UTC, to the millisecond."""

from datetime import UTC, datetime
from functools import lru_cache


def rfc3339(seconds: float) -> str:
    """Return a time in seconds of the Unix epoch as `2026-11-28T18:52:48.123Z`."""
    whole = int(seconds)
    return f"{_second(whole)}.{int((seconds - whole) * 1000):03d}Z"


@lru_cache(maxsize=4)  # many lines have the same second
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
