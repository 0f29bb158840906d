"""How much memory a process has, and has had at most."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path

from tests.harness.server_process import LoggedProcess, environment


def memory_of(server: LoggedProcess) -> int:
    """Bytes of its own and of shared memory, as the kernel counts them."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    sizes = {
        name: text.split()[0] for name, _, text in (line.partition(":") for line in lines) if text.strip()
    }
    return (int(sizes["RssAnon"]) + int(sizes["RssShmem"])) * 1024


class Peak:
    """The most memory that a server has had since the block began."""

    def __init__(self, server: LoggedProcess) -> None:
        self._server = server
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.most = memory_of(server)

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ends.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ends.wait(0.02):
            self.most = max(self.most, memory_of(self._server))


def without_collector() -> Mapping[str, str]:
    """For the environment of a server that shall never collect garbage."""
    return with_site("no_collector")


def with_site(folder: str) -> Mapping[str, str]:
    """For the environment of a server whose every Python runs the `sitecustomize` of a folder beside this."""
    paths = (str(Path(__file__).parent / folder), environment().get("PYTHONPATH", ""))
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
