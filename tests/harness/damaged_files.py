"""Models whose files are damaged, each in one way, from one seed: what a load must refuse, or serve, and survive."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

HOWS = (
    "cut short",
    "a byte",
    "bytes",
    "many bytes",
    "zeros",
    "a stretch",
    "empty",
    "another's",
    "folder",
    "fifo",
)
"""The ways, in turn; "another's" is a file of another engine under the name of this one."""

_COUNTS = {"a byte": 1, "bytes": 10, "many bytes": 30}


def damaged(path: Path, folder: Path, count: int, other: Path | None = None) -> Iterator[Path]:
    """Copy a model's file, or its folder, so many times, and damage a file of each; return where each lies.

    What lies beside a file under its name belongs to it. `other` is a file of another engine, without which files
    are only cut, changed and emptied.
    """
    chance = random.Random(38)
    beside = (
        [one for one in path.parent.iterdir() if one != path and one.stem == path.stem]
        if path.is_file()
        else []
    )
    parts = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    hows = HOWS if other is not None else HOWS[:7]
    for number in range(count):
        place = folder / str(number)
        place.mkdir(parents=True)
        if path.is_file():
            for one in (path, *beside):
                shutil.copy(one, place / one.name)
        else:
            shutil.copytree(path, place / path.name)
        target = place / chance.choice([*parts, *beside]).relative_to(path.parent)
        _damage(target, hows[number % len(hows)], chance, other)
        yield place / path.name


def _damage(file: Path, how: str, chance: random.Random, other: Path | None) -> None:
    whole = bytearray(file.read_bytes())
    start = chance.randrange(len(whole) or 1)
    if how == "cut short":
        file.write_bytes(whole[:start])
    elif how in _COUNTS:
        for _ in range(_COUNTS[how] if whole else 0):
            whole[chance.randrange(len(whole))] = chance.randrange(256)
        file.write_bytes(whole)
    elif how == "zeros":
        file.write_bytes(bytes(len(whole)))
    elif how == "a stretch":
        file.write_bytes(whole[:start] + chance.randbytes(64) + whole[start + 64 :])
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "another's" and other is not None:
        shutil.copy(other, file)
    else:
        file.unlink()
        _ = file.mkdir() if how == "folder" else os.mkfifo(file)
