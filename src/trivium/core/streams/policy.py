"""Decides whether who makes an answer in parts may go on while its receiver is full. Pure.

A receiver that is merely slow holds its sender, which costs nobody memory. Once another request waits for what the
sender occupies, its parts are kept instead, so that no stream's progress depends on whether another one is read.
"""

from enum import Enum

import msgspec


class StreamVerdict(Enum):
    """Names what becomes of an answer in parts whose receiver is full."""

    FLOW = "flow"  # its parts are made, and kept
    HOLD = "hold"  # who makes them makes no more than a window of them
    END = "end"  # it has left too much unread: no further part is made


class StreamBounds(msgspec.Struct, frozen=True, gc=False):
    """Bounds of one answer that its receiver has not taken: bytes in memory before some are written to a file, and
    bytes in all.
    """

    memory: int
    total: int


class StreamView(msgspec.Struct, frozen=True, gc=False):
    """One answer whose receiver is full: does another request wait for what its sender occupies, its bytes in memory
    and in files, is a file being written, and can one be written at all?
    """

    is_waited_for: bool
    memory: int
    filed: int
    is_writing: bool
    has_files: bool


def judge_stream(view: StreamView, bounds: StreamBounds) -> StreamVerdict:
    """Return what becomes of it now. A sender that is quicker than the disk waits for that."""
    if not view.is_waited_for:
        return StreamVerdict.HOLD
    most = bounds.total if view.has_files else bounds.memory
    if view.memory + view.filed > most:
        return StreamVerdict.END
    if view.is_writing and view.memory > 2 * bounds.memory:
        return StreamVerdict.HOLD
    return StreamVerdict.FLOW
