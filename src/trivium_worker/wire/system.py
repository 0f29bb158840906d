"""Asks the operating system for what Linux alone has, with what stands in for it on other systems.

Every such name is asked for here and nowhere else, so that this file says what is different elsewhere. Files under
/proc and /sys are read where they are needed: where there are none, a reader finds nothing, which each of them knows.
"""

import errno
import fcntl
import mmap
import os
import subprocess
import tempfile

_LONGEST_NAME = 200
"""Bytes; Linux takes 249."""


def anonymous_memory(name: str, size: int) -> int:
    """Return a descriptor of `size` bytes of memory that belong to no file. On Linux nobody can make it smaller or
    larger: whoever reads what another process has cut off is ended by SIGBUS. The name is for people, and cut.
    Elsewhere it is a file without a name in the folder of temporary files. Raises OSError.
    """
    if not hasattr(os, "memfd_create"):
        return _nameless_file(size)
    shown = os.fsdecode(os.fsencode(name)[:_LONGEST_NAME])
    descriptor = os.memfd_create(shown, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, size)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _nameless_file(size: int) -> int:
    descriptor, path = tempfile.mkstemp(prefix="trivium-memory-")
    try:
        os.unlink(path)
        os.ftruncate(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def free_pages(memory: "mmap.mmap", offset: int, size: int) -> None:
    """Give pages of shared memory back to the system, in all processes that have it. Elsewhere they stay."""
    if hasattr(mmap, "MADV_REMOVE"):
        memory.madvise(mmap.MADV_REMOVE, offset, size)


def end_of_process(pid: int) -> int:
    """Return a descriptor that can be read once a process has ended; -1 where the system has none, and the end of the
    process's connection has to tell.
    """
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):  # an old kernel has none, either
        return -1


def has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Tell whether a child has ended, on Linux without burying it: until then its number, and that of its group, is
    nobody else's.
    """
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return process.poll() is not None


def processors(thread: int = 0) -> "set[int]":
    """Return the processors that a thread may run on, by default the calling one; elsewhere all that there are. Raises
    ProcessLookupError where it is gone.
    """
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(thread)
    return set(range(os.cpu_count() or 1))


def stay_on(thread: int, chosen: "set[int]") -> None:
    """Let a thread (0: the calling one) run on these processors only. Raises OSError where that cannot be."""
    if not hasattr(os, "sched_setaffinity"):
        raise OSError(errno.ENOSYS, "this system does not let a process choose its processors")
    os.sched_setaffinity(thread, chosen)


def can_stay() -> bool:
    """Say whether a thread can choose its processors here, and read where it runs."""
    return hasattr(os, "sched_setaffinity") and os.path.exists("/proc/thread-self/stat")


def scheduler(thread: int) -> int:
    """Return the policy by which a thread is scheduled. Asked where `can_stay` only."""
    return os.sched_getscheduler(thread)


def schedule(thread: int, policy: int) -> None:
    """Change that. Raises OSError where it cannot be."""
    os.sched_setscheduler(thread, policy, os.sched_param(0))


def background(policy: int) -> int:
    """Return the policy of threads that are woken without an interruption, in place of an ordinary one."""
    return os.SCHED_BATCH if policy == os.SCHED_OTHER else policy


def libc(name: str, *arguments: int) -> int:
    """Call a function of the C library. Raises OSError, with ENOSYS where this one has none of that name."""
    import ctypes  # which few processes need

    library = ctypes.CDLL(None, use_errno=True)
    try:
        function = getattr(library, name)
    except AttributeError:
        raise OSError(errno.ENOSYS, f"the C library of this system has no {name}") from None
    status = int(function(*arguments))
    if status < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return status
