"""Runs commands of `trivium` that end by themselves, and reads what they print."""

import subprocess
from pathlib import Path

from tests.harness.server_process import COMMAND, SECONDS, environment

USAGE, REFUSED = 2, 1


def trivium(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself; both of its outputs are in `stdout`."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        env={**environment(), **variables},
        check=False,
    )


def refusal(*words: str | Path, status: int = REFUSED, **variables: str) -> str:
    """What a command says that must refuse, without a traceback."""
    done = trivium(*words, **variables)
    assert done.returncode == status, done.stdout
    assert "Traceback" not in done.stdout
    return done.stdout
