"""Tests that people have of their handlers pass under our `ts` as under the original's, without a server."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.harness.commands import trivium
from tests.harness.server_process import SECONDS

ROOT = Path(__file__).parents[2]
USERS = Path(__file__).parent / "torchserve_users"
ORIGINAL = ROOT / ".venv-original" / "bin" / "python"
PASSED = "7 passed"


def shims() -> str:
    done = trivium("shims", "torchserve")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def users_tests(folder: Path, python: str | Path, variables: Mapping[str, str]) -> str:
    """What pytest says of the tests of users, alone in a folder."""
    (folder / "test_handlers.py").write_text((USERS / "handlers.py").read_text())
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_handlers.py"],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.stdout + done.stderr


def test_they_pass_under_ours(tmp_path: Path) -> None:
    said = users_tests(tmp_path, sys.executable, {"PYTHONPATH": shims()})
    assert PASSED in said, said


@pytest.mark.skipif(not ORIGINAL.exists(), reason="make original installs the original")
@pytest.mark.parametrize("whose", ["original", "ours"])
def test_they_pass_where_the_original_is_installed(tmp_path: Path, whose: str) -> None:
    """Ours goes before it, is found by a Python that has no Trivium, and leaves it as it is."""
    (tmp_path / "conftest.py").write_text((USERS / "operators.py").read_text())
    said = users_tests(tmp_path, ORIGINAL, {"PYTHONPATH": shims() if whose == "ours" else ""})
    assert PASSED in said, said


def test_a_python_without_trivium_finds_what_it_needs_and_nothing_beside_it() -> None:
    code = (
        "import ts.context, ts.service, trivium_worker.wire.values\n"
        "print(trivium_worker.__file__)\n"
        "try:\n    import click\nexcept ImportError:\n    print('alone')\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", code],
        env={"PYTHONPATH": shims()},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    file, alone = done.stdout.splitlines()
    assert Path(file).parent == Path(shims()).parents[1]
    assert alone == "alone"
