"""Packages that TorchServe archives name: installed where the operator's own line says so, into environments that equal
models share; and a model whose packages cannot be had is refused, while its neighbours serve.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness import python_packages as packages
from tests.harness.server_process import until
from tests.harness.torchserve_command import TorchServeFolder, TorchServeProcess, torchserve

OPEN = "disable_token_authorization=true\n"
INSTALLS = f"{OPEN}install_py_dep_per_model=true\n"
NEEDS = f"""
import json, sys
import {packages.PYTHON}
def handle(data, context):
    return data and [json.dumps([{packages.PYTHON}.STAMP, {packages.PYTHON}.__file__, sys.executable]) for _ in data]
"""
DOES_NOT_NEED = """
import json, sys, numpy
def handle(data, context):
    return data and [json.dumps([numpy.__version__, numpy.__file__, sys.executable]) for _ in data]
"""
ONE_WORKER = "minWorkers: 1\nmaxWorkers: 1\n"
OFFLINE = {"PIP_NO_INDEX": "1"}


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Whatever happens, the server's own packages stay what they are."""
    before = packages.own_packages()
    yield
    assert packages.own_packages() == before


def named(folder: TorchServeFolder, name: str, requirements: str, code: str = NEEDS, more: str = "") -> Path:
    """A model whose manifest names this file of requirements."""
    place = folder.model(name, code, ONE_WORKER + more)
    manifest = place / "MAR-INF" / "MANIFEST.json"
    document = json.loads(manifest.read_text())
    document["model"]["requirementsFile"] = "needs.txt"
    manifest.write_text(json.dumps(document))
    (place / "needs.txt").write_text(requirements)
    return place


def with_wheel(folder: TorchServeFolder, name: str, version: str) -> None:
    """A model with the wheel of that version beside its handler."""
    place = named(folder, name, f"./{packages.PYTHON}-{version}-py3-none-any.whl\n")
    packages.wheel(place, version)


def environments(folder: TorchServeFolder) -> list[Path]:
    return sorted(folder.path.glob("trivium-scratch-*/*/environment"))


def asked(server: TorchServeProcess, model: str) -> Any:
    """What a model says of itself: version of the package, its file, the interpreter."""
    server.serves(model)
    return json.loads(server.predict(model).body)


def test_two_versions_side_by_side_and_one_environment_for_equal_models(tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    for name, version in (("old", "1.0"), ("new", "2.0"), ("twin", "2.0")):
        with_wheel(folder, name, version)
    folder.model("plain", DOES_NOT_NEED, ONE_WORKER)
    with torchserve(folder, "--models", "all", text=INSTALLS, variables=OFFLINE) as server:
        answers = {name: asked(server, name) for name in ("old", "new", "twin", "plain")}
        assert [answers[name][0] for name in ("old", "new", "twin")] == ["1.0", "2.0", "2.0"]
        assert answers["new"] == answers["twin"]
        assert len(environments(folder)) == 2
        assert "environment" not in answers["plain"][2]
    assert environments(folder) == []


def test_with_the_line_and_nothing_to_install_nothing_is_installed(tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    folder.model("plain", DOES_NOT_NEED, ONE_WORKER)
    with torchserve(folder, "--models", "all", text=INSTALLS, variables=OFFLINE) as server:
        asked(server, "plain")
        assert environments(folder) == []
        assert "packages:" not in server.said()


def test_without_the_line_nothing_is_installed_and_that_is_said(tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    named(folder, "plain", "tiny-stamp==9.9\n", DOES_NOT_NEED)
    with torchserve(folder, "--models", "all", text=OPEN, variables=OFFLINE) as server:
        asked(server, "plain")
        assert environments(folder) == []
        until(lambda: "the packages of needs.txt are not installed" in server.said(), server.said)
        assert "install_py_dep_per_model=true" in server.said()


def test_a_model_may_have_an_environment_of_its_own(tmp_path: Path) -> None:
    """`useVenv` alone: no packages, no line; nobody else is in it, and the interpreter's packages are seen."""
    folder = TorchServeFolder(tmp_path)
    for name in ("one", "other"):
        folder.model(name, DOES_NOT_NEED, f"{ONE_WORKER}useVenv: true\n")
    with torchserve(folder, "--models", "all", text=OPEN, variables=OFFLINE) as server:
        answers = [asked(server, name) for name in ("one", "other")]
        assert len({python for _, _, python in answers}) == 2
        assert all(Path(python).is_relative_to(tmp_path) for _, _, python in answers)
        assert not any(Path(file).is_relative_to(tmp_path) for _, file, _ in answers)
    assert environments(folder) == []


# -- hostile -----------------------------------------------------------------------------------------------


def test_a_model_whose_packages_cannot_be_had_is_refused_and_its_neighbours_serve(tmp_path: Path) -> None:
    """Also where its handler would do without: the original loads none without them either."""
    folder = TorchServeFolder(tmp_path)
    named(folder, "lost", "tiny-stamp==9.9\n", DOES_NOT_NEED)
    with_wheel(folder, "near", "1.0")
    text = f"{INSTALLS}enable_model_api=true\n"
    with torchserve(folder, "--models", "near", text=text, variables=OFFLINE) as server:
        assert asked(server, "near")[0] == "1.0"
        refused = server.ask("Management", "POST", "/models?url=lost&initial_workers=1&synchronous=true")
        assert refused.status == 400
        answer = json.loads(refused.body)
        assert answer["type"] == "ModelException"
        assert answer["message"] == "Custom pip package installation failed for model lost"
        until(lambda: "No matching distribution found for tiny-stamp==9.9" in server.said(), server.said)
        until(lambda: "Model 'lost' is not loaded" in server.said(), server.said)
        assert asked(server, "near")[0] == "1.0"
        until(lambda: len(environments(folder)) == 1, server.said)


def test_one_that_the_server_starts_with_does_not_keep_the_others_from_serving(tmp_path: Path) -> None:
    folder = TorchServeFolder(tmp_path)
    named(folder, "lost", "tiny-stamp==9.9\n", DOES_NOT_NEED)
    named(folder, "gone", "-r elsewhere.txt\n", DOES_NOT_NEED)
    with_wheel(folder, "near", "1.0")
    with torchserve(folder, "--models", "all", text=INSTALLS, variables=OFFLINE) as server:
        assert asked(server, "near")[0] == "1.0"
        for name in ("lost", "gone"):
            until(lambda name=name: f"Model '{name}' is not loaded" in server.said(), server.said)
            assert server.predict(name).status in (404, 503)
