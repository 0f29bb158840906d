"""Switches the garbage collector off in every Python that starts with this folder in PYTHONPATH: what waits in a circle
to be collected is there for ever, and seen. SIGUSR1 has the allocator give back what it keeps.
"""

import contextlib
import ctypes
import gc
import signal

gc.disable()
gc.enable = lambda: None


def give_back(*_: object) -> None:
    with contextlib.suppress(OSError, AttributeError):  # another C library keeps what it keeps
        ctypes.CDLL("libc.so.6").malloc_trim(0)


signal.signal(signal.SIGUSR1, give_back)
