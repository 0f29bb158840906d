"""A DJL model folder as it lies on disk, and whether a folder or an archive is one.

Looks at names, and into model.py where only its text can tell whose it is. Must not know what serving.properties
says. Source: spec sheet `djl`, sections 2.2, 2.4 and 2.5.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from trivium.files import open_file
from trivium.formats import archive
from trivium.formats.checkpoint.names import CONFIG
from trivium.servers.djl.words.detection import FOREIGN_MARKS, detect, find_estimator
from trivium.servers.djl.words.engines import ENGINES
from trivium.servers.djl.words.handlers import LONGEST, HandlerKind, kind_of
from trivium.servers.djl.words.naming import archive_suffix, inferred_name, stem, top_names
from trivium.servers.djl.words.served_code import formatters_of
from trivium.servers.djl.words.workflow_documents import FILES

PROPERTIES = "serving.properties"
_VERSION = re.compile(r"0|[1-9][0-9]{0,17}")
"""How Triton writes the folder of a version."""

MLFLOW = "MLmodel"
"""What a folder of MLflow has, beside models of its own: without settings of DJL's it is MLflow's."""

_COMMON = (".json", ".txt")
"""Ends of models' names that other files have as well."""


@dataclass(frozen=True, slots=True)
class DjlModelFolder:
    """`title` is the name of the folder or archive that was given, `path` the model directory, `files` and `folders`
    what lies in it. `shown` is how people know the directory, where it was unpacked from an archive.
    """

    title: str
    path: Path
    files: frozenset[str]
    folders: frozenset[str]
    shown: Path | None = None

    @property
    def name(self) -> str:
        """The model's name, inferred."""
        return inferred_name(self.title)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Return what the names of its files may begin with."""
        return tuple(dict.fromkeys((stem(self.title), self.path.name)))

    @property
    def is_foreign(self) -> bool:
        """Is it another format's: Triton's or TorchServe's?"""
        return _is_foreign(self.files | self.folders) or any(map(_VERSION.fullmatch, self.folders))

    def misnamed(self, suffixes: Collection[str] = (), key: str = "option.modelName") -> str:
        """Say which file could be the model if the settings named it by that key; empty where none could."""
        served = [suffix for engine in ENGINES if engine.engine for suffix in engine.suffixes]
        wanted = suffixes or [suffix for suffix in served if suffix not in _COMMON]
        for suffix in wanted:
            for name in sorted(name for name in self.files if name.endswith(suffix)):
                if suffix != ".py" or kind_of(self.text(name)) is HandlerKind.DJL:
                    return (
                        f"{name} is named otherwise than the folder: set {key}={name.removesuffix(suffix)} "
                        f"in {PROPERTIES}, or rename it to model{suffix}."
                    )
        return ""

    def inner_file(self, prefixes: Sequence[str], names: Sequence[str]) -> str:
        """Return the first of these files, in a folder that is called by a prefix, or at the top; empty for none."""
        for name in names:
            for prefix in prefixes:
                if prefix in self.folders and self._has(f"{prefix}/{name}"):
                    return f"{prefix}/{name}"
            if name in self.files:
                return name
        return ""

    def misplaced(self, names: Sequence[str], key: str) -> str:
        """Say which folder could be the model if the settings named it by that key; empty where none could."""
        for inner in sorted(self.folders):
            if any(self._has(f"{inner}/{name}") for name in names):
                return f"There is one in the folder {inner}: set {key}={inner} in {PROPERTIES}."
        return ""

    def _has(self, file: str) -> bool:
        try:
            return (self.path / file).is_file()
        except (OSError, ValueError):
            return False

    def file_of(self, entry: str) -> str:
        """Return the file of the folder that a Python file or module is, empty where it is none of the folder's."""
        if entry.endswith(".py"):
            return entry
        path = entry.replace(".", "/")
        files = (f"{path}.py", f"{path}/__init__.py")
        try:
            return next((file for file in files if (self.path / file).is_file()), "")
        except (OSError, ValueError):
            return ""

    def text(self, file: str) -> str:
        """The text of a file below the folder; empty where it cannot be read."""
        try:
            with open_file(self.path / file) as opened:
                return opened.read(LONGEST + 1).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""


def open_folder(path: Path, title: str = "") -> DjlModelFolder:
    """Look at a folder. One that holds a single folder, hidden entries aside, stands for that. Raises OSError."""
    title = title or path.name
    files, folders = _entries(path)
    if not files and len(folders) == 1:
        (inner,) = folders
        if not _VERSION.fullmatch(inner) and inner not in FOREIGN_MARKS:
            path = path / inner
            files, folders = _entries(path)
    return DjlModelFolder(title, path, files, folders)


def is_model(path: Path) -> bool:
    """Does this folder, or this archive, look like one model? False where it may not be looked into."""
    try:
        if path.is_dir():
            return looks_like_model(open_folder(path))
        return is_archive(path) and _holds_model(path)
    except (OSError, ValueError):
        return False


def looks_like_model(folder: DjlModelFolder) -> bool:
    """Has it settings, or a file that an engine we serve opens, or is it a workflow? Without settings, model.py must
    hold a DJL handler.
    """
    if any(name in folder.files for name in FILES):
        return True
    if folder.is_foreign:
        return False
    if PROPERTIES in folder.files:
        return True
    if MLFLOW in folder.files:
        return False
    detected = detect(folder.files, folder.prefixes)
    if detected is None or not detected.is_served:
        return False
    if detected.built_in:
        return True
    if detected.engine.runs_handlers:
        text = folder.text(detected.entry)
        is_around = CONFIG in folder.files and bool(formatters_of(text))
        kind = kind_of(text)
        is_beside = kind is HandlerKind.UNKNOWN and bool(find_estimator(folder.files, folder.prefixes))
        return is_around or is_beside or kind is HandlerKind.DJL
    return True


def is_archive(path: Path) -> bool:
    """A file with a suffix that is unpacked. Raises OSError."""
    return bool(archive_suffix(path.name)) and path.is_file()


def store_entries(path: Path) -> list[Path]:
    """The models of a model store: its folders and archives, where at least one looks like a model and none like
    another format's; else nothing. Hidden entries, empty folders and other files are none of it. Raises OSError.
    """
    entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    models = []
    for entry in entries:
        if entry.is_dir():
            files, folders = _entries(entry)
            if _VERSION.fullmatch(entry.name) or open_folder(entry).is_foreign:
                return []
            if not files and not folders:
                continue
            if MLFLOW in files and PROPERTIES not in files:
                return []
        elif entry.suffix.lower() == ".mar":
            return []
        elif not is_archive(entry):
            continue
        elif _is_foreign(top_names(archive.names(entry))):
            return []
        models.append(entry)
    return models if any(map(is_model, models)) else []


def _entries(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Names of files and of folders, without the hidden ones."""
    entries = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    files = frozenset(entry.name for entry in entries if entry.is_file())
    return files, frozenset(entry.name for entry in entries if entry.is_dir())


def _holds_model(path: Path) -> bool:
    names = top_names(archive.names(path))
    if _is_foreign(names):
        return False
    detected = detect(names, (stem(path.name),))
    return PROPERTIES in names or (detected is not None and detected.is_served)


def _is_foreign(names: Collection[str]) -> bool:
    return any(mark in names for mark in FOREIGN_MARKS)
