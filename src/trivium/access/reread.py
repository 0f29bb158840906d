"""Keeps what files say, and reads them again when they change.

A thread looks at the files, so that one that hangs (a network's) holds nobody up. What cannot be read changes nothing:
what was there stays in force, and the log says why, once.
"""

import errno
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from trivium.files import open_file
from trivium.types.errors import ServeError, anew, frameless

_log = logging.getLogger("trivium.access")

LOOK_SECONDS = 0.5
MOST_BYTES = 2**20

Text = TypeVar("Text")
Meaning = TypeVar("Meaning")


def read_regular(path: str | Path) -> bytes:
    """Return the bytes of a small file. Raises OSError for anything else. Waits for no writer, should it be a pipe."""
    with open_file(Path(path)) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {MOST_BYTES} bytes", str(path))
    return data


class Reread(Generic[Text, Meaning]):
    """Holds what was read last. `start` begins to look twice a second, `close` ends that.

    A change counts when two looks in a row have found the same: an editor may be in the middle of writing.
    """

    def __init__(self, name: str, read: Callable[[], Text], parse: Callable[[Text], Meaning]) -> None:
        """Read it; `name` is what the log says of it: "The keys". Raises ServeError where that cannot be used."""
        self._name = name
        self._read = read
        self._parse = parse
        self._held: Text | str = (text := read())
        self._seen: Text | str = text
        self._meaning = parse(text)
        self._closed = threading.Event()

    def in_force(self) -> Meaning:
        """Return what holds now. Called from any thread."""
        return self._meaning

    def look(self) -> None:
        """Look at it once, and take over what has changed."""
        found: Text | ServeError
        try:
            found = self._read()
        except ServeError as error:
            found = frameless(error)
        said = found.message if isinstance(found, ServeError) else found
        before, self._seen = self._seen, said
        if said != before or said == self._held:
            return
        self._held = said
        try:
            if isinstance(found, ServeError):
                raise anew(found)
            self._meaning = self._parse(found)
            _log.info("%s were read again.", self._name)
        except ServeError as error:
            _log.error("%s %s read before stay in force.", error.message, self._name)

    def start(self) -> None:
        """Begin to look."""
        threading.Thread(target=self._watch, name="trivium-reread", daemon=True).start()

    def close(self) -> None:
        """Look no more. Returns at once, whatever the thread waits for."""
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            try:
                self.look()
            except Exception:
                _log.exception("looking at files failed; %s read before stay in force", self._name.lower())
