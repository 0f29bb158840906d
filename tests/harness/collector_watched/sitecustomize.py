"""Measures the garbage collector of every Python that starts with this folder in PYTHONPATH, in processor time of the
thread that it stops: SIGUSR1 has the longest collections so far, by generation, written to the file that
COLLECTIONS_FILE names, with the number of objects that are watched or frozen.
"""

import gc
import json
import os
import signal
import time

LONGEST = [0.0, 0.0, 0.0]
COUNTS = [0, 0, 0]
BEGAN = [0.0]


def hear(phase: str, info: dict[str, int]) -> None:
    if phase == "start":
        BEGAN[0] = time.thread_time()
        return
    generation = info["generation"]
    COUNTS[generation] += 1
    LONGEST[generation] = max(LONGEST[generation], time.thread_time() - BEGAN[0])


def tell(*_: object) -> None:
    held = len(gc.get_objects()) + gc.get_freeze_count()
    told = {"longest": LONGEST, "counts": COUNTS, "objects": held}
    path = os.environ["COLLECTIONS_FILE"]
    with open(f"{path}.new", "w") as file:
        json.dump(told, file)
    os.replace(f"{path}.new", path)


gc.callbacks.insert(0, hear)
signal.signal(signal.SIGUSR1, tell)
