"""Bounds of a worker process, which it takes upon itself before any code of the model runs, and hands down."""

import errno
import os
import resource
from typing import Any

from trivium_worker.wire import system
from trivium_worker.wire.values import Failure

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


def apply(bounds: dict[str, Any]) -> None:
    """Take on `files` (descriptors), `processors` (a number; `index` chooses which) and `is_offline`. Called while the
    process has one thread. Raises Failure that names the option and what the kernel says.
    """
    if bounds["files"]:
        _try("--worker-files", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (bounds["files"],) * 2))
    if bounds["processors"]:
        _try("--worker-processors", lambda: _stay_on(bounds["processors"], bounds["index"]))
    if bounds["is_offline"]:
        _try("--worker-offline", _leave_network)


def _try(option: str, act: Any) -> None:
    try:
        act()
    except (OSError, ValueError) as error:
        text = f"{option} cannot be kept: {error}. Leave the option out, or let the server do this."
        raise Failure(text, "load failed") from error


def _stay_on(count: int, index: int) -> None:
    there = sorted(system.processors())
    if count > len(there):
        raise ValueError(f"it asks for {count} processors, and there are {len(there)}")
    system.stay_on(0, {there[(index * count + i) % len(there)] for i in range(count)})


def _leave_network() -> None:
    """Move to a network of its own, in which there is nothing; who is not root needs a user namespace for that."""
    user, group = os.geteuid(), os.getegid()
    try:
        system.libc("unshare", CLONE_NEWNET)
        return
    except OSError as error:
        if error.errno == errno.ENOSYS:
            raise
    system.libc("unshare", CLONE_NEWUSER | CLONE_NEWNET)
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, text in maps.items():
        with open("/proc/self/" + name, "w") as file:
            file.write(text)
