"""A model folder as it lies on disk: its config.pbtxt, its version folders and what they hold.

Looks at names only, once; everything afterwards judges this picture. Must not know what the text says.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trivium.dialects.triton.backends import MODEL_FILES

CONFIG = "config.pbtxt"
_VERSION = re.compile(r"0|[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """`versions`: number -> the names in that folder, by rising number; `names`: all there is at the top."""

    path: Path
    names: tuple[str, ...]
    versions: Mapping[str, frozenset[str]]

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def config(self) -> Path:
        return self.path / CONFIG

    @property
    def has_config(self) -> bool:
        return CONFIG in self.names

    @property
    def first_files(self) -> frozenset[str]:
        """What the first version folder holds: by it the backend is recognised."""
        return next(iter(self.versions.values()), frozenset())

    @property
    def looks_like_model(self) -> bool:
        """Has it a configuration, or a version folder with a known model file?"""
        return self.has_config or any(MODEL_FILES & files for files in self.versions.values())

    @property
    def misnamed(self) -> tuple[str, ...]:
        """Folders whose name is a number, but not as a version is written (`01`)."""
        return tuple(
            name for name in self.names if name.isdecimal() and name not in self.versions and self._has(name)
        )

    def _has(self, name: str) -> bool:
        return (self.path / name).is_dir()


def open_folder(path: Path) -> ModelFolder:
    """Look at a folder. Raises OSError where that is not allowed, or it is no folder."""
    children = sorted(path.iterdir())
    numbers = [child for child in children if _VERSION.fullmatch(child.name) and child.is_dir()]
    versions = {
        child.name: frozenset(inner.name for inner in child.iterdir())
        for child in sorted(numbers, key=lambda child: int(child.name))
    }
    return ModelFolder(path, tuple(child.name for child in children), versions)


def is_model(path: Path) -> bool:
    """Does it look like a model folder? False where it may not be looked into."""
    try:
        return path.is_dir() and open_folder(path).looks_like_model
    except OSError:
        return False


def child_folders(path: Path) -> list[Path]:
    """The folders of a repository, by name; hidden ones are none of it. Raises OSError."""
    return sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))
