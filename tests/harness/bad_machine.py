"""A machine that turns bad under a server: its disk fills up, its wall clock jumps."""

import contextlib
import os
import resource
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

SMALL = 2 * 2**20
"""Bytes of a disk that is filled quickly."""

_MOUNTS = f'mount -t tmpfs -o size={SMALL} none "$0" && exec "$@"'


class WallClock:
    """The wall clock of all Python processes that are started with `variables`, moved by the shim beside this."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.jump(0.0)

    @property
    def variables(self) -> Mapping[str, str]:
        """For their environment."""
        return {"SHIFTED_CLOCK": str(self._file), "PYTHONPATH": os.pathsep.join(self._path())}

    def _path(self) -> Iterator[str]:
        yield str(Path(__file__).parent / "shifted_clock")
        if others := os.environ.get("PYTHONPATH"):
            yield others

    def jump(self, seconds: float) -> None:
        """Have it go so far ahead of the true time from now on."""
        with self._file.open("r+b" if self._file.exists() else "w+b") as file:  # it is mapped elsewhere
            file.write(struct.pack("d", seconds))


class SmallDisk:
    """A folder for a server to write to, and that can be full. A disk of its own where the system lets us mount one for
    the server alone; elsewhere the server's processes are kept from making any file larger.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        mounts = ["unshare", "-m", "sh", "-c", _MOUNTS, folder, "true"]
        try:
            self.is_mounted = not subprocess.run(mounts, capture_output=True).returncode
        except OSError:
            self.is_mounted = False

    @property
    def prefix(self) -> tuple[str | Path, ...]:
        """What the command of the server begins with."""
        return ("unshare", "-m", "sh", "-c", _MOUNTS, self.folder) if self.is_mounted else ()

    def seen_by(self, server: psutil.Process) -> Path:
        """The folder, from outside."""
        return Path(f"/proc/{server.pid}/root{self.folder}") if self.is_mounted else self.folder

    @contextlib.contextmanager
    def filled(self, server: psutil.Process) -> Iterator[None]:
        """Nothing can be written to it, until the block ends."""
        if not self.is_mounted:
            before = server.rlimit(resource.RLIMIT_FSIZE)
            server.rlimit(resource.RLIMIT_FSIZE, (0, before[1]))
            try:
                yield
            finally:
                server.rlimit(resource.RLIMIT_FSIZE, before)
            return
        filler = self.seen_by(server) / "filler"
        try:
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                while file.write(b"x" * 4096):
                    pass
            yield
        finally:
            filler.unlink()
