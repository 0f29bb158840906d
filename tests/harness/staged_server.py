"""A server of a stage as a child process, which must leave nothing behind however it ends."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.hanging import Stage
from tests.harness.raw_http import connect
from tests.harness.server_process import COMMAND, ServerProcess, environment, living, until

SECONDS = 60.0
"""For an end that takes five where the machine has nothing else to do; what hangs here hangs for ten minutes."""


class StagedServer(ServerProcess):
    """A server that may have no log to read."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, port: int) -> None:
        if not port:
            super().__init__(process, log)
            return
        super(ServerProcess, self).__init__(process, log)
        self.port = port
        until(lambda: answers(port) and self.is_ready(), lambda: f"nobody listens on {port}")


def answers(port: int) -> bool:
    try:
        connect(port).close()
    except OSError:
        return False
    return True


@contextmanager
def child_of(stage: Stage, *words: str | Path) -> "Iterator[tuple[subprocess.Popen[bytes], Path, Path]]":
    """The server's process, its log, and the folder of its temporary files. It must leave nothing in that, and no
    process that has it in its environment.
    """
    log, scratch = stage.folder / "log", stage.folder / "temporary"
    scratch.mkdir()
    variables = {**environment(), "TMPDIR": str(scratch)}
    command = [*COMMAND, "serve", "--http-port", str(stage.port), *words, *stage.words, stage.models]
    with stage.kept, log.open("wb") as output:
        out, err = (output if one < 0 else one for one in stage.outputs or (-1, -1))
        child = subprocess.Popen([*map(str, command)], stdout=out, stderr=err, env=variables)
        try:
            yield child, log, scratch
        finally:
            child.kill()
            child.wait()
    until(lambda: not living(scratch), lambda: f"{living(scratch)} are left", SECONDS)
    left = lambda: [path.name for path in scratch.glob("trivium-*")]  # noqa: E731
    until(lambda: not left(), lambda: f"{left()} are left in {scratch}", SECONDS)
