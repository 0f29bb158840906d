"""The guard of a server: a process that lives as long as the server does, and cleans up behind it and its workers.

It hears from the server on standard input which process groups there are: "+NUMBER MARK" for one that begins, and
"-NUMBER" for one that has ended. Whatever was started in it has the mark in its environment, and is killed once the
group has ended, even where it has left for a session of its own. The end of that input is the end of the server,
however it came about: the guard then kills what is left of all groups, of the sessions that they lead, and of whatever
has a mark of this server, removes the server's scratch folder, and ends. It is run by its path and imports next to
nothing, since every server has one.
"""

import contextlib
import os
import signal
import sys
import time

MARKS = "_TRIVIUM_MARKS"
"""The variable that holds the marks, with blanks between: "SERVER.NUMBER", one for each server that a process is of."""

_DEAF = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
_ROUNDS = 5
"""How often it looks for what was started while it looked."""
_LOOKS = 100
"""How often, a millisecond apart, it looks for the environment of a process that is just being started."""
_KERNEL_THREAD = 0x00200000


def main(scratch: str, server: str) -> None:
    """Run by a server, never by hand. What comes to the server's terminal or group does not end the guard."""
    for number in _DEAF:
        signal.signal(number, signal.SIG_IGN)
    groups = follow(0)
    kill([-group for group in groups] + members(groups))
    kill_marked({server.encode()})
    if scratch and os.path.isdir(scratch):
        import shutil

        shutil.rmtree(scratch, ignore_errors=True)


def follow(descriptor: int) -> "set[int]":
    """Return the groups that are there when the input ends. Kills meanwhile what has left those that have ended."""
    groups: dict[int, bytes] = {}
    rest = b""
    while True:
        piece = os.read(descriptor, 4096)
        if not piece:
            return set(groups)
        *lines, rest = (rest + piece).split(b"\n")
        ended = set()
        for line in lines:
            group, _, mark = line[1:].partition(b" ")
            if line[:1] == b"+":
                groups[int(group)] = mark
            else:
                ended.add(groups.pop(int(group), b""))
        kill_marked(ended - {b""})


def kill(targets: "list[int]") -> None:
    """Kill processes, or groups by their negative numbers."""
    for target in targets:
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            os.kill(target, signal.SIGKILL)


def kill_marked(marks: "set[bytes]") -> None:
    """Kill whatever has one of these marks, or a mark of one of these servers."""
    for _ in range(_ROUNDS):
        found = marked(marks)
        if not found:
            return
        kill(found)


def members(sessions: "set[int]") -> "list[int]":
    """Return the processes of these sessions: children that workers put into groups of their own are among them."""
    found = []
    for number in _processes() if sessions else ():
        fields = _read(number, "stat").rpartition(b")")[2].split()
        if fields and int(fields[3]) in sessions:
            found.append(number)
    return found


def marked(marks: "set[bytes]") -> "list[int]":
    """Return the processes that were started with one of these marks, or with one of these servers' in them. One that
    has ended and is not buried yet has none any more.
    """
    found = []
    name = MARKS.encode() + b"="
    for number in _processes() if marks else ():
        for variable in _environment(number).split(b"\0"):
            if variable.startswith(name):
                theirs = variable[len(name) :].split(b" ")
                if not marks.isdisjoint(theirs + [mark.partition(b".")[0] for mark in theirs]):
                    found.append(number)
    return found


def _environment(process: int) -> bytes:
    """Read what a process was started with. The system shows none for the moment in which it loads the program."""
    found = b""
    with contextlib.suppress(OSError):  # it has ended, or is somebody else's
        with open(f"/proc/{process}/environ", "rb") as opened:
            found = opened.read()
        for _ in range(0 if found else _LOOKS):
            is_starting = _is_starting(process)
            with open(f"/proc/{process}/environ", "rb") as opened:
                found = opened.read()
            if found or not is_starting:
                break
            time.sleep(0.001)
    return found


def _is_starting(process: int) -> bool:
    """Say whether a process has no environment yet, by the fields for its flags and its environment's end (9, 51)."""
    fields = _read(process, "stat").rpartition(b")")[2].split()
    lives = len(fields) > 48 and fields[0] not in (b"Z", b"X")
    return lives and not int(fields[6]) & _KERNEL_THREAD and int(fields[48]) == 0


def _processes() -> "list[int]":
    names = os.listdir("/proc") if os.path.isdir("/proc") else []
    return [int(name) for name in names if name.isdigit()]


def _read(process: int, file: str) -> bytes:
    """Read what the system says of a process; nothing where it has ended, or is somebody else's."""
    try:
        with open(f"/proc/{process}/{file}", "rb") as opened:
            return opened.read()
    except OSError:
        return b""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
