"""Shifts the wall clock of every Python that starts with this folder in PYTHONPATH: by so many seconds as the file
that SHIFTED_CLOCK names holds, as a double. Monotonic clocks go on as they are, and so do those of C code.
"""

import mmap
import os
import struct
import time


def shift(path: str) -> None:
    with open(path, "rb") as file:
        held = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    now, now_ns = time.time, time.time_ns

    def seconds() -> float:
        return struct.unpack("d", held)[0]

    time.time = lambda: now() + seconds()
    time.time_ns = lambda: now_ns() + int(seconds() * 1e9)


shift(os.environ["SHIFTED_CLOCK"])
