"""Threads that all wait for: what ends one of them ends the process, loudly, and another process takes its place.

A thread that ends in silence would leave a worker that looks ready and answers nobody.
"""

import contextlib
import os
import threading
import traceback
from collections.abc import Callable

STATUS = 70
"""The exit status of a process that has lost such a thread."""


class VitalThread(threading.Thread):
    """Runs `run` to its end. It has begun when it is made."""

    def __init__(self, run: Callable[[], None], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._work = run
        self.start()

    def run(self) -> None:
        """See `threading.Thread`."""
        try:
            self._work()
        except BaseException:
            with contextlib.suppress(Exception):  # user code may have closed its standard error
                traceback.print_exc()
            os._exit(STATUS)
