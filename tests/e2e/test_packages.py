"""Packages that models name: installed once per load into environments of their own, shared, removed; and those whose
installation fails, hangs or fills the disk.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.harness import python_packages as packages
from tests.harness.djl_serving import DJL_SERVING, DjlServing, djl_serving
from tests.harness.server_process import serve_handlers, until

HANG_SECONDS = 15
"""For a load whose packages never come."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder of environments."""
    folder = tmp_path / "environments"
    folder.mkdir()
    return folder


@pytest.fixture
def variables(place: Path) -> dict[str, str]:
    """Those of a server that makes environments there, and asks no network."""
    return {"DJL_VENV_DIR": str(place), "DJL_OFFLINE": "true", "PIP_NO_INDEX": "1"}


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Whatever happens, the server's own packages stay what they are."""
    before = packages.own_packages()
    yield
    assert packages.own_packages() == before


def environments(place: Path) -> list[Path]:
    return sorted(place.glob("*/environment"))


def asked(server: DjlServing, model: str) -> Any:
    """What a model says of itself: version of the package, its file, the interpreter."""
    answer = server.infer("POST", f"/predictions/{model}", b"x")
    assert answer.status == 200, (answer, server.said())
    return answer.document


def test_two_versions_side_by_side_one_environment_for_equal_ones_and_nothing_left(
    tmp_path: Path, place: Path, variables: dict[str, str]
) -> None:
    """Wheels by a path that leads from the model's folder; the interpreter's own packages are there, too."""
    root = tmp_path / "store"
    for name, version in (("old", "1.0"), ("new", "2.0"), ("twin", "2.0")):
        packages.bundled(root, name, version, "minWorkers=2", "maxWorkers=2")
    with djl_serving(tmp_path / "log", "-s", root, variables=variables) as server:
        answers = {name: asked(server, name) for name in ("old", "new", "twin")}
        assert [answers[name][0] for name in ("old", "new", "twin")] == ["1.0", "2.0", "2.0"]
        assert answers["new"] == answers["twin"]
        assert len(environments(place)) == 2
        for _, file, python in answers.values():
            assert Path(file).is_relative_to(place)
            assert Path(python).is_relative_to(place)
        assert server.manage("DELETE", "/models/twin").status == 200
        assert server.manage("DELETE", "/models/old").status == 200
        until(lambda: len(environments(place)) == 1, server.said)
        assert asked(server, "new")[0] == "2.0"
    assert list(place.iterdir()) == []


def test_what_clients_register_is_installed_only_where_the_server_says_so(
    tmp_path: Path, place: Path, variables: dict[str, str]
) -> None:
    folder = packages.bundled(tmp_path, "m", "1.0")
    with djl_serving(tmp_path / "log", variables=variables) as server:
        refused = server.manage("POST", f"/models?url={folder}&model_name=m&synchronous=true")
        assert refused.status >= 400
        assert "--install-packages" in server.said()
        assert "No module named 'tiny_stamp'" in refused.body.decode()
        assert list(place.iterdir()) == []
    allowed = variables | {"SERVING_TRIVIUM_INSTALL_PACKAGES": "all"}
    with djl_serving(tmp_path / "log2", variables=allowed) as server:
        for _ in range(2):  # the second load builds what the end of the first has removed
            done = server.manage("POST", f"/models?url={folder}&model_name=m&synchronous=true")
            assert done.status == 200, done
            assert asked(server, "m")[0] == "1.0"
            assert server.manage("DELETE", "/models/m").status == 200
            until(lambda: list(place.iterdir()) == [], server.said)


