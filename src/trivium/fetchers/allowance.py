"""Bounds of one fetch as it goes on: bytes, files and time are counted as they come, whatever a server announces."""

import socket
import threading
import time
from contextlib import suppress
from types import TracebackType

from trivium.fetchers.policy import shown
from trivium.types.errors import Code, ServeError
from trivium.types.fetching import FetchBounds
from trivium.types.spoken import spoken

_LOOKS = 0.1
"""Seconds between two looks at whether it is over."""


class Cutter:
    """Shuts the sockets of a fetch down when its time is over or nobody waits for it: whoever reads them wakes up.

    `reason` says why it did, empty while it has not.
    """

    def __init__(self, bounds: FetchBounds) -> None:
        self.reason = ""
        self._bounds = bounds
        self._until = time.monotonic() + bounds.seconds
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_done = threading.Event()

    def __enter__(self) -> "Cutter":
        threading.Thread(target=self._run, name="trivium-fetch", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._is_done.set()

    def watch(self, connected: socket.socket) -> None:
        """Shut this socket down in the end, in place of the one before it. Raises OSError where it is over already."""
        with self._lock:
            self._socket = connected
            self.check()

    def check(self) -> None:
        """Raise OSError where the time is over, or nobody waits any more."""
        self.reason = self.reason or self._why()
        if self.reason:
            raise OSError(self.reason)

    def _why(self) -> str:
        if self._bounds.is_given_up():
            return "nobody waits for it any more"
        if time.monotonic() > self._until:
            return spoken(f"it took more than {self._bounds.seconds:g} s (--fetch-seconds)")
        return ""

    def _run(self) -> None:
        while not self._is_done.wait(_LOOKS):
            if why := self._why():
                with self._lock:
                    self.reason = why
                    if self._socket is not None:
                        _shut(self._socket)
                return


def _shut(connected: socket.socket) -> None:
    with suppress(OSError):  # it may be closed already
        socket.socket.shutdown(connected, socket.SHUT_RDWR)  # TLS would first say goodbye


class Allowance:
    """Counts what a fetch brings. Raises TOO_LARGE beyond its bounds, OSError once its time is over."""

    def __init__(self, uri: str, bounds: FetchBounds, cutter: Cutter) -> None:
        self._uri, self._bounds, self._cutter = uri, bounds, cutter
        self._size = self._files = 0

    def announce(self, size: int) -> None:
        """Refuse at once what says of itself that it is larger than what is left."""
        if self._size + size > self._bounds.size:
            raise self._beyond(spoken(f"{self._bounds.size} bytes (--fetch-bytes)"))

    def spend(self, size: int) -> None:
        """Count so many bytes that have come."""
        self.announce(size)
        self._size += size
        self._cutter.check()

    def add_file(self) -> None:
        """Count one more file."""
        self._files += 1
        if self._files > self._bounds.files:
            raise self._beyond(f"{self._bounds.files} files")

    def _beyond(self, bound: str) -> ServeError:
        return ServeError(
            Code.TOO_LARGE,
            f"{shown(self._uri)} has more than {bound}, which is the most that is fetched for one model. Raise the "
            "bound, or download the model and name its folder or archive.",
        )
