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
marked = guard.marked(os.environ)
worker = subprocess.Popen([sys.executable, "-c", nested], start_new_session=True, env=marked)
guard.watch(worker.pid, marked)
unmarked = subprocess.Popen(["sleep", "600"], start_new_session=True)
unheard = subprocess.Popen(["sleep", "600"], start_new_session=True, env=guard.marked(os.environ))
print(guard.pid, worker.pid, unmarked.pid, unheard.pid, flush=True)
sys.stdin.read()
"""
LEAVES = """
import subprocess
near = subprocess.Popen(["sleep", "600"], process_group=0)
far = subprocess.run(["sh", "-c", "setsid sleep 600 >/dev/null & echo $!"], stdout=subprocess.PIPE).stdout
print(near.pid, int(far))
"""


def test_it_kills_stopped_workers_and_their_children_and_removes_the_folder(tmp_path):
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    guard, worker, unmarked, unheard = map(psutil.Process, map(int, server.stdout.readline().split()))
    until(lambda: worker.status() == psutil.STATUS_STOPPED and len(worker.children()) == 1, str)
    (nested,) = worker.children()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        guard.send_signal(number)
    server.kill()
    server.wait()
    family = (guard, worker, nested, unheard)
    until(lambda: not any(map(is_alive, family)), lambda: str(family))
    assert is_alive(unmarked), "nobody has said that it is the server's"
    unmarked.kill()
    assert list(tmp_path.iterdir()) == []
    server.stdin.close()
    server.stdout.close()


def test_what_has_left_a_worker_ends_with_it_and_with_no_other(tmp_path):
    keeper, outer = ServerGuard(tmp_path), ServerGuard(tmp_path)
    theirs = outer.marked({"PATH": "/usr/bin:/bin"})
    started = [leave(keeper, theirs) for _ in range(2)]
    (first, ours), (second, others) = started
    assert all(map(is_alive, ours + others))
    keeper.release(first)
    until(lambda: not any(map(is_alive, ours)), lambda: str(ours))
    assert all(map(is_alive, others)), f"{second} has not ended"
    outer.close()
    until(
        lambda: not any(map(is_alive, others)), lambda: f"{others} ran in a worker of a server that has ended"
    )
    keeper.close()


def leave(keeper, environment):
    """Start a worker that ends, and has left two processes; its number, and those two."""
    marked = keeper.marked(environment)
    worker = subprocess.Popen(
        [sys.executable, "-c", LEAVES], env=marked, start_new_session=True, stdout=subprocess.PIPE
    )
    keeper.watch(worker.pid, marked)
    with worker.stdout as said:
        left = [psutil.Process(int(number)) for number in said.readline().split()]
    worker.wait()
    return worker.pid, left


def test_one_that_was_ended_is_replaced_and_told_everything(tmp_path):
    keeper = ServerGuard(tmp_path)
    first = psutil.Process(keeper.pid)
    marked = keeper.marked({"PATH": "/usr/bin:/bin"})
    worker = subprocess.Popen(["sleep", "600"], start_new_session=True, env=marked)
    keeper.watch(worker.pid, marked)
    first.kill()
    until(lambda: not is_alive(first), lambda: str(first))
    keeper.watch(999_999_999, marked)
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