def test_serve_installs_with_the_switch_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the scratch folder of the server, which goes with it."""
    for name, value in {"TMPDIR": str(tmp_path), "PIP_NO_INDEX": "1"}.items():
        monkeypatch.setenv(name, value)
    folder = packages.bundled(tmp_path, "m", "1.0")
    neighbour = packages.model(tmp_path, "near", "", code=packages.DOES_NOT_NEED)
    with serve_handlers(tmp_path / "log", folder, neighbour) as server:
        until(lambda: "the packages of requirements.txt are not installed" in server.said(), server.said)
        until(lambda: "No module named 'tiny_stamp'" in server.said(), server.said)
    with serve_handlers(tmp_path / "log2", "--install-packages", "start", folder) as server:
        until(server.is_ready, server.said)
        assert len(list(tmp_path.glob("trivium-scratch-*/*/environment"))) == 1
    assert list(tmp_path.glob("trivium-*")) == []


def test_an_environment_without_requirements(tmp_path: Path, place: Path, variables: dict[str, str]) -> None:
    """Two models that ask for one each: nobody shares what is private, and both see the packages of the interpreter."""
    code = packages.NEEDS.replace(packages.PYTHON, "numpy").replace("numpy.STAMP", "numpy.__version__")
    for name in ("a", "b"):
        packages.model(tmp_path / "store", name, "", "option.enable_venv=true", code=code)
    with djl_serving(tmp_path / "log", "-s", tmp_path / "store", variables=variables) as server:
        pythons = {asked(server, name)[2] for name in ("a", "b")}
        assert len(pythons) == 2
        assert all(Path(python).is_relative_to(place) for python in pythons)
        assert not Path(asked(server, "a")[1]).is_relative_to(place)
    assert list(place.iterdir()) == []


def test_packages_from_the_bundled_folder(tmp_path: Path, place: Path, variables: dict[str, str]) -> None:
    """By name and version, from `requirements/`: off line nothing else is looked into."""
    folder = packages.model(tmp_path / "store", "m", "tiny-stamp==3.0\n")
    packages.wheel(folder / "requirements", "3.0")
    packages.wheel(folder / "requirements", "4.0")
    with djl_serving(tmp_path / "log", "-s", tmp_path / "store", variables=variables) as server:
        assert asked(server, "m")[0] == "3.0"


# -- hostile -----------------------------------------------------------------------------------------------


def test_a_package_that_is_nowhere_fails_the_model_that_needs_it_alone(
    tmp_path: Path, place: Path, variables: dict[str, str]
) -> None:
    """DJL's rule: a failing pip is a warning, a failing handler fails the load; then the reason tells of both."""
    store = tmp_path / "store"
    packages.model(store, "needs", "tiny-stamp==9.9\n")
    packages.model(store, "serves", "tiny-stamp==9.9\n", code=packages.DOES_NOT_NEED)
    with djl_serving(
        tmp_path / "log",
        "-s",
        store,
        variables={**variables, "SERVING_WAIT_MODEL_LOADING": "false"},
        status=1,
    ) as server:
        until(lambda: server.status_of("serves") == "Healthy", server.said)
        assert server.infer("POST", "/predictions/serves", b"x").body == b"served"
        assert server.wait() == 1
    said = server.said()
    assert "model 'serves': The packages of" in said
    reason = said.partition("Failed to load model needs")[2]
    for words in ("No module named 'tiny_stamp'", "No matching distribution found for tiny-stamp==9.9"):
        assert words in reason
    assert list(place.iterdir()) == []


def test_an_installation_that_hangs_ends_at_the_deadline_of_the_load_with_all_that_it_started(
    tmp_path: Path, place: Path, variables: dict[str, str]
) -> None:
    """The neighbour is answered meanwhile; nothing is left of it, neither processes nor files."""
    slow = f"option.model_loading_timeout={HANG_SECONDS}"
    folder = packages.model(tmp_path, "hangs", "./hanging-1.tar.gz\n", slow)
    packages.hanging_sdist(tmp_path / "made", "hanging").rename(folder / "hanging-1.tar.gz")
    neighbour = packages.model(tmp_path, "near", "", code=packages.DOES_NOT_NEED)
    allowed = variables | {"SERVING_TRIVIUM_INSTALL_PACKAGES": "all"}
    with djl_serving(tmp_path / "log", "-m", f"near=file://{neighbour}", variables=allowed) as server:
        url = f"/models?url={folder}&model_name=hangs&synchronous=false"
        assert server.manage("POST", url).status < 300
        until(lambda: len(sleepers(server)) >= 2, server.said)
        seen = sleepers(server)
        asked_so_often = 0
        while server.status_of("hangs") not in ("Failed", "") and any(map(psutil.Process.is_running, seen)):
            assert server.infer("POST", "/predictions/near", b"x").body == b"served"
            asked_so_often += 1
        assert asked_so_often
        until(lambda: "could not be installed: pip was stopped after" in server.said(), server.said)
        until(lambda: not any(one.is_running() for one in seen), server.said)
        until(lambda: list(place.iterdir()) == [], server.said)
        assert server.infer("POST", "/predictions/near", b"x").body == b"served"


