"""`torchserve --start` without `--foreground`: the server as a process of its own, which says when it is up.

Decides when the command returns: once the server listens, or has ended. The original returns at once, with 0 whatever
comes of it.
"""

import os
import select
import subprocess
import time
from collections.abc import Sequence

import click

from trivium.machine.python_commands import own_module
from trivium.servers.torchserve.command.options import FAILED, READY_DESCRIPTOR, Refused

START_SECONDS = 120.0
READY = b"ready"


def start(words: Sequence[str]) -> None:
    """Start the server with these words of a command line, and return once it listens. It keeps standard output and
    error. Raises Refused where it has ended instead.
    """
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            own_module(
                "trivium.cli.main", "torchserve", *words, "--foreground", READY_DESCRIPTOR, str(writing)
            ),
            stdin=subprocess.DEVNULL,
            pass_fds=(writing,),
            start_new_session=True,
        )
    finally:
        os.close(writing)
    try:
        word = _heard(reading)
    finally:
        os.close(reading)
    if word == READY:
        return
    if word is None:
        raise Refused(
            f"TorchServe, process {process.pid}, does not listen after {START_SECONDS:g} s. It goes on: look at its "
            "log, or stop it by torchserve --stop."
        )
    status = process.wait()
    click.echo("TorchServe did not start; the lines above, and logs/ts_log.log, say why.")
    raise SystemExit(status or FAILED)


def _heard(descriptor: int) -> bytes | None:
    """Return the word that the server says, empty where it has ended without one; None where nothing came in time."""
    deadline = time.monotonic() + START_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        if select.select([descriptor], [], [], left)[0]:
            return os.read(descriptor, len(READY))
    return None


def say_ready(descriptor: int) -> None:
    """Tell the command that has started this server that it listens; whoever is gone hears nothing."""
    try:
        os.write(descriptor, READY)
        os.close(descriptor)
    except OSError:
        return
