"""The real TorchServe, in the environment that `make original` builds; knows nothing of what is served."""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.torchserve_beside.addresses import Addresses, free_addresses
from tests.harness.server_process import SECONDS, until

ENVIRONMENT = Path(__file__).parents[3] / ".venv-original"
STARTED = re.compile("^Model server started.$", re.MULTILINE)


@contextlib.contextmanager
def original(folder: Path, store: Path, text: str, *words: str) -> Iterator[Addresses]:
    """It serves in `folder`, with this in its configuration and these words on its command line."""
    command = ENVIRONMENT / "bin" / "torchserve"
    assert command.exists(), f"There is no TorchServe in {ENVIRONMENT}. Run `make original`, which builds it."
    addresses = free_addresses()
    file = folder / "config.properties"
    file.write_text(addresses.properties() + text)
    line = [command, "--start", "--foreground", "--ts-config", file, "--model-store", store, *words]
    variables = {
        **os.environ,
        "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
        "TEMP": str(folder),
        "TMPDIR": str(folder),
    }
    log = folder / "log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*map(str, line)], stdout=output, stderr=subprocess.STDOUT, env=variables, cwd=folder
        )
    try:
        until(
            lambda: bool(STARTED.search(log.read_text())) or process.poll() is not None,
            log.read_text,
            2 * SECONDS,
        )
        assert process.poll() is None, f"the original has ended:\n{log.read_text()[-4000:]}"
        yield addresses
    except AssertionError as error:
        error.add_note(f"the original said last:\n{log.read_text()[-4000:]}")
        raise
    finally:
        subprocess.run(
            [command, "--stop", "--foreground"], env=variables, cwd=folder, timeout=SECONDS, check=False
        )
        process.kill()
        process.wait()
