"""`torchserve --stop`: ends the server that the pid file names. Source: spec sheet `torchserve`, section 1."""

import os
import signal
import time
from pathlib import Path

import click
import psutil

from trivium.servers.torchserve.command.options import Refused
from trivium.servers.torchserve.command.pid_file import PidFile, PidState
from trivium.servers.torchserve.command.token_check import KEY_FILE, KeyFileWriter

ORPHAN = "Removing orphan pid file."
WAIT_SECONDS = 60.0


def stop(file: PidFile, folder: Path, waits: bool) -> None:
    """End the server, and take its pid file and the keys in this folder away. With `waits` return once it is gone, or
    raise Refused where it does not go. Where none runs, say so.
    """
    record = file.look()
    if record.state is not PidState.RUNNING:
        if record.state is PidState.ORPHAN:
            click.echo(ORPHAN)
            file.remove()
        click.echo("TorchServe is not currently running.")
        return
    try:
        process = psutil.Process(record.pid)
        os.kill(record.pid, signal.SIGTERM)
    except (psutil.NoSuchProcess, ProcessLookupError):
        click.echo("TorchServe is not currently running.")
        return
    except PermissionError as error:
        raise Refused(
            f"Process {record.pid}, which {file.path} names, is another user's. Stop it as that user."
        ) from error
    KeyFileWriter(folder / KEY_FILE).remove()
    if not waits:
        file.remove()
        click.echo("TorchServe has stopped.")
        return
    if not _ends(process):
        raise Refused(
            f"TorchServe, process {record.pid}, has not ended within {WAIT_SECONDS:g} s. Look at its log, or end it by "
            f"kill -9 {record.pid}."
        )
    file.remove()


def _ends(process: psutil.Process) -> bool:
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False
