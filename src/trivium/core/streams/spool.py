"""Keeps the parts of one answer in order until its receiver takes them: in memory, and beyond that in files.

Files are written and read by threads, one at a time, and removed as soon as they are read; nothing here waits.
"""

import contextlib
import itertools
import logging
import os
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from trivium.core.queueing.kept_payload import detached, kept_bytes
from trivium.core.streams.policy import StreamBounds
from trivium.core.streams.records import read_parts, write_parts
from trivium.core.unread_answers import SlowReader, UnreadAnswers
from trivium.types.core_config import UnreadLimits
from trivium.types.errors import named
from trivium.types.running import ItemId, Part

_log = logging.getLogger(__name__)

Work = Callable[[], object]
Offload = Callable[[Work, Callable[[object], None]], None]
"""Has something done in a thread, and calls back on the loop with what came of it."""

PER_STREAM = 4
"""One answer may take this part of all that may be kept."""
IN_MEMORY = 2**20
"""Bytes of one answer that are kept in memory before some are written to a file."""
LEAST_FILE = 2**16
"""Bytes of one answer from which on a file is worth its while, where memory is short."""


class StreamStore:
    """Says where the parts of all answers that wait for their receivers are kept, and how much there is of them."""

    def __init__(self, limits: UnreadLimits, folder: Path | None, offload: Offload) -> None:
        """Make one that keeps files in `folder`; without one all is kept in memory."""
        disk = limits.disk if folder is not None else 0
        memory = min(IN_MEMORY, max(limits.memory // PER_STREAM, 1))
        self.bounds = StreamBounds(memory, max((limits.memory + disk) // PER_STREAM, memory))
        self.offload = offload
        self.unread = UnreadAnswers(limits.memory + disk)
        self.memory = 0
        self._limits = limits
        self._folder = folder if disk else None
        self._numbers = itertools.count(1)

    @classmethod
    def in_memory(cls) -> "StreamStore":
        """Make one that keeps all in memory."""
        return cls(UnreadLimits(), None, lambda work, done: done(work()))

    @property
    def has_files(self) -> bool:
        """Is there a place for files?"""
        return self._folder is not None

    def should_write(self, memory: int) -> bool:
        """Is so much of one answer more than may stay in memory?"""
        is_short = self.memory > self._limits.memory
        return memory > (min(LEAST_FILE, self.bounds.memory) if is_short else self.bounds.memory)

    def new_file(self) -> Path:
        """Name a file that nobody has. Only where there is a place for files."""
        assert self._folder is not None
        return self._folder / f"unread-{next(self._numbers)}"


class PartSpool:
    """The parts of one item, in order. `memory` and `filed` are bytes. Used on the loop only.

    The oldest parts are in memory, those behind them in files, and the newest in memory again.
    """

    def __init__(
        self, item: ItemId, store: StreamStore, holder: SlowReader, changed: Callable[[], None]
    ) -> None:
        """`changed` is called when a file has been written or read, or could not be."""
        self._item = item
        self._store = store
        self._holder = holder
        self._changed = changed
        self._oldest: deque[tuple[Part, int]] = deque()
        self._files: deque[tuple[Path, int]] = deque()
        self._newest: deque[tuple[Part, int]] = deque()
        self._is_busy = self._is_closed = False
        self.is_writing = False
        self.has_files = store.has_files
        self.is_torn = False
        """Could a file not be read again? Then what was in it is lost."""
        self.memory = self.filed = 0

    @property
    def is_empty(self) -> bool:
        """Is nothing left?"""
        return not (self.memory or self.filed)

    def append(self, part: Part) -> None:
        """Keep a part behind the others; not one with an error."""
        if part.payload is not None:
            part = Part(part.item, detached(part.payload), None, part.final, part.parameters)
        size = kept_bytes(part.payload)
        self._newest.append((part, size))
        self._count(size, 0)
        if self.has_files and not self._is_busy and self._store.should_write(self.memory):
            self._write()

    def pop(self) -> Part | None:
        """Take the oldest part; None where there is none, or where it is still on its way to or from its file."""
        if not (self._oldest or self._files or self._is_busy):
            self._oldest, self._newest = self._newest, self._oldest
        if self._oldest:
            part, size = self._oldest.popleft()
            self._count(-size, 0)
            return part
        if self._files and not self._is_busy:
            self._read()
        return None

    def close(self) -> None:
        """Forget all; the files are removed, and what is being written or read is kept no more."""
        self._is_closed = True
        paths = [path for path, _ in self._files]
        for rows in (self._oldest, self._newest, self._files):
            rows.clear()
        self._count(-self.memory, -self.filed)
        if paths:
            self._store.offload(partial(_remove_all, paths), _nobody)

    def _count(self, memory: int, filed: int) -> None:
        self.memory += memory
        self.filed += filed
        self._store.memory += memory
        self._store.unread.note(self._holder, self.memory + self.filed)

    # -- files ---------------------------------------------------------------------------------------------

    def _write(self) -> None:
        """Have the newest parts written to a file."""
        rows, self._newest = list(self._newest), deque()
        self._is_busy = self.is_writing = True
        path = self._store.new_file()
        parts = [part for part, _ in rows]
        self._store.offload(
            partial(_attempt, partial(_save, path, parts)), partial(self._written, path, rows)
        )

    def _written(self, path: Path, rows: list[tuple[Part, int]], result: object) -> None:
        self._is_busy = self.is_writing = False
        if self._is_closed:
            self._store.offload(partial(_remove_all, [path]), _nobody)
            return
        if isinstance(result, int):
            self._files.append((path, result))
            self._count(-sum(size for _, size in rows), result)
        else:
            _log.warning(
                "the parts of an answer that nobody reads could not be written to a file: %s", result
            )
            self.has_files = False
            self._newest.extendleft(reversed(rows))
        self._changed()

    def _read(self) -> None:
        """Have the oldest file read."""
        path, filed = self._files.popleft()
        self._is_busy = True
        self._store.offload(
            partial(_attempt, partial(_load, path, filed, self._item)), partial(self._came, filed)
        )

    def _came(self, filed: int, result: object) -> None:
        self._is_busy = False
        if self._is_closed:
            return
        rows = []
        if isinstance(result, list):
            rows = [(part, kept_bytes(part.payload)) for part in result]
        else:
            _log.error("the parts of an answer could not be read from their file again: %s", result)
            self.is_torn = True
        self._oldest.extend(rows)
        self._count(sum(size for _, size in rows), -filed)
        self._changed()


def _nobody(result: object) -> None:
    """Hear what became of work that nobody waits for."""


def _attempt(work: Work) -> object:
    try:
        return work()
    except (OSError, ValueError) as error:
        return named(error)


def _save(path: Path, parts: list[Part]) -> int:
    """Write a file that nobody else can read; its size."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.writelines(write_parts(parts, path.name))
            return file.tell()
    except OSError:
        _remove_all([path])
        raise


def _load(path: Path, size: int, item: ItemId) -> list[Part]:
    """Read a file of that size; of what somebody has put in its place no more than that, and nothing by a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            data = file.read(size + 1) or b""  # None of a pipe that is empty
        if len(data) != size:
            raise ValueError(f"a file of kept parts has another size than the {size} bytes that were written")
        return read_parts(data, path.name, item)
    finally:
        _remove_all([path])


def _remove_all(paths: list[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()
