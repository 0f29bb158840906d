"""Notes which Python files a process calls into while it is asked to; on the path of `bench.path`'s children only.

The folder `CALLS_FOLDER` holds one shared byte, the number of the walk that is under way, or 0. Each file that a walk
enters is a line of the process's own file: number, a tab, the file's name. Python 3.8 syntax, as workers are.
"""

import mmap
import os
import sys
import threading


def _watch(folder):
    with open(os.path.join(folder, "walk"), "rb") as opened:
        walk = mmap.mmap(opened.fileno(), 1, prot=mmap.PROT_READ)
    notes = os.open(os.path.join(folder, f"{os.getpid()}.calls"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    seen = set()

    def note(frame, event, _argument):
        number = walk[0]
        if number and event == "call":
            call = number, frame.f_code.co_filename
            if call not in seen:
                seen.add(call)
                os.write(notes, b"%d\t%s\n" % (number, call[1].encode()))

    threading.setprofile(note)
    sys.setprofile(note)


if "CALLS_FOLDER" in os.environ:
    _watch(os.environ["CALLS_FOLDER"])
