"""Decides what to do about a worker process that is watched over. Pure: a view, its limits and a time -> a verdict."""

from enum import Enum

import msgspec

from trivium.types.spec import Limits

SILENCE_BEFORE_PING = 10.0
SILENCE_BEFORE_KILL = 60.0
"""Seconds in which a busy worker says nothing before it is asked for a sign of life, and before it is ended: its
reading thread answers while user code computes, unless the process is stopped or code in C holds everything up.
"""


class Verdict(Enum):
    """Names what the worker's watch shall do."""

    NOTHING = "nothing"
    PING = "ping"
    KILL_SILENT = "kill: silent"
    KILL_LARGE = "kill: too large"
    REPLACE = "replace"


class WorkerView(msgspec.Struct, frozen=True, gc=False):
    """`busy_since`: since when user code has had the batch that it has, None where it has none; `heard_at`: when
    it last said anything; items ended; resident bytes now and when it was new (0: not known).
    """

    busy_since: float | None
    heard_at: float
    items: int
    memory: int
    memory_when_new: int


def judge(view: WorkerView, limits: Limits, now: float) -> tuple[Verdict, str]:
    """The verdict, and why in words that follow "it was killed:" or "it is replaced:"."""
    if limits.most_bytes is not None and view.memory > limits.most_bytes:
        return Verdict.KILL_LARGE, f"it had {view.memory} bytes of memory, and may have {limits.most_bytes}"
    if view.busy_since is not None:
        silence = now - max(view.heard_at, view.busy_since)
        if silence > SILENCE_BEFORE_KILL:
            return Verdict.KILL_SILENT, f"it gave no sign of life for {silence:.0f} s"
        if silence > SILENCE_BEFORE_PING:
            return Verdict.PING, ""
    if limits.recycle_items is not None and view.items >= limits.recycle_items:
        return (
            Verdict.REPLACE,
            f"it has served {view.items} items, and is to be replaced after {limits.recycle_items}",
        )
    grown = view.memory - view.memory_when_new
    if limits.recycle_bytes is not None and view.memory_when_new and grown > limits.recycle_bytes:
        return Verdict.REPLACE, f"its memory has grown by {grown} bytes, and may by {limits.recycle_bytes}"
    return Verdict.NOTHING, ""
