"""The pid file of a TorchServe: who has it, and what an old or foreign one means."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trivium.servers.torchserve.command.pid_file import NAME, PidFile, PidState
from trivium.types.errors import ServeError

HOLDS = """
import sys, pathlib
from trivium.servers.torchserve.command.pid_file import PidFile
file = PidFile(pathlib.Path(sys.argv[1]))
assert file.take()
print("taken", flush=True)
sys.stdin.read()
file.release()
"""


@contextmanager
def holder(folder: Path, name: str = "torchserve") -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", HOLDS, str(folder), name]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "taken\n"
        yield process
        process.stdin.close()
        process.wait()


def test_one_server_has_it_until_it_ends(tmp_path: Path) -> None:
    file = PidFile(tmp_path)
    assert file.look().state is PidState.ABSENT
    with holder(tmp_path) as process:
        record = file.look()
        assert (record.state, record.pid) == (PidState.RUNNING, process.pid)
        assert (tmp_path / NAME).read_text() == str(process.pid)
        assert not file.take()
    assert file.look().state is PidState.ABSENT
    assert file.take()
    file.release()


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "1", "999999999999", "123\n456", str(2**22 + 5)])
def test_an_old_file_is_an_orphan_whatever_it_holds(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    file = PidFile(tmp_path)
    assert file.look().state is PidState.ORPHAN
    assert file.take()
    assert (tmp_path / NAME).read_text() == str(os.getpid())
    file.release()


def test_the_number_of_another_program_is_an_orphan(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(str(os.getppid()))
    assert PidFile(tmp_path).look().state is PidState.ORPHAN


def test_a_lock_of_a_program_that_is_no_server_is_no_server(tmp_path: Path) -> None:
    with holder(tmp_path, "somebody"):
        assert PidFile(tmp_path).look().state is PidState.ORPHAN


def test_what_cannot_be_had_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(ServeError, match="by the variable TEMP"):
        PidFile(tmp_path).take()
    with pytest.raises(ServeError, match="pid file"):
        PidFile(tmp_path).look()
    (tmp_path / NAME).rmdir()
    (tmp_path / "elsewhere").write_text("data")
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ServeError, match="pid file"):
        PidFile(tmp_path).take()
    assert (tmp_path / "elsewhere").read_text() == "data"
    with pytest.raises(ServeError, match="pid file"):
        PidFile(tmp_path / "nowhere").take()


def test_a_named_pipe_is_an_orphan_and_nobody_waits_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    file = PidFile(tmp_path)
    assert file.look().state is PidState.ORPHAN
    with pytest.raises(ServeError, match="pid file"):
        file.take()
    file.remove()
    assert file.take()
    file.release()
