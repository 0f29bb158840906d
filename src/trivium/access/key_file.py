"""Keeps the keys of a file, and reads it again when it changes.

A thread looks at the file, so that one that hangs (a network's) holds nobody up. What cannot be read changes nothing:
the keys that were there stay in force, and the log says why, once.
"""

import logging
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

from trivium.access.keys import AccessKey, parse_keys
from trivium.types.errors import Code, ServeError

_log = logging.getLogger("trivium.access")

LOOK_SECONDS = 0.5
_MOST_BYTES = 2**20


def read_file(path: Path) -> str:
    """Return the text of a key file. Raises ServeError (NOT_FOUND) for what is no small file with text. Waits for no
    writer, should it be a pipe.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _unreadable(path, "it is no regular file")
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise _unreadable(path, f"it is larger than {_MOST_BYTES} bytes")
        return data.decode()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, "it is no UTF-8") from error


def _unreadable(path: Path, why: str) -> ServeError:
    return ServeError(
        Code.NOT_FOUND,
        f"The key file {path} cannot be read: {why}. Give --keys a TOML file with a [[key]] for each key; "
        "`trivium key` prints one.",
    )


class KeyFile:
    """Holds the keys that were read last. `start` begins to look twice a second, `close` ends that.

    A change counts when two looks in a row have found the same: an editor may be in the middle of writing.
    """

    def __init__(self, path: Path, read: Callable[[Path], str] = read_file) -> None:
        """Read it. Raises ServeError or ConfigError for one that cannot be used."""
        self._path = path
        self._read = read
        self._held = self._seen = read(path)
        self._keys = parse_keys(self._held, str(path))
        self._closed = threading.Event()

    def in_force(self) -> tuple[AccessKey, ...]:
        """Return the keys that hold now. Called from any thread."""
        return self._keys

    def look(self) -> None:
        """Look at the file once, and take over what has changed."""
        fault, text = None, ""
        try:
            text = self._read(self._path)
        except ServeError as error:
            fault, text = error, error.message
        before, self._seen = self._seen, text
        if text != before or text == self._held:
            return
        self._held = text
        try:
            if fault is not None:
                raise fault
            self._keys = parse_keys(text, str(self._path))
            _log.info("%s: read again; %d keys are in force", self._path, len(self._keys))
        except ServeError as error:
            _log.error("%s The keys read before stay in force.", error.message)

    def start(self) -> None:
        """Begin to look."""
        threading.Thread(target=self._watch, name="keys", daemon=True).start()

    def close(self) -> None:
        """Look no more. Returns at once, whatever the thread waits for."""
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            try:
                self.look()
            except Exception:
                _log.exception("looking at the key file failed; the keys read before stay in force")
