"""Our own `torchserve`, started by the same configuration and the same words as the original."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.torchserve_beside.addresses import Addresses, free_addresses
from tests.e2e.torchserve_beside.original import STARTED
from tests.harness.server_process import LoggedProcess, environment
from tests.harness.torchserve_command import TORCHSERVE


@contextlib.contextmanager
def ours(folder: Path, store: Path, text: str, *words: str) -> Iterator[Addresses]:
    """It serves in `folder`, with this in its configuration and these words on its command line."""
    addresses = free_addresses()
    file = folder / "config.properties"
    file.write_text(addresses.properties() + text)
    line = [*TORCHSERVE, "--start", "--foreground", "--ts-config", file, "--model-store", store, *words]
    log = folder / "log"
    variables = {**environment(), "TEMP": str(folder), "TMPDIR": str(folder)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*map(str, line)], stdout=output, stderr=subprocess.STDOUT, env=variables, cwd=folder
        )
    server = LoggedProcess(process, log)
    try:
        server.await_line(STARTED)
        yield addresses
        process.terminate()
        assert server.wait() == 0, server.said()
    finally:
        process.kill()
        process.wait()
