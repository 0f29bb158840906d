"""The operating system's side of a worker: what it prints, that it has ended, and how.

Lives on the loop. It knows nothing of batches; what the end means for them is `process`'s business.
"""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
from collections.abc import Callable

from trivium.core.workers import post_mortem
from trivium.core.workers.output import Output
from trivium.core.workers.spawn import BEGUN_MARK, Spawned

END_SECONDS = 10.0
"""For a worker that was told to stop and has nothing in hand for anybody; then SIGTERM, and after `TERM_SECONDS` more
SIGKILL.
"""
TERM_SECONDS = 2.0
LINGER = 0.2
"""Seconds between the end of the process and that of its connection, which a process that it forked may keep open."""
BURIAL = 2.0
"""Seconds for the end of a process that was killed to become known."""


class ChildProcess:
    """Owns what has been spawned, but for its socket. `ended` is called once, when the process has."""

    def __init__(self, name: str, spawned: Spawned, log: logging.Logger, ended: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._spawned = spawned
        self._ended = ended
        self._why = ""
        self._oom_kills = post_mortem.oom_kills()
        self._outputs = [
            Output(descriptor, f"{name} {stream}", level, log)
            for descriptor, stream, level in zip(
                spawned.outputs, ("stdout", "stderr"), (logging.INFO, logging.WARNING), strict=True
            )
        ]
        self.pid = spawned.process.pid
        self._is_over = self._is_buried = False
        self._begun = 0
        self._pidfd = _open_pidfd(self.pid)
        if self._pidfd >= 0:
            self._loop.add_reader(self._pidfd, self._process_ended)

    @property
    def tells_its_end(self) -> bool:
        """Is `ended` still to be called? Not once it was, and never under a kernel that is too old."""
        return self._pidfd >= 0

    @property
    def has_ended(self) -> bool:
        """Has `ended` been called?"""
        return self._is_over

    @property
    def begun(self) -> int:
        """The number of the last batch that user code got, also after the end."""
        return self._begun if self._is_buried else self._spawned.marks[BEGUN_MARK]

    @property
    def was_killed_here(self) -> bool:
        """Has `kill` been called?"""
        return bool(self._why)

    def kill(self, why: str) -> None:
        """End it now, and whatever it has started; the first `why` goes into the post-mortem."""
        self._why = self._why or why
        self._spawned.kill()

    def end_within(self, seconds: float, more: float) -> None:
        """SIGTERM then, SIGKILL after so many more."""
        self._loop.call_later(seconds, self._spawned.kill, signal.SIGTERM)
        why = f"it was told to end, and had not {seconds + more:g} s later, {more:g} s after SIGTERM"
        self._loop.call_later(seconds + more, self._end, why)

    def _end(self, why: str) -> None:
        if not self._is_over:  # else it has ended by itself, and that is what its post-mortem says
            self.kill(why)

    def last_words(self) -> str:
        """The last lines on its standard error, for a sentence to end with; empty where there are none."""
        return post_mortem.last_words(list(self._outputs[1].last))

    def finalize(self) -> tuple[int | None, str]:
        """Its exit status, and the post-mortem. What it has started in its session ends with it."""
        self._forget_pidfd()
        self._spawned.kill()  # before it is reaped: until then its group's number is nobody else's
        status = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._spawned.process.wait(1.0)
        self._begun, self._is_buried = self.begun, True
        self._spawned.close_marks()
        for output in self._outputs:
            output.close()
        last = list(self._outputs[1].last)
        memory = self._oom_kills, post_mortem.oom_kills()
        return status, post_mortem.describe(self._name, self.pid, status, self._why, memory, last)

    def _process_ended(self) -> None:
        self._forget_pidfd()
        self._is_over = True
        self._ended()

    def _forget_pidfd(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1


def _open_pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):  # an old kernel: the end of the connection tells, too
        return -1
