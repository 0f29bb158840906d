"""The one extractor: a model archive (zip, tar, tar.gz, by its first bytes) -> a private folder, or a refusal.

Decides which members may become files and how many bytes they may have; what the files mean, formats know. All is
counted as it comes, since what an archive says of itself may lie. Names are compared by components.
"""

import errno
import gzip
import hashlib
import os
import re
import shutil
import stat
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from trivium.codecs import tar
from trivium.files import open_file
from trivium.types.errors import ConfigError, ServeError, frameless, said_by
from trivium.types.findings import Finding, Severity


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of an archive: bytes unpacked, files and folders, and bytes unpacked per byte of its own
    (beyond `free_bytes`: a small archive of zeros is no bomb).
    """

    total_bytes: int = 2 * 2**30
    members: int = 10_000
    ratio: int = 1000
    free_bytes: int = 2**20


BOUNDS = Bounds()
MAX_DEPTH = 64
MAX_NAME_BYTES = 255
_MOST_FINDINGS = 10
_DIRECTORY_BYTES = 512  # per member, of a zip's central directory: 46, the name and some fields
_FILE, _FOLDER = "a file", "a folder"
_ZIP_KINDS = {0: _FILE, stat.S_IFREG: _FILE, stat.S_IFDIR: _FOLDER, stat.S_IFLNK: "a symbolic link"}
_CLEARING = threading.Lock()
_REPACK = "Pack it anew, from a folder that holds plain files and folders only."


@dataclass(frozen=True, slots=True)
class _Member:
    """A name as the archive writes it, in words what it is, and its data: to be read before the next member."""

    name: str
    kind: str
    data: Iterator[bytes]


class _Refused(Exception):
    """A refusal: what was found, what is expected, and what to do."""

    def __init__(self, found: str, expected: str, hint: str = _REPACK) -> None:
        super().__init__(found, expected, hint)


class _Allowance:
    """Bytes that may still be unpacked."""

    def __init__(self, bounds: Bounds, size: int) -> None:
        self._left = self._most = min(bounds.total_bytes, max(bounds.free_bytes, bounds.ratio * size))
        self._size = size

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            found = f"an archive of {self._size} bytes that holds more than {self._most}"
            raise _Refused(found, "at most that", "Serve the folder itself.")


def unpack(archive: Path, scratch: Path, bounds: Bounds = BOUNDS) -> Path:
    """The folder below `scratch` with the archive's files (mode 0600, never executable; folders 0700).

    The same file, unchanged, has the same folder: a second call, or one in another thread, unpacks nothing new, unless
    somebody has removed what was unpacked.
    Raises ConfigError with a finding per reason; then nothing is left behind.
    """
    try:
        about = archive.stat()
        told = f"{archive.resolve()}\0{about.st_size}\0{about.st_mtime_ns}"
        target = scratch / hashlib.sha256(os.fsencode(told)).hexdigest()[:32]
        if _is_there(archive, target):
            return target
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=scratch))
        try:
            with open_file(archive) as file:
                _Unpacking(archive, folder, bounds).run(_members(file, bounds, about.st_size))
            return _settled(folder, target)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    except OSError as error:
        raise ConfigError((_finding(archive, _unwritten(error, scratch)),)) from error
    except _Refused as refused:
        raise ConfigError((_finding(archive, refused),)) from refused


def _is_there(archive: Path, target: Path) -> bool:
    """Has it been unpacked, and is it whole? What a cleaner of temporary folders has left of one is removed."""
    if not target.is_dir():
        return False
    there = names(archive)  # an archive that hangs holds up nobody else
    with _CLEARING:
        if not target.is_dir():
            return False
        if all(os.path.lexists(target.joinpath(*_components(name))) for name in there):
            return True
        shutil.rmtree(target)
        return False


def names(path: Path) -> tuple[str, ...]:
    """The members' names as the archive writes them, without unpacking; none for what is no archive, of a damaged
    one those in front of the damage. Never raises. Remembered until the file changes.
    """
    try:
        about = path.stat()
        return _names(path.resolve(), about.st_size, about.st_mtime_ns) if stat.S_ISREG(about.st_mode) else ()
    except (OSError, ValueError, RuntimeError):  # of what is no path, or a loop of links
        return ()


@lru_cache(maxsize=256)
def _names(path: Path, size: int, modified: int) -> tuple[str, ...]:
    found: list[str] = []
    try:
        with _translated(), open_file(path) as file:
            for member in _members(file, BOUNDS, size):
                found.append(member.name)
                if len(found) > BOUNDS.members:
                    break
    except (OSError, _Refused):
        pass
    return tuple(found)


def _members(file: BinaryIO, bounds: Bounds, size: int) -> Iterator[_Member]:
    start = file.read(512)
    file.seek(0)
    allowance = _Allowance(bounds, size)
    if start[:4] in (b"PK\3\4", b"PK\5\6"):
        return _zip_members(file, bounds, allowance)
    if start[:2] == b"\x1f\x8b":
        return _tar_members(gzip.GzipFile(fileobj=file), allowance)
    if tar.is_tar(start):
        return _tar_members(file, allowance)
    raise _Refused(f"a file that begins with {start[:4]!r}", "a zip (.mar, .zip), tar, tar.gz or tgz archive")


def _settled(folder: Path, target: Path) -> Path:
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        shutil.rmtree(folder, ignore_errors=True)  # another thread was faster
    return target


class _Unpacking:
    """One archive on its way into a folder. Writes until the first fault; further ones are only collected."""

    def __init__(self, archive: Path, folder: Path, bounds: Bounds) -> None:
        self._archive = archive
        self._folder = folder
        self._bounds = bounds
        self._kinds: dict[tuple[str, ...], str] = {}
        self._findings: list[Finding] = []

    def run(self, members: Iterator[_Member]) -> None:
        """Raises ConfigError or OSError."""
        try:
            with _translated():
                for count, member in enumerate(members, 1):
                    if count > self._bounds.members:
                        raise _too_many(self._bounds)
                    self._take(member)
                    if len(self._findings) >= _MOST_FINDINGS:
                        break
        except _Refused as refused:
            self._findings.append(_finding(self._archive, frameless(refused)))
        if self._findings:
            raise ConfigError(tuple(self._findings))

    def _take(self, member: _Member) -> None:
        try:
            path = _components(member.name)
            if member.kind not in (_FILE, _FOLDER):
                raise _Refused(member.kind, "plain files and folders")
            for depth in range(1, len(path) + 1):
                self._add(path[:depth], _FOLDER if depth < len(path) else member.kind)
        except _Refused as refused:
            self._findings.append(_finding(self._archive, frameless(refused), member.name))
            return
        if member.kind == _FILE and not self._findings:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with open(os.open(self._folder.joinpath(*path), flags, 0o600), "wb") as file:
                file.writelines(member.data)

    def _add(self, path: tuple[str, ...], kind: str) -> None:
        known = self._kinds.get(path)
        if known is None:
            if len(self._kinds) >= self._bounds.members:
                raise _too_many(self._bounds)
            self._kinds[path] = kind
            if kind == _FOLDER and not self._findings:
                self._folder.joinpath(*path).mkdir(mode=0o700)
        elif _FILE in (known, kind):
            raise _Refused(f"{kind} where {known} of the same name came before", "names that differ")


def _components(name: str) -> tuple[str, ...]:
    path = tuple(part for part in name.split("/") if part not in ("", "."))
    if "\0" in name or "\\" in name:
        raise _Refused("a name with a NUL character or a backslash", "components divided by /")
    if name.startswith("/") or re.match("[A-Za-z]:", name):
        raise _Refused("an absolute name", "a name relative to the archive's top")
    if ".." in path:
        raise _Refused("a name that leaves its folder by ..", "a name without ..")
    if not path and not name.endswith(("/", ".")):
        raise _Refused("an empty name", "a name")
    if len(path) > MAX_DEPTH or any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in path):
        expected = f"at most {MAX_DEPTH} components of at most {MAX_NAME_BYTES} bytes each"
        raise _Refused("a name that file systems cannot hold", expected)
    return path


def _tar_members(file: BinaryIO | gzip.GzipFile, allowance: _Allowance) -> Iterator[_Member]:
    def read(most: int) -> bytes:
        data = file.read(most)
        allowance.spend(len(data))
        return data

    for member in tar.members(read):
        yield _Member(member.name, member.kind.value, member.data)


def _zip_members(file: BinaryIO, bounds: Bounds, allowance: _Allowance) -> Iterator[_Member]:
    _check_directory(file, bounds)
    with ZipFile(file) as archive:
        for info in archive.infolist():
            yield _Member(info.orig_filename, _zip_kind(info), _zip_data(archive, info, allowance))


def _check_directory(file: BinaryIO, bounds: Bounds) -> None:
    """Refuse a central directory too large to be read, by all that the end of the file says of its size."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - 2**16 - 256))
    tail = file.read()
    for signature, place, form in ((b"PK\5\6", 10, "<HI"), (b"PK\6\6", 32, "<QQ")):
        at = tail.rfind(signature)
        if 0 <= at <= len(tail) - place - struct.calcsize(form):
            count, size = struct.unpack_from(form, tail, at + place)
            is_elsewhere = form == "<HI" and size == 2**32 - 1
            if not is_elsewhere and (count > bounds.members or size > bounds.members * _DIRECTORY_BYTES):
                raise _too_many(bounds)


