"""Makes a handler's surroundings those of a worker for a while: importable modules, variables, the current folder."""

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import trivium_worker

SHIMS = Path(trivium_worker.__file__).parent / "shims"
_DIALECTS = "trivium_worker.dialects."


@contextmanager
def like_a_worker(dialect: str, folders: Collection[Path], variables: Mapping[str, str]) -> Iterator[None]:
    """Keep `sys.path`, the modules and the environment as they are, and have them so again behind the block.

    What is imported meanwhile from the handler's `folders` or the dialect's shims is forgotten then, so that the next
    handler gets its own; a module of another package that has a shim's name is out of the way in between.
    """
    path, modules, environment = list(sys.path), dict(sys.modules), dict(os.environ)
    shadowed = _names(SHIMS / dialect)
    for name in [one for one in sys.modules if one.partition(".")[0] in shadowed]:
        del sys.modules[name]
    sys.modules.setdefault("trivium_child", trivium_worker)
    os.environ.update(variables)
    try:
        yield
    finally:
        _forget(modules, [*map(_resolved, folders), str(SHIMS / dialect)], shadowed)
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(environment)


@contextmanager
def in_folder(folder: Path | None) -> Iterator[None]:
    """Have user code in its folder, as the process of a worker is."""
    before = os.getcwd()
    if folder is not None:
        os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _forget(before: Mapping[str, ModuleType], folders: Collection[str], shadowed: Collection[str]) -> None:
    for name, module in list(sys.modules.items()):
        if before.get(name) is module:
            continue
        is_ours = name.startswith(_DIALECTS) or name == "trivium_child" or name.partition(".")[0] in shadowed
        if is_ours or _lies_in(module, folders) or name in before:
            del sys.modules[name]
    for name, module in before.items():
        if name not in sys.modules:
            sys.modules[name] = module


def _lies_in(module: object, folders: Collection[str]) -> bool:
    places = [getattr(module, "__file__", None), *(getattr(module, "__path__", None) or ())]
    found = [_resolved(Path(one)) for one in places if isinstance(one, str)]
    return any(place == one or place.startswith(one + os.sep) for place in found for one in folders)


def _names(folder: Path) -> frozenset[str]:
    """Return the names of the modules that a dialect's shims have."""
    return frozenset(one.stem for one in folder.iterdir()) if folder.is_dir() else frozenset()


def _resolved(path: Path) -> str:
    return os.path.realpath(path)
