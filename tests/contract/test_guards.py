"""The guard of a server: it kills what is left when its server is gone, and is replaced when it is ended itself."""

import signal
import subprocess
import sys

import psutil
from tests.harness.server_process import until

from trivium.guard import ServerGuard

SERVER = """
import os, signal, subprocess, sys
from pathlib import Path
from trivium.guard import ServerGuard

guard = ServerGuard(Path(sys.argv[1]))
(guard.scratch / "file").touch()
nested = "import os, subprocess; subprocess.Popen(['sleep', '600'], process_group=0); os.kill(os.getpid(), 19)"
worker = subprocess.Popen([sys.executable, "-c", nested], start_new_session=True)
ended = subprocess.Popen(["sleep", "600"], start_new_session=True)
guard.watch(worker.pid)
guard.watch(ended.pid)
guard.release(ended.pid)
print(guard.pid, worker.pid, ended.pid, flush=True)
sys.stdin.read()
"""


def test_it_kills_stopped_workers_and_their_children_and_removes_the_folder(tmp_path):
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    guard, worker, ended = (psutil.Process(int(number)) for number in server.stdout.readline().split())
    until(lambda: worker.status() == psutil.STATUS_STOPPED and len(worker.children()) == 1, str)
    (nested,) = worker.children()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        guard.send_signal(number)
    server.kill()
    server.wait()
    until(lambda: not any(map(is_alive, (guard, worker, nested))), lambda: f"{guard} {worker} {nested}")
    assert is_alive(ended), "it was released"
    ended.kill()
    assert list(tmp_path.iterdir()) == []
    server.stdin.close()
    server.stdout.close()


def test_one_that_was_ended_is_replaced_and_told_everything(tmp_path):
    keeper = ServerGuard(tmp_path)
    first = psutil.Process(keeper.pid)
    worker = subprocess.Popen(["sleep", "600"], start_new_session=True)
    keeper.watch(worker.pid)
    first.kill()
    until(lambda: not is_alive(first), lambda: str(first))
    keeper.watch(999_999_999)
    assert keeper.pid != first.pid
    assert is_alive(psutil.Process(keeper.pid))
    keeper.release(999_999_999)
    keeper.close()
    assert worker.wait() == -signal.SIGKILL, "whoever closes it has ended all workers before"
    assert not is_alive(first)
    assert list(tmp_path.iterdir()) == []


def is_alive(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
