"""Fetching: the places that models may be fetched from, and the bounds of one fetch."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trivium.types.sources import ModelSource

FetchModel = Callable[[ModelSource, Path, Callable[[], bool]], Path]
"""Brings what lies at a source's URI into an empty folder, and returns the file or folder there that is to be read. The
last argument says whether nobody waits any more. Blocking; raises ServeError.
"""

FetchFile = Callable[[str, str, int], bytes]
"""Returns the bytes of a file at a URI, from the places that the second argument lists, at most as many as the third
says. Blocking; raises ServeError.
"""


@dataclass(frozen=True, slots=True)
class FetchPlace:
    """A place elsewhere: everything whose path begins with these segments. `host` is in lower case; for what has no
    hosts it is the store's name, and `port` is 0. Without a host it is all that has this scheme.
    """

    scheme: str
    host: str
    port: int = 0
    path: str = ""


def _is_awaited() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class FetchBounds:
    """Bounds one fetch: it may go to these places, bring so many bytes and files in all, and take so many seconds.

    `is_given_up` says whether nobody waits for it any more; then it ends soon. `is_model`: what comes must be one, an
    archive or what a format can read. `is_named`: whoever runs the server named it in the server's own command, and
    means all of it, however large. `with_code`: code of a model may run, and comes along.
    """

    places: tuple[FetchPlace, ...] = ()
    size: int = 2 * 2**30
    files: int = 10_000
    seconds: float = 600.0
    is_given_up: Callable[[], bool] = _is_awaited
    is_model: bool = True
    is_named: bool = False
    with_code: bool = False
