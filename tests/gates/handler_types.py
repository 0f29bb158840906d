"""Checks that the stubs for handlers are those of the shims, and that strict checkers accept the handlers that we show.

`python -m tests.gates.handler_types` checks, with `--write` it writes the stubs anew. It needs mypy, and is part of
`make check`. basedpyright is asked where it is installed.
"""

import filecmp
import json
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tests.gates.source import ROOT, SOURCE

SHIMS = SOURCE / "trivium_worker" / "shims"
STUBS = SOURCE / "trivium_stubs"
PACKAGES = {
    "djl_python": "djl",
    "ts": "torchserve",
    "triton_python_backend_utils": "triton",
    "c_python_backend_utils": "triton",
}
"""Package or module that handlers import -> the dialect whose shims have it."""

_PYRIGHT = {
    "typeCheckingMode": "standard",
    "reportMissingModuleSource": False,
    "reportMissingImports": False,
}
"""What basedpyright is told: that stubs have no source here is how it is, and what cannot be found mypy says."""

DEMO = SOURCE / "trivium" / "demo" / "handlers"
TEMPLATES = SOURCE / "trivium" / "demo" / "templates"
HANDLERS = (
    TEMPLATES / "handler" / "models" / "sentiment" / "app.py",
    TEMPLATES / "djl" / "models" / "words" / "model.py",
    TEMPLATES / "torchserve" / "models" / "words" / "handler.py",
    TEMPLATES / "triton-python" / "models" / "words" / "1" / "model.py",
    DEMO / "djl" / "digits-djl" / "model.py",
    DEMO / "triton" / "digits-python" / "1" / "model.py",
    ROOT / "examples" / "digits" / "torchserve" / "handler.py",
    ROOT / "examples" / "food11" / "models" / "food_classifier" / "1" / "model.py",
    ROOT / "examples" / "llm_api" / "custom_handler.py",
)
_UNTYPED = ("onnxruntime", "network")
"""Modules without types: a library, and one that lies beside a handler once its weights are made."""

_OURS = "".join(f"[mypy-{name}.*]\nignore_errors = True\n" for name in ("trivium", "trivium_worker"))
"""Of our own sources, which a test of a handler imports, `make check` judges elsewhere, with their libraries."""

_LOOSE = "untyped_calls_exclude = transformers,torch\n"
"""Libraries with some functions that have no types, which is their own fault."""


def made(folder: Path) -> Path:
    """Write the stubs below a folder, and return where: a folder `NAME-stubs` for each package, as PEP 561 has them."""
    written = folder / "written"
    for name, dialect in PACKAGES.items():
        place = SHIMS / dialect / name
        source = place if place.is_dir() else place.with_suffix(".py")
        words = [Path(sys.executable).with_name("stubgen"), "-q", "--parse-only", "-o", written, source]
        subprocess.run(words, check=True, cwd=SOURCE)
        found = written / "trivium_worker" / "shims" / dialect / name
        target = folder / "stubs" / f"{name}-stubs"
        if place.is_dir():
            shutil.copytree(found, target)
        else:
            target.mkdir(parents=True)
            (target / "__init__.pyi").write_text(_exporting(found.with_suffix(".pyi").read_text()))
    return folder / "stubs"


def _exporting(text: str) -> str:
    """Return a stub that gives on what it imports from another package, as the module does."""
    return re.sub(
        r"^(from c_python_backend_utils\S* import )(.*)$",
        lambda found: (
            found[1] + ", ".join(one if " as " in one else f"{one} as {one}" for one in found[2].split(", "))
        ),
        text,
        flags=re.MULTILINE,
    )


def differences(stubs: Path, kept: Path = STUBS) -> list[str]:
    """Return the files that are not the same in two folders, by their names."""
    names = {one.relative_to(root) for root in (stubs, kept) for one in root.rglob("*.pyi")}
    return sorted(
        str(name)
        for name in names
        if not (stubs / name).is_file()
        or not (kept / name).is_file()
        or not filecmp.cmp(stubs / name, kept / name, shallow=False)
    )


def installed(folder: Path) -> Path:
    """Return the interpreter of an environment that has the stubs as a user has them, and what this one has."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    for one in (*STUBS.iterdir(), SOURCE / "trivium_handler"):
        shutil.copytree(one, packages / one.name)
    here = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    (packages / "others.pth").write_text(f"{here}\n")
    return folder / "bin" / "python"


def faults(handlers: tuple[Path, ...] = HANDLERS) -> list[str]:
    """Return what strict checkers say of handlers, each checked by itself: several are called model.py."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        python = installed(Path(folder) / "env")
        config = Path(folder) / "mypy.ini"
        config.write_text(
            f"[mypy]\nstrict = True\n{_LOOSE}{_OURS}"
            + "".join(f"[mypy-{name}.*]\nignore_missing_imports = True\n" for name in _UNTYPED)
        )
        for one in handlers:
            words = [sys.executable, "-m", "mypy", "--config-file", config, "--python-executable", python]
            words += ["--cache-dir", Path(folder) / "cache", one]
            found += _lines([*map(str, words)], folder)
            if find_spec("basedpyright"):
                project = Path(folder) / "pyrightconfig.json"
                project.write_text(json.dumps({**_PYRIGHT, "include": [str(one)]}))
                words = [sys.executable, "-m", "basedpyright", "--level", "error", "--pythonpath", python]
                found += _lines([*map(str, words), "--project", str(project)], folder)
    return found


def _lines(words: list[str], folder: str) -> list[str]:
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
    lines = (done.stdout + done.stderr).splitlines()
    return lines if done.returncode else []


def main() -> int:
    """Print what is wrong; return how much that is."""
    with tempfile.TemporaryDirectory() as folder:
        stubs = made(Path(folder))
        if sys.argv[1:] == ["--write"]:
            shutil.rmtree(STUBS, ignore_errors=True)
            shutil.copytree(stubs, STUBS)
        found = [f"{one}: python -m tests.gates.handler_types --write" for one in differences(stubs)]
    found += faults()
    print(
        "\n".join(found)
        or "handler types: the stubs are those of the shims, and strict checkers accept our handlers"
    )
    return len(found)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
