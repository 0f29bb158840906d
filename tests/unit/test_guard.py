"""What is left of a server: a scratch folder that is locked, swept and removed. What the guard process hears."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import threading
import time

import pytest

from trivium.guard import ServerGuard
from trivium.scratch import sweep
from trivium_worker import guard

NOBODY = 2**22 + 7
"""Number of a group that there cannot be."""


def test_what_dead_servers_have_left_is_swept_and_what_living_ones_use_is_not(tmp_path):
    living = ServerGuard(tmp_path)
    (living.scratch / "file").touch()
    left = tmp_path / "trivium-scratch-dead"
    (left / "folder").mkdir(parents=True)
    strange = [tmp_path / "somebody-elses", tmp_path / "trivium-tls-x"]
    for folder in strange:
        folder.mkdir()
    (tmp_path / "trivium-scratch-link").symlink_to(strange[0])
    next_one = ServerGuard(tmp_path)
    assert not left.exists()
    assert (living.scratch / "file").exists()
    assert all(folder.exists() for folder in strange)
    living.close()
    living.close()
    assert not living.scratch.exists()
    assert next_one.scratch.exists()
    next_one.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "somebody-elses",
        "trivium-scratch-link",
        "trivium-tls-x",
    ]


def test_one_that_is_just_being_made_is_left_alone_for_an_hour(tmp_path):
    made = tmp_path / "trivium-new-x"
    made.mkdir()
    assert sweep(tmp_path) == []
    long_ago = time.time() - 3601
    os.utime(made, (long_ago, long_ago))
    assert sweep(tmp_path) == [made]


def test_the_folder_is_locked_as_cleaners_of_temporary_folders_look_for_it(tmp_path):
    keeper = ServerGuard(tmp_path)
    descriptor = os.open(keeper.scratch, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        is_locked = True
    else:
        is_locked = False
    os.close(descriptor)
    keeper.close()
    assert is_locked


def test_the_guard_knows_the_groups_that_are_left(tmp_path):
    told = tmp_path / "told"
    begun = b"".join(b"+%d server.%d\n" % (number, number) for number in range(1000, 3000))
    told.write_bytes(begun + b"-1500\n-7\n+8 server.8\n+9")
    with told.open("rb") as file:
        groups = guard.follow(file.fileno())
    assert groups == {*range(1000, 3000), 8} - {1500}


def test_it_finds_the_members_of_a_session():
    assert os.getpid() in guard.members({os.getsid(0)})
    assert guard.members(set()) == []


def test_it_finds_what_has_a_mark_or_a_servers(tmp_path):
    keeper = ServerGuard(tmp_path)
    environment = keeper.marked(keeper.marked({"PATH": os.environ["PATH"]}))
    first, second = environment[guard.MARKS].encode().split()
    with subprocess.Popen(["sleep", "600"], env=environment) as process:
        for marks in ({first}, {second, b"other.1"}, {first.partition(b".")[0]}):
            assert guard.marked(marks) == [process.pid]
        for marks in (set(), {b"other.1"}, {first + b"0"}, {first[:4]}):
            assert guard.marked(marks) == []
        process.kill()
    keeper.close()


def test_it_finds_one_that_is_just_being_started(tmp_path):
    """The system shows no environment while a program is loaded: one in a hundred was missed."""
    keeper = ServerGuard(tmp_path)
    environment = keeper.marked({"PATH": os.environ["PATH"]})
    mark = environment[guard.MARKS].encode()
    missed = 0
    for _ in range(100):
        with subprocess.Popen(["sleep", "600"], env=environment) as process:
            missed += guard.marked({mark}) != [process.pid]
            process.kill()
    keeper.close()
    assert missed == 0


def test_one_that_cannot_be_replaced_costs_nobody_else_anything(tmp_path, monkeypatch, caplog):
    """Its pipe's number may be another file's by then."""

    def refused(*command, **options):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    keeper = ServerGuard(tmp_path)
    os.kill(keeper.pid, signal.SIGKILL)
    os.waitid(os.P_PID, keeper.pid, os.WEXITED | os.WNOWAIT)
    environment = keeper.marked({})
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", refused)
        keeper.watch(NOBODY, environment)
        with (tmp_path / "other").open("wb") as other:
            keeper.release(NOBODY)
            assert other.fileno() >= 0
        assert (tmp_path / "other").read_bytes() == b""
        assert "another cannot be started" in caplog.text
    before = keeper.pid
    keeper.watch(NOBODY, environment)
    assert keeper.pid != before
    keeper.close()


def test_nobody_waits_for_the_folder_to_be_removed(tmp_path, monkeypatch):
    begun, go_on, remove, waited = threading.Event(), threading.Event(), shutil.rmtree, []

    def slowly(path, ignore_errors=False):
        begun.set()
        waited.append(go_on.wait(10))
        remove(path, ignore_errors)

    keeper = ServerGuard(tmp_path)
    monkeypatch.setattr(shutil, "rmtree", slowly)
    closing = threading.Thread(target=keeper.close)
    closing.start()
    begun.wait(60)
    keeper.release(NOBODY)
    go_on.set()
    closing.join()
    assert waited == [True]
    assert not keeper.scratch.exists()


def test_where_no_process_can_be_started_nothing_is_left(tmp_path, monkeypatch):
    def refused(*command, **options):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refused)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(BlockingIOError):
        ServerGuard(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before
