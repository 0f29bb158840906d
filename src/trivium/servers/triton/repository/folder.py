"""A model folder as it lies on disk: its config.pbtxt, its version folders and what they hold.

Looks at names only, once; everything afterwards judges this picture. Must not know what the text says.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trivium.servers.triton.words.backends import MODEL_FILES

CONFIG = "config.pbtxt"
CONFIGS = "configs"
"""The folder of a model's other configurations, one of which may be preferred."""

_ENDING = ".pbtxt"
_VERSION = re.compile(r"0|[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class TritonModelFolder:
    """`versions`: number -> the names in that folder, by rising number; `names`: all there is at the top;
    `configs`: the names, without ending, of the configurations to choose from, of which `preferred` is wanted.
    """

    path: Path
    names: tuple[str, ...]
    versions: Mapping[str, frozenset[str]]
    configs: tuple[str, ...] = ()
    preferred: str = ""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def config(self) -> Path:
        """The preferred configuration where there is such, else config.pbtxt (sheet "triton", section 1.1)."""
        if self.preferred in self.configs:
            return self.path / CONFIGS / f"{self.preferred}{_ENDING}"
        return self.path / CONFIG

    @property
    def has_config(self) -> bool:
        return CONFIG in self.names or self.preferred in self.configs

    @property
    def first_files(self) -> frozenset[str]:
        """Return what the first version folder holds: by it the backend is recognised."""
        return next(iter(self.versions.values()), frozenset())

    @property
    def looks_like_model(self) -> bool:
        """Has it a configuration, preferred or not, or a version folder with a known model file?"""
        return (
            self.has_config
            or bool(self.configs)
            or any(MODEL_FILES & files for files in self.versions.values())
        )

    @property
    def misnamed(self) -> tuple[str, ...]:
        """Folders whose name is a number, but not as a version is written (`01`)."""
        return tuple(
            name for name in self.names if name.isdecimal() and name not in self.versions and self._has(name)
        )

    def _has(self, name: str) -> bool:
        return (self.path / name).is_dir()


def open_folder(path: Path, preferred: str = "") -> TritonModelFolder:
    """Look at a folder, of whose configurations the `preferred` one goes first. Raises OSError where that is not
    allowed, or it is no folder.
    """
    children = sorted(path.iterdir())
    numbers = [child for child in children if _VERSION.fullmatch(child.name) and child.is_dir()]
    versions = {
        child.name: frozenset(inner.name for inner in child.iterdir())
        for child in sorted(numbers, key=lambda child: int(child.name))
    }
    others = path / CONFIGS
    configs = (
        sorted(other.stem for other in others.iterdir() if other.suffix == _ENDING) if others.is_dir() else ()
    )
    return TritonModelFolder(
        path, tuple(child.name for child in children), versions, tuple(configs), preferred
    )


def is_model(path: Path) -> bool:
    """Does it look like a model folder? False where it may not be looked into."""
    try:
        return path.is_dir() and open_folder(path).looks_like_model
    except OSError:
        return False


def child_folders(path: Path) -> list[Path]:
    """The folders of a repository, by name; hidden ones are none of it. Raises OSError."""
    return sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))
