"""Writes TorchScript without what torch puts into it for debuggers: the paths of the machine that it was made on."""

import zipfile
from pathlib import Path

import torch

_BEGINNING = (1980, 1, 1, 0, 0, 0)


def save(module: torch.jit.ScriptModule, path: Path) -> None:
    """Write a module; the same one always becomes the same bytes."""
    module.save(str(path))
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist() if not name.endswith(".debug_pkl")}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name, _BEGINNING), data)
