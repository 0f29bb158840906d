"""Sessions: files that the workers of one host share and nobody else reads."""

import os
import stat
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.harness.djl_child import SHIMS, forget

OPEN_FOLDERS = (0o777, 0o770, 0o722)


@pytest.fixture(autouse=True)
def shim(monkeypatch):
    monkeypatch.syspath_prepend(str(SHIMS))
    yield
    forget()


@pytest.fixture
def make(tmp_path):
    from djl_python import SessionManager

    return lambda **properties: SessionManager({"sessions_path": str(tmp_path / "sessions"), **properties})


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_everything_is_the_users_alone(make):
    before = os.umask(0)
    try:
        manager = make()
        session = manager.create_session()
        session.put("k", [1])
        session.get_as_numpy("a", (2,), create=True)
    finally:
        os.umask(before)
    assert (mode(manager.sessions_path), mode(session.files_path)) == (0o700, 0o700)
    files = list(Path(session.files_path).iterdir())
    assert len(files) == 3
    assert {mode(file) for file in files} == {0o600}


@pytest.mark.parametrize("bits", OPEN_FOLDERS)
def test_a_folder_that_others_write_into_is_refused(make, tmp_path, bits):
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions").chmod(bits)
    with pytest.raises(PermissionError, match=f"mode {bits:o}.*Set sessions_path"):
        make()
    (tmp_path / "sessions").chmod(0o755)
    assert make().create_session()


def test_a_folder_of_somebody_else_is_refused(make, monkeypatch):
    make()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PermissionError, match="belongs to user"):
        make()


@pytest.mark.parametrize("name", ["..", ".", "../other", "x" * 36, "/etc", "a\0b", "-" * 35, "0" * 36 + "\n"])
def test_an_id_is_no_path(make, tmp_path, name):
    (tmp_path / "other").mkdir()
    manager = make()
    for use in (manager.get_session, manager.close_session):
        with pytest.raises(ValueError, match="session not found"):
            use(name)
    assert (tmp_path / "other").exists()


def test_a_key_stays_in_its_session(make):
    manager = make()
    session = manager.create_session()
    session.put("../../x", 1)
    assert session.get("../../x") == 1
    assert len(os.listdir(manager.sessions_path)) == 1


def test_workers_share_sessions(make):
    one, other = make(), make()
    session = one.create_session()
    session.put("k", "v")
    array = session.get_as_numpy("a", (3,), np.int32, create=True)
    array[:] = 7
    found = other.get_session(session.session_id)
    assert found.get("k") == "v"
    assert found.get_as_numpy("a", (3,), np.int32).tolist() == [7, 7, 7]
    other.close_session(session.session_id)
    with pytest.raises(ValueError, match="not found"):
        one.get_session(session.session_id)


def test_expired_sessions_go_when_one_begins(make):
    short, long = make(sessions_expiration="-1"), make()
    gone, kept = short.create_session(), long.create_session()
    assert not os.path.exists(gone.files_path)
    assert long.get_session(kept.session_id).expiration_ts > time.time()
    third = short.create_session()
    assert short.get_session(third.session_id) is None
    long.create_session()
    assert not os.path.exists(third.files_path)
    assert os.path.exists(kept.files_path)


def test_one_that_was_not_finished_goes_too_but_not_at_once(make):
    manager = make()
    folder = Path(manager.sessions_path) / ("0" * 36)
    folder.mkdir()
    manager.create_session()
    assert folder.exists()
    os.utime(folder, (1, 1))
    manager.create_session()
    assert not folder.exists()


def test_one_that_is_removed_while_it_is_looked_up_is_not_there(make, monkeypatch):
    manager = make()
    session = manager.create_session()
    (Path(session.files_path) / ".expiration_ts").unlink()
    with pytest.raises(ValueError, match="session not found"):
        manager.get_session(session.session_id)


def test_what_is_no_session_stays(make):
    manager = make()
    (Path(manager.sessions_path) / "notes").write_text("")
    manager.create_session()
    assert (Path(manager.sessions_path) / "notes").exists()


def test_a_session_without_room_is_none(make, monkeypatch):
    from djl_python import session_manager

    manager = make()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session_manager.pickles, "written", full)
    with pytest.raises(OSError, match="No space"):
        manager.create_session()
    assert os.listdir(manager.sessions_path) == []


def test_a_value_is_read_whole_while_it_is_written(make):
    session = make().create_session()
    values = [[number] * 20_000 for number in range(2)]
    session.put("k", values[0])
    done = threading.Event()

    def write():
        for round_ in range(60):
            session.put("k", values[round_ % 2])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        assert session.get("k") in values
    writer.join()


def test_many_begin_and_end_sessions_at_once(make):
    faults = []

    def work():
        try:
            manager = make(sessions_expiration="0")
            for _ in range(30):
                session = manager.create_session()
                with suppress(OSError, ValueError):  # another has removed it: it has expired
                    session.put("k", 1)
                    manager.close_session(session.session_id)
        except Exception as error:
            faults.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert faults == []


def test_the_default_folder_is_in_shared_memory_where_there_is_some(monkeypatch):
    from djl_python.session_manager import default_path

    for there, base in ((True, "/dev/shm"), (False, tempfile.gettempdir())):
        monkeypatch.setattr(os.path, "exists", lambda path, there=there: there)
        assert default_path() == f"{base}/djl_sessions"


def test_what_is_not_supported_is_said(make):
    with pytest.raises(NotImplementedError, match=r"sessions_s3url=s3://b.*sessions_path"):
        make(sessions_s3url="s3://b")
