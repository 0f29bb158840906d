"""Reports of a long fetch: lines in the log, seldom, or whatever a screen makes of them, often."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trivium.fetchers.hub_policy import in_bytes
from trivium.types.spoken import spoken


class FetchReport(NamedTuple):
    """Says how much of a model has come: so many bytes of so many."""

    name: str
    done: int
    total: int


ShowReport = Callable[[FetchReport], None]
_SECONDS = 10.0
_log = logging.getLogger("trivium.fetching")


def in_words(report: FetchReport) -> str:
    """Return a report as a line."""
    share = 100 * report.done // report.total if report.total else 100
    return f"{report.name}: {in_bytes(report.done)} of {in_bytes(report.total)} ({share} %)"


class Reports:
    """Takes reports of all fetches of this process. A screen that is there gets each of them, and the log none."""

    def __init__(self) -> None:
        self._screen: ShowReport | None = None

    def __call__(self, report: FetchReport, since: float) -> float:
        """Report; `since` is when the last line of this fetch was written, in monotonic seconds, and so is what comes
        back.
        """
        if self._screen is not None:
            self._screen(report)
            return since
        now = time.monotonic()
        if report.total and (not report.done or now - since >= _SECONDS):
            _log.info("Fetching %s", spoken(in_words(report)))
            return now
        return since

    def note(self, words: str) -> None:
        """Say something about a fetch that is worth a line."""
        _log.warning("%s", words)

    @contextlib.contextmanager
    def shown_by(self, screen: ShowReport) -> Iterator[None]:
        """Give reports to this screen meanwhile. It is called from the threads of fetches."""
        self._screen = screen
        try:
            yield
        finally:
            self._screen = None


REPORTS = Reports()
