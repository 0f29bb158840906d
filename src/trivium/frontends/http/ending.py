"""The way down of an HTTP front end, whoever hands it its requests: nothing new, what is in work, the rest."""

import asyncio
import contextlib

import msgspec

from trivium.frontends.http.state import HttpState

_FAREWELL_SECONDS = 0.5
"""For the answers to leave that say that the time was up."""


class DrainReport(msgspec.Struct, frozen=True, gc=False):
    """Tells how many requests were `answered` in all, and which a drain has cut off (method, path, age)."""

    answered: int
    unfinished: tuple[str, ...]


async def drained(site: HttpState, grace: float) -> DrainReport:
    """Close idle connections, let requests in work finish for `grace` seconds, tell the rest that their time is up."""
    site.drain()
    await until_empty(site, grace)
    site.now = asyncio.get_running_loop().time()
    unfinished = tuple(
        text for connection in site.connections if (text := connection.unfinished()) is not None
    )
    report = DrainReport(site.answered, unfinished)
    for connection in tuple(site.connections):
        connection.end()
    await until_empty(site, _FAREWELL_SECONDS)
    return report


def cut_all(site: HttpState) -> None:
    """End every connection at once."""
    for connection in tuple(site.connections):
        connection.abort()


async def until_empty(site: HttpState, seconds: float | None) -> None:
    """Return once no connection is left, or after so many seconds."""
    if site.connections:
        site.emptied.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await site.emptied.wait()
