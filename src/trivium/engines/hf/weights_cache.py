"""Keeps weights that were converted for the next load: files of the user's cache, of a bounded size in all.

A kept file is written once, under its final name only when it is whole, and never changed: workers map it, and share
its memory. The folder may be absent, read-only or full, which costs a conversion and nothing else.
"""

import errno
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trivium.machine.user_cache import judge_owner, user_cache

WEIGHTS = "model.safetensors"
_NEW = ".new-"
_LEFT_OVER = 3600.0
"""Seconds after which what somebody began to write is nobody's any more."""

_SPARED = 2**28
"""Bytes of the disk that stay free."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file: its data type in the words of safetensors, and its bytes."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    size: int


def cache_folder(variables: Mapping[str, str]) -> Path:
    """Return the folder of the user's cache in which converted weights are kept. Without a home nobody can make it."""
    return user_cache(variables, "weights")


def cache_key(sources: Iterable[Path], *how: str) -> str:
    """Return what tells converted weights from all others: the files, as they are now, and how they were converted.
    Raises OSError.
    """
    told: list[object] = list(how)
    for path in sources:
        found = path.stat()
        told += [os.path.realpath(path), found.st_size, found.st_mtime_ns, found.st_ino]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:40]


class WeightsCache:
    """One folder of kept files: `most` bytes in all."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most

    def get(self, key: str) -> Path | None:
        """Return the folder with the weights of a key, which counts as used now; None where there are none."""
        place = self._folder / key
        try:
            judge_owner(self._folder)
            if not (place / WEIGHTS).is_file():
                return None
        except OSError:
            return None
        with suppress(OSError):  # a folder that is only read does not say what was used last
            os.utime(place)
        return place

    def put(self, key: str, tensors: Sequence[StoredTensor], data: Iterator[memoryview]) -> Path:
        """Write the bytes of some tensors, in their order, and return the folder. OSError where that cannot be, as for
        a disk that is full.
        """
        header = _header(tensors)
        size = len(header) + sum(tensor.size for tensor in tensors)
        self._make_room(size)
        made = self._folder / f"{_NEW}{os.getpid()}-{secrets.token_hex(4)}"
        made.mkdir(mode=0o700)
        try:
            descriptor = os.open(made / WEIGHTS, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(header)
                for tensor, content in zip(tensors, data, strict=True):
                    if file.write(content) != tensor.size:
                        raise ValueError(f"'{tensor.name}' has {len(content)} bytes, not {tensor.size}")
                file.flush()
                os.fsync(descriptor)
            with suppress(FileExistsError):
                made.rename(self._folder / key)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:  # else another worker was the first
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return self._folder / key

    def drop(self, key: str) -> None:
        """Forget what cannot be read."""
        shutil.rmtree(self._folder / key, ignore_errors=True)

    def _make_room(self, size: int) -> None:
        """Remove what was used least recently, until `size` bytes more are within the bound."""
        if size > self._most:
            raise OSError(errno.EFBIG, f"they take {size} bytes, and the bound is {self._most}")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        judge_owner(self._folder)
        kept = []
        for place in self._folder.iterdir():
            used = place.stat().st_mtime
            if not place.name.startswith(_NEW):
                kept.append((used, place))
            elif used < time.time() - _LEFT_OVER:
                shutil.rmtree(place, ignore_errors=True)
        held = {place: _size(place) for _, place in kept}
        for _, place in sorted(kept):
            if sum(held.values()) + size <= self._most:
                break
            shutil.rmtree(place, ignore_errors=True)
            del held[place]
        free = shutil.disk_usage(self._folder).free
        if free < size + _SPARED:
            raise OSError(errno.ENOSPC, f"they take {size} bytes, and {free} are free")


def _header(tensors: Sequence[StoredTensor]) -> bytes:
    at, told = 0, {}
    for tensor in tensors:
        end = at + tensor.size
        told[tensor.name] = {"dtype": tensor.datatype, "shape": tensor.shape, "data_offsets": (at, end)}
        at = end
    text = json.dumps({"__metadata__": {"format": "pt"}, **told}).encode()
    text += b" " * (-len(text) % 64 + 56)  # with the length in front a multiple of 64: tensors lie aligned
    return len(text).to_bytes(8, "little") + text


def _size(place: Path) -> int:
    try:
        return (place / WEIGHTS).stat().st_size
    except OSError:
        return 0
