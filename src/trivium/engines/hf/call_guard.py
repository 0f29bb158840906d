"""Calls code of a model's folder in the main thread, where all wait for it, and ends a call that takes too long.

An alarm raises in the call, which ends its request alone. Code that catches even that, or is not in Python, cannot be
ended: then the worker is, with a last line that names the code, and another one takes its place.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

SECONDS = 10.0
"""Seconds that one call may take: a processor sees one row of scores, for which a millisecond is long; but the first
call may import a library.
"""

GRACE = 5.0
"""Seconds from the first alarm to the end of the worker."""

STATUS = 76
"""The exit status of a worker that was ended because of such a call."""

_AGAIN = 1.0
Result = TypeVar("Result")


class CallTooLong(BaseException):
    """Raised in a call whose time is up: no Exception, so that code which goes on behind its faults ends as well."""


class CallGuard:
    """One at a time in a process: `call` is called by the main thread. `subject` is what the names of calls name."""

    def __init__(
        self, seconds: float = SECONDS, grace: float = GRACE, *, subject: str = "logits processor"
    ) -> None:
        self._seconds = seconds
        self._grace = grace
        self._subject = subject
        self._is_closed = False
        self._name = ""
        self._since: float | None = None
        self._watcher: threading.Thread | None = None

    def call(self, name: str, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return what it returns and raise what it raises; CallTooLong once its time is up."""
        if self._watcher is None:
            self._begin()
        self._name = name
        self._since = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, self._seconds, _AGAIN)
        try:
            return function(*arguments)
        finally:
            self._since = None
            signal.setitimer(signal.ITIMER_REAL, 0)

    def close(self) -> None:
        """Guard no more."""
        self._is_closed = True

    def _begin(self) -> None:
        signal.signal(signal.SIGALRM, self._rung)
        self._watcher = threading.Thread(target=self._watch, name="trivium-calls", daemon=True)
        self._watcher.start()

    def _rung(self, number: int, frame: object) -> None:
        if self._since is not None:  # else it has returned meanwhile
            raise CallTooLong(f"it took longer than {self._seconds:g} s")

    def _watch(self) -> None:
        while not self._is_closed:
            time.sleep(min(_AGAIN, self._grace))
            since = self._since
            if since is not None and time.monotonic() - since > self._seconds + self._grace:
                sys.stderr.write(
                    f"The {self._subject} '{self._name}' has not returned for {self._seconds + self._grace:g} s, and "
                    f"does not let itself be ended: the worker ends instead. Mend the {self._subject}.\n"
                )
                sys.stderr.flush()
                os._exit(STATUS)
