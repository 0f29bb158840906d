"""Variables by which libraries leave out progress bars and advice: a log has lines, and nobody watches it."""

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

QUIET: Mapping[str, str] = {
    "TQDM_DISABLE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "GLOG_minloglevel": "3",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
}
"""Of tqdm, huggingface_hub, Paddle and transformers."""

_PATIENCE = 1.0
"""Seconds that are waited for the last lines: a process that was started meanwhile may hold the pipe open."""


def quieted(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with these variables; those that somebody has set stay as they are."""
    return {**QUIET, **environment}


@contextmanager
def without_lines(starts: Sequence[bytes]) -> Iterator[None]:
    """Leave out lines of standard error that begin so, for libraries that nothing else keeps from printing them; all
    others go on their way. For one at a time.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    hearing = threading.Thread(target=_hand_on, args=(reader, kept, tuple(starts)), daemon=True)
    hearing.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        hearing.join(_PATIENCE)


def _hand_on(reader: int, kept: int, starts: tuple[bytes, ...]) -> None:
    with os.fdopen(reader, "rb") as lines, os.fdopen(kept, "wb", buffering=0) as out:
        for line in lines:
            if not line.startswith(starts):
                out.write(line)
