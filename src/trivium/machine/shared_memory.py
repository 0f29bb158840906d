"""Shared memory of clients: which regions are registered, and views of them.

POSIX shared memory only, as files under one folder; a key is a plain name there. Off unless it is allowed: a client
that shrinks its file while it is read ends the whole process with a bus error, which nothing can catch.
"""

import errno
import mmap
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.operations import (
    ListRegions,
    RegionListing,
    RegionOperation,
    RegisterRegion,
    SharedRegion,
)
from trivium.types.registered_names import judge_name
from trivium.types.spoken import spoken

FOLDER = Path("/dev/shm")
OWN = ("trivium-",)
"""Keys begin so that belong to this server: no client may have them."""

MOST_REGIONS = 4096
_LONGEST_KEY = 255
SWITCHED_OFF = (
    "Shared memory of clients is switched off: one that shrinks its memory while it is read would end this server. "
    "Start the server with --client-shared-memory if all clients are trusted, or send the data in the body."
)


@dataclass(frozen=True, slots=True)
class _Mapped:
    region: SharedRegion
    memory: mmap.mmap


class Regions:
    """One per server. Changed on the loop only; viewed from any thread."""

    def __init__(
        self, is_allowed: bool = False, folder: Path = FOLDER, reserved: tuple[str, ...] = ()
    ) -> None:
        self.is_allowed = is_allowed
        self._folder = folder
        self._reserved = (*OWN, *reserved)
        self._mapped: dict[str, _Mapped] = {}

    def answer(self, operation: RegionOperation) -> RegionListing:
        """Do it, and tell the regions that there are then. UNSUPPORTED where none are allowed, NOT_FOUND, INVALID."""
        self._check_allowed()
        if isinstance(operation, RegisterRegion):
            self._register(operation.region)
        elif not isinstance(operation, ListRegions):
            self._unregister(operation.name)
        elif operation.name:
            return RegionListing((self._find(operation.name).region,))
        return RegionListing(tuple(self._mapped[name].region for name in sorted(self._mapped)))

    def view(self, name: str, offset: int, size: int) -> memoryview:
        """See `types.interfaces.RegionViews`."""
        self._check_allowed()
        mapped = self._find(name)
        begin = mapped.region.offset + offset
        if offset < 0 or size < 0 or offset + size > mapped.region.size:
            raise ServeError(
                Code.INVALID,
                f"Shared memory region {name!r} has {mapped.region.size} bytes, but {size} from {offset} on were asked "
                "for. Correct shared_memory_offset and shared_memory_byte_size.",
                info=ErrorInfo.of(
                    reasons.REGION_OFFSET if offset >= mapped.region.size else reasons.REGION_SIZE,
                    region=name,
                ),
            )
        if begin + size > mapped.memory.size():  # asks the system: what has shrunk by now must not be touched
            raise ServeError(
                Code.INVALID,
                f"The shared memory of region {name!r} has been shrunk since it was registered. Register it anew.",
            )
        return memoryview(mapped.memory)[begin : begin + size]

    def _check_allowed(self) -> None:
        if not self.is_allowed:
            raise ServeError(Code.UNSUPPORTED, spoken(SWITCHED_OFF), info=ErrorInfo.of(reasons.NO_REGIONS))

    def _find(self, name: str) -> _Mapped:
        mapped = self._mapped.get(name)
        if mapped is None:
            there = ", ".join(map(repr, sorted(self._mapped)[:20])) or "none"
            raise ServeError(
                Code.NOT_FOUND,
                f"There is no shared memory region {name!r}; registered are: {there}. Register it first.",
                info=ErrorInfo.of(reasons.UNKNOWN_REGION, region=name),
            )
        return mapped

    def _register(self, region: SharedRegion) -> None:
        judge_name(region.name, "a shared memory region")
        if region.name in self._mapped:
            raise ServeError(
                Code.INVALID,
                f"A shared memory region {region.name!r} is registered already. Unregister it, or choose another name.",
                info=ErrorInfo.of(reasons.REGION_TWICE, region=region.name),
            )
        if len(self._mapped) >= MOST_REGIONS:
            raise ServeError(
                Code.INVALID, f"{MOST_REGIONS} regions are registered, which is the limit. Unregister some."
            )
        path = self._folder / _file_name(region.key, self._reserved)
        self._mapped[region.name] = _Mapped(region, _mapped(path, region))

    def _unregister(self, name: str) -> None:
        """Unmapped once nobody views it any more."""
        if name:
            self._mapped.pop(name, None)
        else:
            self._mapped.clear()


def _file_name(key: str, reserved: tuple[str, ...]) -> str:
    """The one file that a key can mean. INVALID for a path, and for the name of what is not a client's."""
    name = key.removeprefix("/")
    is_plain = name not in ("", ".", "..") and "/" not in name and "\0" not in name
    if not is_plain or len(os.fsencode(name)) > _LONGEST_KEY:
        raise ServeError(
            Code.INVALID,
            f"{key[:80]!r} is no key of shared memory. Give a name like '/weights', without folders.",
        )
    if name.startswith(reserved):
        raise ServeError(
            Code.INVALID,
            f"The shared memory {key[:80]!r} is a server's own. Choose a key that begins otherwise.",
        )
    return name


def _mapped(path: Path, region: SharedRegion) -> mmap.mmap:
    """The file from its beginning to the region's end."""
    end = region.offset + region.size
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise _unopened(region, error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ServeError(
                Code.INVALID, f"{region.key!r} is no shared memory. Register what shm_open has made."
            )
        if region.size <= 0 or region.offset < 0 or end > status.st_size:
            raise ServeError(
                Code.INVALID,
                f"The shared memory {region.key!r} has {status.st_size} bytes, but {region.size} from {region.offset} "
                "on were asked for. A region has a byte at least and ends in its memory: hint offset and byte_size.",
                info=ErrorInfo.of(reasons.BEYOND_MEMORY, region=region.name),
            )
        return mmap.mmap(descriptor, end)
    except OSError as error:
        raise _unopened(region, error) from error
    finally:
        os.close(descriptor)


def _unopened(region: SharedRegion, error: OSError | ValueError) -> ServeError:
    is_absent = isinstance(error, OSError) and error.errno == errno.ENOENT
    why = said_by(error)
    return ServeError(
        Code.NOT_FOUND if is_absent else Code.INVALID,
        f"The shared memory {region.key[:80]!r} cannot be opened: {why}. The server must run on the client's machine, "
        "see the same /dev/shm, and may write to it.",
        info=ErrorInfo.of(reasons.UNOPENED, key=region.key),
    )
