"""The gate that every fetch goes through: it finds the fetcher of a scheme, and hands it the server's bounds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from trivium.fetchers.policy import read_places, shown
from trivium.types.errors import Code, ServeError
from trivium.types.fetching import FetchBounds, FetchModel
from trivium.types.interfaces import Fetcher


def gate(fetchers: Sequence[Fetcher], places: str, size: int, seconds: float) -> FetchModel:
    """Make what fetches for a server: from these places, so many bytes in so many seconds. Raises INVALID for places
    that cannot be read.
    """
    by_scheme = {scheme: fetcher for fetcher in fetchers for scheme in fetcher.schemes}
    bounds = FetchBounds(read_places(places, tuple(by_scheme)), size, seconds=seconds)

    def fetch(uri: str, into: Path, is_given_up: Callable[[], bool]) -> Path:
        scheme = uri.partition(":")[0].lower()
        fetcher = by_scheme.get(scheme)
        if fetcher is None:
            raise ServeError(
                Code.UNSUPPORTED,
                f"{shown(uri)}: models are not fetched from {scheme}:// in this version, but from "
                f"{', '.join(by_scheme)}. Download the model, and name its folder or archive on this machine.",
            )
        return fetcher.fetch(uri, into, replace(bounds, is_given_up=is_given_up))

    return fetch
