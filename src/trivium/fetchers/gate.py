"""The gate that every fetch goes through: it finds the fetcher of a scheme, and hands it the server's bounds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from trivium.fetchers.policy import read_places, shown, whole_place
from trivium.types.errors import Code, ServeError
from trivium.types.fetching import FetchBounds, FetchFile, FetchModel
from trivium.types.interfaces import Fetcher
from trivium.types.sources import ModelSource


def gate(
    fetchers: Sequence[Fetcher], places: str, size: int, seconds: float, *, with_code: bool = False
) -> FetchModel:
    """Make what fetches for a server: from these places, so many bytes in so many seconds, and code where that may run.
    Raises INVALID for places that cannot be read.
    """
    by_scheme = {scheme: fetcher for fetcher in fetchers for scheme in fetcher.schemes}
    bounds = FetchBounds(read_places(places, tuple(by_scheme)), size, seconds=seconds, with_code=with_code)
    return _gate(
        by_scheme, bounds, "models", "Download the model, and name its folder or archive on this machine."
    )


def file_gate(fetchers: Sequence[Fetcher], seconds: float) -> FetchFile:
    """Make what fetches single files, within so many seconds each."""
    by_scheme = {scheme: fetcher for fetcher in fetchers for scheme in fetcher.schemes}

    def fetch(uri: str, places: str, size: int) -> bytes:
        allowed = read_places(places, tuple(by_scheme))
        bounds = FetchBounds(allowed, size, files=1, seconds=seconds, is_model=False)
        with TemporaryDirectory(prefix="trivium-fetch-") as folder:
            found = _gate(by_scheme, bounds, "files", "Send the file itself.")(
                ModelSource(uri), Path(folder), lambda: False
            )
            if not found.is_file():
                raise ServeError(Code.INVALID, f"{shown(uri)} is no single file. Name one.")
            return found.read_bytes()

    return fetch


def _gate(by_scheme: Mapping[str, Fetcher], bounds: FetchBounds, what: str, hint: str) -> FetchModel:
    def fetch(source: ModelSource, into: Path, is_given_up: Callable[[], bool]) -> Path:
        uri = source.uri
        scheme = uri.partition(":")[0].lower()
        fetcher = by_scheme.get(scheme)
        if fetcher is None:
            raise ServeError(
                Code.UNSUPPORTED,
                f"{shown(uri)}: {what} are not fetched from {scheme}:// in this version, but from "
                f"{', '.join(by_scheme)}. {hint}",
            )
        with_code = bounds.with_code or source.with_code
        asked = replace(bounds, is_given_up=is_given_up, with_code=with_code)
        if source.is_named:
            asked = replace(asked, is_named=True, places=(*bounds.places, whole_place(uri)))
        return fetcher.fetch(uri, into, asked)

    return fetch
