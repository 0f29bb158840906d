"""How a worker process ended, in sentences: signal or status, whether memory ran out, its last words. Pure but for
`oom_kills`, which reads the kernel's count.
"""

import signal
from collections.abc import Sequence
from pathlib import Path

EVENTS = Path("/sys/fs/cgroup/memory.events")
STATUSES = {
    70: "ended: its connection to the server had failed, perhaps because user code had closed it",
    72: "ended: it could not write to the server any more, perhaps because user code had closed its connection",
}
"""Exit statuses that `trivium_child` gives itself."""

MOST_WORDS = 8192
"""Characters of them."""

_NAMES = {number.value: number.name for number in signal.Signals}


def oom_kills(events: Path = EVENTS) -> int | None:
    """Processes of this control group that the kernel has killed for want of memory; None where it cannot be told."""
    try:
        for line in events.read_text().splitlines():
            key, _, count = line.partition(" ")
            if key == "oom_kill":
                return int(count)
    except (OSError, ValueError):
        pass
    return None


def describe(
    name: str,
    pid: int,
    status: int | None,
    why: str,
    memory: tuple[int | None, int | None],
    last: Sequence[str],
) -> str:
    """`status` as of `Popen.returncode` (None: it still ran); `why` it was killed by us, if it was; `memory` the
    counts of `oom_kills` when it started and now; `last` its last lines on standard error.
    """
    text = f"Worker {name} (process {pid}) {_how(status, why)}."
    before, now = memory
    if status == -signal.SIGKILL and not why:
        if before is not None and now is not None and now > before:
            text += " The kernel has killed for want of memory meanwhile: there was less than it needed."
        else:
            text += " Nobody here sent that; the kernel does when memory runs out, or somebody did by hand."
    return text + last_words(last)


def last_words(lines: Sequence[str]) -> str:
    """A sentence of the last lines on standard error, empty where there are none. It goes to clients, and so has a
    length: of more than that the end is told.
    """
    if not lines:
        return ""
    words = " / ".join(lines)
    if len(words) > MOST_WORDS:
        words = "... " + words[-MOST_WORDS:]
    return f" Its last words: {words}"


def _how(status: int | None, why: str) -> str:
    if why:
        return f"was killed: {why}"
    if status is None:
        return "closed its connection and was killed"
    if status in STATUSES:
        return STATUSES[status]
    if status < 0:
        return f"was killed by {_NAMES.get(-status, f'signal {-status}')}"
    return f"ended by itself with status {status}"
