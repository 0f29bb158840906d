"""Frames out of the worker, whole and one after another, from any thread."""

import contextlib
import os
import socket
import threading
from typing import Any

JOINED = 2**16
"""Bytes up to which pieces are put together: a copy is cheaper than a long list of them."""

MOST_PIECES = 512  # the kernel takes 1,024


class Writer:
    """Writes to the server. In a process that user code forked it is not this process's to write to."""

    def __init__(self, wire: socket.socket) -> None:
        self._wire = wire
        self._lock = threading.Lock()
        self._gathered: list[Any] | None = None
        self._gatherer = 0
        self.is_mine = True
        self._is_over = False

    def end(self) -> None:
        """Nothing follows what has been written; what is written from now on is thrown away."""
        with self._lock:
            self._is_over = True
            with contextlib.suppress(OSError):
                self._wire.shutdown(socket.SHUT_WR)

    def gather(self) -> None:
        """Keep what this thread writes from now on, until it calls `flush`."""
        self._gathered = []
        self._gatherer = threading.get_ident()

    @property
    def has_gathered(self) -> bool:
        """Is anything kept?"""
        return bool(self._gathered)

    def flush(self) -> None:
        """Write all that was kept, at once."""
        pieces, self._gathered = self._gathered, None
        if pieces:
            self.write(pieces, sum(map(len, pieces)))

    def send(self, *pieces: Any) -> None:
        """`write` of a few pieces."""
        self.write(pieces, sum(map(len, pieces)))

    def write(self, pieces: Any, size: int) -> None:
        """All pieces, of `size` bytes, in order, with nothing between them; waits until the server takes them in.
        Where the server has gone, the process ends.
        """
        if self._gathered is not None and threading.get_ident() == self._gatherer:
            self._gathered += pieces
            return
        if not self.is_mine:
            os._exit(71)
        with self._lock:
            if self._is_over:
                return
            try:
                if size <= JOINED:
                    self._wire.sendall(b"".join(pieces))
                else:
                    self._send_long(pieces)
            except OSError:
                os._exit(72)

    def _send_long(self, pieces: Any) -> None:
        left = [memoryview(piece) for piece in pieces if len(piece)]
        while left:
            sent = self._wire.sendmsg(left[:MOST_PIECES])
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                left[0] = left[0][sent:]