def test_a_server_that_dies_takes_the_installation_with_it(tmp_path: Path) -> None:
    """By its guard: pip, what left pip's session, and the scratch folder."""
    scratch = tmp_path / "temporary"
    scratch.mkdir()
    folder = packages.model(tmp_path, "hangs", "./hanging-1.tar.gz\n")
    packages.hanging_sdist(tmp_path / "made", "hanging").rename(folder / "hanging-1.tar.gz")
    with djl_serving(
        tmp_path / "log",
        *("-m", f"hangs=file://{folder}"),
        variables={"SERVING_WAIT_MODEL_LOADING": "false", "PIP_NO_INDEX": "1", "TMPDIR": str(scratch)},
        status=-signal.SIGKILL,
    ) as server:
        until(lambda: len(sleepers(server)) >= 2, server.said)
        seen = sleepers(server)
        server.signal(signal.SIGKILL)
        until(lambda: not any(one.is_running() for one in seen), lambda: str(seen))
        until(lambda: list(scratch.iterdir()) == [], lambda: str(list(scratch.iterdir())))


def sleepers(server: DjlServing) -> list[psutil.Process]:
    """The processes of an installation: pip, and what its packages start."""
    found = []
    for child in server.process.children(recursive=True):
        try:
            line = " ".join(child.cmdline())
        except psutil.Error:
            continue
        if "pip" in line or str(packages.PAUSE) in line:
            found.append(child)
    return found


def can_mount() -> bool:
    """May a mount namespace with a file system of its own be made here?"""
    words = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"]
    try:
        return subprocess.run(words, capture_output=True, check=False, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@pytest.mark.skipif(not can_mount(), reason="no mount namespace can be made here")
def test_packages_that_fill_the_disk_leave_it_as_it_was(tmp_path: Path, variables: dict[str, str]) -> None:
    """The environments lie on a file system of 16 MiB, and a wheel holds 64 MiB of zeros."""
    needs = packages.model(tmp_path / "store", "needs", "./tiny_stamp-1.0-py3-none-any.whl\n")
    packages.wheel(needs, "1.0", 64 * 2**20)
    neighbour = packages.bundled(tmp_path, "near", "2.0")
    small = Path(tempfile.mkdtemp(dir=tmp_path))
    within = [
        *("unshare", "-m", "sh", "-c"),
        f'mount -t tmpfs -o size=16m tmpfs {small} && exec "$@"; exit 99',
        "sh",
    ]
    allowed = {**variables, "DJL_VENV_DIR": str(small), "SERVING_TRIVIUM_INSTALL_PACKAGES": "all"}
    with djl_serving(
        tmp_path / "log",
        "-m",
        f"near=file://{neighbour}",
        variables=allowed,
        command=(*within, *DJL_SERVING),
    ) as server:
        refused = server.manage("POST", f"/models?url={needs}&model_name=needs&synchronous=true")
        assert refused.status >= 400
        assert "No space left on device" in refused.body.decode()
        assert asked(server, "near")[0] == "2.0"
        inside = Path(f"/proc/{server.process.pid}/root{small}")
        until(lambda: len(os.listdir(inside)) == 1, server.said)
