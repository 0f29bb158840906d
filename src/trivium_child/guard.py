"""The guard of a server: a process that lives as long as the server does, and cleans up behind it.

It hears from the server on standard input which process groups there are, "+NUMBER" and "-NUMBER" a line. The end of
that input is the end of the server, however it came about: the guard then kills what is left of these groups, and of
the sessions that they lead, removes the server's scratch folder, and ends. It is run by its path and imports next to
nothing, since every server has one.
"""

import contextlib
import os
import signal
import sys

_DEAF = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)


def main(scratch: str) -> None:
    """Run by a server, never by hand. What comes to the server's terminal or group does not end the guard."""
    for number in _DEAF:
        signal.signal(number, signal.SIG_IGN)
    groups = follow(0)
    for target in [-group for group in groups] + members(groups):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            os.kill(target, signal.SIGKILL)
    if scratch and os.path.isdir(scratch):
        import shutil

        shutil.rmtree(scratch, ignore_errors=True)


def follow(descriptor: int) -> "set[int]":
    """Return the groups that are there when the input ends."""
    groups: "set[int]" = set()
    rest = b""
    while True:
        piece = os.read(descriptor, 4096)
        if not piece:
            return groups
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            change = groups.add if line[:1] == b"+" else groups.discard
            change(int(line[1:]))


def members(sessions: "set[int]") -> "list[int]":
    """Return the processes of these sessions: children that workers put into groups of their own are among them."""
    found = []
    for name in os.listdir("/proc") if sessions and os.path.isdir("/proc") else ():
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:  # it is no process, or has ended
            continue
        if name.isdigit() and int(fields[3]) in sessions:
            found.append(int(name))
    return found


if __name__ == "__main__":
    main(sys.argv[1])