def _zip_kind(info: ZipInfo) -> str:
    if info.flag_bits & 1:
        return "an encrypted member"
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):  # others inflate without a bound
        return f"a member compressed by method {info.compress_type}"
    kind = _ZIP_KINDS.get(stat.S_IFMT(info.external_attr >> 16), "a device or pipe")
    return _FOLDER if kind == _FILE and info.is_dir() else kind


def _zip_data(archive: ZipFile, info: ZipInfo, allowance: _Allowance) -> Iterator[bytes]:
    with archive.open(info) as member:
        while piece := member.read(tar.PIECE):
            allowance.spend(len(piece))
            yield piece


@contextmanager
def _translated() -> Iterator[None]:
    """Turn whatever damaged bytes raise, by `zipfile` of many kinds, into a refusal."""
    try:
        yield
    except ServeError as error:
        raise _Refused(error.message, "a whole archive", "") from error
    except Exception as error:
        if isinstance(error, _Refused) or (isinstance(error, OSError) and error.errno):
            raise
        found = f"a damaged archive: {said_by(error)[:200] or type(error).__name__!r}"
        raise _Refused(found, "a whole one", "Pack it anew, or copy it anew.") from error


def _too_many(bounds: Bounds) -> _Refused:
    return _Refused(
        "too many members", f"at most {bounds.members} files and folders", "Serve the folder itself."
    )


def _unwritten(error: OSError, scratch: Path) -> _Refused:
    found = f"{error.strerror or error}: {error.filename or scratch}"
    return _Refused(found, "room and rights to unpack it", f"See to {scratch}, or serve the folder itself.")


def _finding(archive: Path, refused: _Refused, member: str = "") -> Finding:
    found, expected, hint = refused.args
    return Finding(Severity.ERROR, str(archive), None, repr(member[:200])[1:-1], found, expected, hint)
