"""Packages for Python made on the spot, and DJL folders of models that need them: no network is asked for anything."""

import site
import tarfile
import zipfile
from pathlib import Path

PYTHON = "tiny_stamp"
"""Module that every wheel made here holds."""

NEEDS = f"""
import sys
from djl_python import Output
import {PYTHON}
def handle(inputs):
    return None if inputs.is_empty() else Output().add_as_json([{PYTHON}.STAMP, {PYTHON}.__file__, sys.executable])
"""
DOES_NOT_NEED = """
from djl_python import Output
def handle(inputs):
    return None if inputs.is_empty() else Output().add("served")
"""
ONE_WORKER = ("minWorkers=1", "maxWorkers=1")
PAUSE = 3600

_HANGING_BACKEND = f"""
import os, subprocess, sys, time
def get_requires_for_build_wheel(settings=None):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep({PAUSE})"], start_new_session=True)
    time.sleep({PAUSE})
"""


def wheel(folder: Path, version: str, size: int = 0) -> Path:
    """A wheel of the package `tiny-stamp`, whose module tells the version, with a file of `size` zeros in it."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{PYTHON}-{version}.dist-info"
    path = folder / f"{PYTHON}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr(f"{PYTHON}.py", f"STAMP = {version!r}\n")
        if size:
            opened.writestr(f"{PYTHON}_data.bin", bytes(size))
        opened.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-stamp\nVersion: {version}\n")
        opened.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        opened.writestr(f"{info}/RECORD", "")
    return path


def hanging_sdist(folder: Path, name: str) -> Path:
    """A source package whose build starts a process that leaves its session, sleeps, and would never end."""
    source = folder / "source"
    source.mkdir(parents=True)
    (source / "backend.py").write_text(_HANGING_BACKEND)
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (source / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    path = folder / f"{name}-1.tar.gz"
    with tarfile.open(path, "w:gz") as opened:
        opened.add(source, f"{name}-1")
    return path


def model(root: Path, name: str, requirements: str, *lines: str, code: str = NEEDS) -> Path:
    """A model folder of one worker with this requirements.txt; none if it is empty."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(code)
    (folder / "serving.properties").write_text("\n".join((*ONE_WORKER, *lines)) + "\n")
    if requirements:
        (folder / "requirements.txt").write_text(requirements)
    return folder


def bundled(root: Path, name: str, version: str, *lines: str, code: str = NEEDS) -> Path:
    """A model folder with the wheel of that version in `local_wheels`, named by its requirements.txt."""
    folder = model(root, name, f"./local_wheels/{PYTHON}-{version}-py3-none-any.whl\n", *lines, code=code)
    wheel(folder / "local_wheels", version)
    return folder


def own_packages() -> frozenset[str]:
    """Names of what lies where this interpreter, the server's, has its packages."""
    return frozenset(entry.name for folder in site.getsitepackages() for entry in Path(folder).iterdir())
