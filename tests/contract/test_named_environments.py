"""Named environments on a disk: whole or not there, made once, outdated ones listed and removed. Needs no index."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.harness.python_packages import PYTHON, hanging_sdist, wheel
from tests.harness.server_process import until

from trivium.environments.named import EnvironmentState, NamedEnvironments
from trivium.environments.store import BuildServices
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import NO_GUARD

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
ENVIRONMENT = {**os.environ, "PIP_NO_INDEX": "1"}


@pytest.fixture
def named(tmp_path: Path) -> NamedEnvironments:
    write_lock(tmp_path, "1.0")
    return NamedEnvironments(tmp_path / "cache", tmp_path / "locks")


def write_lock(folder: Path, version: str, pythons: str = OWN, name: str = "tiny") -> None:
    made = wheel(folder / "locks", version)
    (folder / "locks" / f"{name}.txt").write_text(f"# python: {pythons}\n./{made.name}\n")


def services(folder: Path, environment=ENVIRONMENT, lines: list[str] | None = None) -> BuildServices:
    say = (lambda line: None) if lines is None else lines.append
    return BuildServices(folder, environment, threading.Event(), NO_GUARD, say)


def stamp(python: Path) -> str:
    program = f"import {PYTHON}; print({PYTHON}.STAMP)"
    return subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def left(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if not entry.name.endswith(".lock"))


def refused(call, code: Code) -> str:
    with pytest.raises(ServeError) as caught:
        call()
    assert caught.value.code is code
    return caught.value.message


def test_one_is_built_found_listed_and_removed(tmp_path: Path, named: NamedEnvironments) -> None:
    assert named.find("tiny") is None
    assert named.all() == ()
    made, is_new = named.build("tiny", services(tmp_path))
    assert is_new
    assert stamp(made.python) == "1.0"
    assert named.find("tiny") == made
    assert named.build("tiny", services(tmp_path)) == (made, False)
    assert [(one.name, one.state) for one in named.all()] == [("tiny", EnvironmentState.READY)]
    assert made.size() > 1000
    assert left(named.folder) == [made.place.name]
    named.remove("tiny")
    assert left(named.folder) == []
    assert "There are: none" in refused(lambda: named.remove("tiny"), Code.NOT_FOUND)


def test_it_stands_alone(tmp_path: Path, named: NamedEnvironments) -> None:
    made, _ = named.build("tiny", services(tmp_path))
    done = subprocess.run([made.python, "-c", "import numpy"], capture_output=True, text=True, check=False)
    assert "No module named 'numpy'" in done.stderr


def test_two_builds_at_once_make_one(tmp_path: Path, named: NamedEnvironments) -> None:
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(named.build, "tiny", services(tmp_path)) for _ in range(2)]
        (first, is_new), (second, is_other_new) = [one.result(120) for one in asked]
    assert first == second
    assert is_new != is_other_new
    assert stamp(first.python) == "1.0"


def test_another_lock_is_another_environment_and_the_old_one_is_outdated(tmp_path, named) -> None:
    old, _ = named.build("tiny", services(tmp_path))
    write_lock(tmp_path, "2.0")
    assert named.find("tiny") is None
    new, _ = named.build("tiny", services(tmp_path))
    assert stamp(new.python) == "2.0"
    states = {one.place: one.state for one in named.all()}
    assert states == {old.place: EnvironmentState.OUTDATED, new.place: EnvironmentState.READY}
    assert [one.place for one in named.remove("tiny", only_outdated=True)] == [old.place]
    assert named.find("tiny") == new


def test_one_whose_interpreter_is_gone_is_made_anew(tmp_path: Path, named: NamedEnvironments) -> None:
    made, _ = named.build("tiny", services(tmp_path))
    made.python.unlink()
    made.python.symlink_to(tmp_path / "removed")
    assert named.find("tiny") is None
    assert [one.state for one in named.all()] == [EnvironmentState.BROKEN]
    again, is_new = named.build("tiny", services(tmp_path))
    assert (again, is_new) == (made, True)
    assert stamp(again.python) == "1.0"


def test_a_build_that_fails_leaves_nothing_and_says_why(tmp_path: Path, named: NamedEnvironments) -> None:
    (tmp_path / "locks" / "tiny.txt").write_text(f"# python: {OWN}\nno-such-package-anywhere==1.0\n")
    message = refused(lambda: named.build("tiny", services(tmp_path)), Code.LOAD_FAILED)
    assert "no-such-package-anywhere" in message
    assert "PIP_INDEX_URL" in message
    assert left(named.folder) == []


def test_a_build_that_is_killed_leaves_nothing_that_counts(tmp_path: Path, named: NamedEnvironments) -> None:
    sdist = hanging_sdist(tmp_path / "locks", "slow")
    (tmp_path / "locks" / "tiny.txt").write_text(f"# python: {OWN}\n./{sdist.name}\n")
    program = (
        "import os, sys, threading; from pathlib import Path\n"
        "from trivium.environments.named import NamedEnvironments\n"
        "from trivium.environments.store import BuildServices\n"
        "from trivium.guard import ServerGuard\n"
        "guard = ServerGuard(Path(sys.argv[3]))\n"
        "say = lambda line: print(line, flush=True)\n"
        "services = BuildServices(guard.scratch, os.environ, threading.Event(), guard, say)\n"
        "NamedEnvironments(Path(sys.argv[1]), Path(sys.argv[2])).build('tiny', services)\n"
    )
    (tmp_path / "scratch").mkdir()
    words = [str(named.folder), str(tmp_path / "locks"), str(tmp_path / "scratch")]
    with open(tmp_path / "out", "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *words], env=ENVIRONMENT, stdout=output, stderr=output
        )
    said = (tmp_path / "out").read_text
    until(lambda: "Processing" in said(), said)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert named.find("tiny") is None
    assert named.all() == []
    write_lock(tmp_path, "1.0")
    made, is_new = named.build("tiny", services(tmp_path))
    assert is_new
    until(lambda: left(named.folder) == [made.place.name], lambda: str(left(named.folder)))


def test_names_pythons_and_folders_that_cannot_be(tmp_path: Path, named: NamedEnvironments) -> None:
    assert "Did you mean tiny?" in refused(lambda: named.build("tini", services(tmp_path)), Code.NOT_FOUND)
    nothing = {**ENVIRONMENT, "PATH": str(tmp_path)}
    write_lock(tmp_path, "1.0", "3.2 3.3")
    message = refused(lambda: named.build("tiny", services(tmp_path, nothing)), Code.INVALID)
    assert "no python3.3 nor python3.2 on the PATH" in message
    message = refused(lambda: named.build("tiny", services(tmp_path), sys.executable), Code.INVALID)
    assert f"{sys.executable} is Python {OWN}" in message
    message = refused(lambda: named.build("tiny", services(tmp_path), "/no/python"), Code.INVALID)
    assert "no program /no/python" in message
    write_lock(tmp_path, "1.0")
    named.folder.chmod(0o777)
    assert "nobody else can write to" in refused(
        lambda: named.build("tiny", services(tmp_path)), Code.LOAD_FAILED
    )
    (tmp_path / "file").write_text("")
    other = NamedEnvironments(tmp_path / "file" / "cache", tmp_path / "locks")
    message = refused(lambda: other.build("tiny", services(tmp_path)), Code.LOAD_FAILED)
    assert "XDG_CACHE_HOME" in message
