"""Begins a log file anew, by its size and by the day, and packs the old one.

Decides when that is due and what the old one is called: pure. Renaming is all that the writer of a log waits for;
packing is done in a thread of its own, one file after another.
"""

import contextlib
import gzip
import itertools
import logging
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OLD = timedelta(days=31)
_NUMBERS = itertools.count(1)
_PACKER = ThreadPoolExecutor(1, "trivium-pack")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rotation:
    """Says when a file is begun anew: before it has more than `most_bytes`, and at the first line of a day."""

    most_bytes: int


@dataclass(frozen=True, slots=True)
class LogFileView:
    """A log file as it is: its bytes, and the day on which it was written."""

    size: int
    day: date


def is_due(view: LogFileView, rotation: Rotation, more: int, today: date) -> bool:
    """Tell whether a file is begun anew before so many more bytes are written. An empty one never is."""
    return view.size > 0 and (view.day != today or view.size + more > rotation.most_bytes)


def packed_name(path: Path, day: date) -> Path:
    """Return the name of what was written into a file on a day: access_log.25-Nov.log.gz."""
    return path.with_name(f"{path.stem}.{day.day:02d}-{_MONTHS[day.month - 1]}{path.suffix}.gz")


def set_aside(path: Path) -> Path:
    """Take a file away from its name, and return the one that it has then. OSError where it cannot be renamed."""
    return path.rename(path.with_name(f"{path.name}.{os.getpid()}-{next(_NUMBERS)}"))


def pack_later(aside: Path, path: Path, day: date) -> None:
    """Have a file packed that was set aside from a path and was written on a day; nobody waits for that."""
    _PACKER.submit(pack, aside, packed_name(path, day), day)


def pack(aside: Path, packed: Path, day: date) -> None:
    """Add a file to a packed one, and remove it. One that cannot be packed stays, and is named in the log. What was
    packed under the same name a year ago goes.
    """
    part = aside.with_name(f"{aside.name}.gz")
    try:
        with aside.open("rb") as old, gzip.open(part, "wb") as new:
            shutil.copyfileobj(old, new, 2**20)
        if packed.exists() and day - date.fromtimestamp(packed.stat().st_mtime) <= _OLD:
            _append(part, packed)
        else:
            part.rename(packed)
        aside.unlink()
    except OSError as error:
        _log.error("The log file %s cannot be packed, and stays as it is: %s.", aside, error)
    with contextlib.suppress(OSError):
        part.unlink()


def _append(part: Path, packed: Path) -> None:
    """Add packed lines to others: what has several members is read as one. OSError, with nothing added."""
    size = packed.stat().st_size
    try:
        with part.open("rb") as more, packed.open("ab") as whole:
            shutil.copyfileobj(more, whole, 2**20)
    except OSError:
        os.truncate(packed, size)
        raise
