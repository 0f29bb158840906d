"""Reads the socket: the main thread while it has nothing to do, a second thread while user code computes.

A thread that reads for another has to wake it, which costs more than the rest of a short request. So whoever
waits reads: the main thread when it is idle; the second one takes over when user code has had the same batch
for a tick, or waits for the server itself, and hands back when the main thread is idle again and again.
"""

import contextlib
import os
import select
import socket
import threading
import traceback
from collections import deque
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from trivium_worker.wire import frames
from trivium_worker.wire.vital import VitalThread

TICK = 0.05
"""Seconds that frames may wait for a thread to read them while user code computes."""

SLOW_TICK = 0.2
"""The same where no run has been long of late: each look takes the processor from user code, and its caches."""

IDLE_TICKS = 40
"""Ticks without work after which the second thread sleeps until there is some."""

PATIENCE = 4
"""Times in a row that the main thread must have been idle before the second one hands back."""

LONGEST_LOOK = 0.01
"""Seconds that the main thread waits between two steps until the second one has read what has come."""

PIECE = 2**18


def _ignore(kind: int, came: bytes, at: int, end: int) -> None:
    """Take a frame that means nothing any more."""


class FrameReader:
    """Calls `take` with every frame (its kind, the bytes that came, where its body begins and ends) in whichever thread
    reads; `todo` is what it leaves for the main thread.
    """

    def __init__(
        self, wire: socket.socket, todo: "deque[Any]", take: Callable[[int, bytes, int, int], None]
    ) -> None:
        self._wire = wire
        poll = select.poll()
        poll.register(wire, select.POLLIN)
        self._poll = poll.poll
        self._todo = todo
        self._take = take
        self._kept: Any = b""
        self._leads = threading.Lock()  # held by the thread that reads
        self._gate = threading.Lock()  # the main thread sleeps here while the other one reads
        self._gate.acquire()
        self._bell = threading.Lock()  # the second thread sleeps here between ticks
        self._bell.acquire()
        self._sleeps = False
        self._is_parked = False
        self.turn = 0  # grows when user code gets a batch, and when it gives it back: odd while it has one
        self._stand_in: threading.Thread | None = None
        self._alert: Callable[[], None] | None = None
        self._status = 70  # where the server is gone, nobody waits for this process
        self._ring = -1  # the end of the pipe by which the main thread is woken, if it may be
        self._is_rung = False
        self._is_taking = False  # what has been read is not in `todo` yet

    def wake_by_pipe(self) -> None:
        """Let `interrupt` wake the main thread from now on."""
        self._heard, self._ring = os.pipe()
        os.set_blocking(self._heard, False)
        os.set_blocking(self._ring, False)
        poll, peek = select.poll(), select.poll()
        for end in (self._wire.fileno(), self._heard):
            poll.register(end, select.POLLIN)
        peek.register(self._wire, select.POLLIN)
        self._poll, self._peek = poll.poll, peek.poll

    def interrupt(self) -> None:
        """Have `wait` return soon, in whichever thread this is called. No effect before `wake_by_pipe`."""
        if self._ring < 0 or self._is_rung:
            return
        self._is_rung = True
        with contextlib.suppress(BlockingIOError):
            os.write(self._ring, b".")
        if self._sleeps:
            self._sleeps = False
            self._open_gate()

    def look(self) -> None:
        """Read in the main thread, between two steps, what has come; where the other thread reads, wait until it has.
        What `interrupt` was called for is done behind this.
        """
        self._is_rung = False
        if self._leads.acquire(False):
            try:
                if self._poll(0):
                    self._read()
            finally:
                self._leads.release()
            return
        until = monotonic() + LONGEST_LOOK
        while (self._is_taking or self._peek(0)) and monotonic() < until:
            sleep(0)

    def read_apart(self, alert: Callable[[], None]) -> None:
        """Let the second thread read from now on, and call `alert` there whenever it leaves something in `todo`. The
        main thread waits for what it likes, and calls neither `wait` nor `begin`.
        """
        self._alert = alert
        self._wake_reader()

    def begin(self) -> None:
        """User code gets a batch."""
        self.turn += 1
        if self._stand_in is None or self._is_parked:
            self._wake_reader()

    def wait(self) -> None:
        """Wait in the main thread, with nothing in hand, until there may be something to do."""
        self._sleeps = True
        if self._todo or self._is_rung:
            self._sleeps = False
        elif self._leads.acquire(False):
            self._sleeps = False
            try:
                self._read()
            finally:
                self._leads.release()
        else:
            self._gate.acquire()
            self._sleeps = False

    def glance(self) -> None:
        """Read in the main thread, between two long batches, what has come, if nobody reads. A cancellation
        of the next one would else come too late, since the other thread only looks once in a tick.
        """
        if self._leads.acquire(False):
            try:
                if self._poll(0):
                    self._read()
            finally:
                self._leads.release()

    def needed(self) -> None:
        """Some thread is going to wait for what the server says: somebody must read."""
        if self._stand_in is None or not self._leads.locked():
            self._wake_reader()

    def end(self) -> None:
        """Nothing that comes from now on means anything, and where the server closes the process ends with status 0."""
        self._status = 0
        self._take = _ignore

    def outlast(self, seconds: float) -> None:
        """Read on behind `end`, until the server closes, which ends the process; returns where it does not in so many
        seconds. A process that leaves while the server writes to it breaks the connection, and what the server has not
        read of it by then is lost.
        """
        until = monotonic() + seconds
        if self._leads.acquire(timeout=seconds):  # else the second thread reads, and ends the process
            while self._poll(max(until - monotonic(), 0.0) * 1000):
                self._read()

    # -- the second thread ---------------------------------------------------------------------------------

    def _wake_reader(self) -> None:
        self._is_parked = False
        if self._stand_in is None:
            self._stand_in = VitalThread(self._stand_by, "trivium-reader")
        elif self._bell.locked():
            self._bell.release()

    def _stand_by(self) -> None:
        seen = -1
        idle = 0
        tick = TICK
        while True:
            if idle > IDLE_TICKS:
                self._is_parked = True
                if self.turn == seen:  # else user code got a batch before it could see that this one parks
                    self._bell.acquire()
                self._is_parked = False
                idle = 0
            is_called = self._bell.acquire(timeout=tick)
            turn = self.turn
            is_busy = turn & 1
            if (is_called or (is_busy and turn == seen)) and self._leads.acquire(False):
                self._lead()
                idle = 0
            tick = TICK if turn == seen else min(2 * tick, SLOW_TICK)
            idle = 0 if is_busy or turn != seen else idle + 1
            seen = turn

    def _lead(self) -> None:
        """Read until the main thread has been idle so often that it had better read for itself."""
        patience = PATIENCE
        while True:
            was_idle = self._sleeps
            self._read()
            if self._alert is not None:
                if self._todo:
                    self._alert()
                continue
            if self._todo and self._sleeps:
                self._sleeps = False
                self._open_gate()
            patience = patience - 1 if was_idle else PATIENCE
            if patience <= 0:
                self._leads.release()
                # The main thread may have gone to sleep relying on this one: then it goes on reading.
                if not (self._sleeps and self._leads.acquire(False)):
                    return
                patience = PATIENCE

    def _open_gate(self) -> None:
        """Let the main thread go on, which sleeps or is about to."""
        if self._gate.locked():
            with contextlib.suppress(RuntimeError):  # another thread was quicker
                self._gate.release()

    # -- either thread -------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            # Who sleeps in `recv` is woken as well when the server has read what this process wrote.
            ready = self._poll()
            if self._ring >= 0 and self._has_only_rung(ready):
                return
            self._is_taking = True
            came = self._wire.recv(PIECE)
        except OSError:
            came = b""
        if not came:
            os._exit(self._status)
        try:
            self._taken(came)
        except BaseException:
            traceback.print_exc()
            os._exit(70)
        self._is_taking = False

    def _has_only_rung(self, ready: Any) -> bool:
        ends = [end for end, _ in ready]
        if self._heard in ends:
            with contextlib.suppress(BlockingIOError):
                os.read(self._heard, 64)
        return self._wire.fileno() not in ends

    def _taken(self, came: bytes) -> None:
        if self._kept:
            self._kept += came
            if len(self._kept) < frames.wanted(self._kept, 0):
                return
            came = bytes(self._kept)
        found, used = frames.frames(came)
        for kind, at, end in found:
            self._take(kind, came, at, end)
        self._kept = bytearray(came[used:]) if used < len(came) else b""
